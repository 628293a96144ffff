"""Hidden states of a pretrained encoder, by folder or hub name, through `transformers`.

Nothing is cut in silence: long texts are windowed. The model is stopped at the highest layer that
is asked for. Only safetensors are loaded, and no code from a repository unless asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import torch

from freight.core.types import Cloud, Progress
from freight.encoders.batching import (
    Cut,
    Shape,
    TokenBatch,
    batches,
    cut,
    packed_batch,
    packed_batches,
    packs,
    padded_batch,
    register,
)
from freight.encoders.cuda_graphs import Recorder
from freight.encoders.hidden_states import hidden_states
from freight.encoders.loading import EMBEDDED, embedded_folder, load_part
from freight.encoders.tokenizer import Tokeniser, Tokens
from freight.errors import FreightError, InvalidInput
from freight.transport.devices import sent
from freight.transport.types import Array

_RUNNING = RLock()
"""Held while a model runs: states are caught inside it, each thread its own."""

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Transformer:
    """A pretrained encoder: what to load, how precisely to run it, and where.

    `device` is "auto" for a GPU where there is one; `budget` is how many tokens a batch has, by
    default what suits the device.
    """

    name: str
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    remote_code: bool = False
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise InvalidInput(f"dtype={self.dtype!r}; there is {', '.join(_DTYPES)}")
        if self.budget is not None and self.budget < 1:
            raise InvalidInput(f"budget={self.budget} leaves no room for a token")

    def __getstate__(self) -> dict[str, Any]:
        """What pickles is the specification; weights are loaded again where they are needed."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def depth(self) -> int:
        """How many layers there are besides the embedding layer."""
        return int(self._config.num_hidden_layers)

    @property
    def identity(self) -> str:
        """Name, revision or hash of the weights, and what else the bits of a vector depend on."""
        device = self._device.type
        device += f"*{torch.get_num_threads()}" if device == "cpu" else ""
        shapes = "packed" if self._packs else "padded"
        return f"{self.name}@{self._version}/{self.dtype}/{device}/{shapes}/{self._tokens}"

    @cached_property
    def _version(self) -> str:
        if self._folder is not None:
            words = file_digest(self._folder, "*.json", "*.txt", "*.model")
            return f"sha256-{file_digest(self._folder, '*.safetensors')[:12]}.{words[:6]}"
        return getattr(self._config, "_commit_hash", None) or self.revision or "main"

    def prepare(self, texts: Sequence[str]) -> Tokens:
        """What of encoding needs no model, to be done while the model is busy with other texts."""
        return self._tokeniser.beside(texts)

    def encode(
        self, texts: Sequence[str] | Tokens, layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """Vectors of these hidden states for every unit of every text, special tokens included."""
        for layer in layers:
            if not 0 <= layer <= self.depth:
                raise InvalidInput(
                    f"layer {layer} is out of range; {self.name} has 0..{self.depth}"
                )
        tokens = texts if isinstance(texts, Tokens) else self._tokeniser(texts)
        count, total = len(tokens.texts), int(tokens.offsets[-1])
        store = torch.zeros((total, len(layers), self._width), device=self._device)
        halved = np.zeros(count, bool)
        if not layers or not count:
            return tokens.cloud(store, halved, halved)
        pieces = cut(tokens.ids, tokens.offsets, self._tokeniser.frame, self._limit)
        planned = list(self._planned(pieces))
        work = sum(shape.rows * shape.length for shape, _ in planned)
        for shape, chosen in planned:
            if self._fill(store, shape, pieces, chosen, layers):
                halved[pieces.owner[chosen]] = True
            if progress:
                progress(shape.rows * shape.length / work)
        if self._packs:
            with _RUNNING:
                self._recorder.record()
        windowed = np.bincount(pieces.owner, minlength=count) > 1
        if windowed.any():
            seen = np.bincount(pieces.units + 1, minlength=total + 1)[1:]
            store /= torch.as_tensor(seen, device=store.device, dtype=store.dtype)[:, None, None]
        return tokens.cloud(store, windowed, halved)

    def _planned(self, pieces: Cut) -> Iterator[tuple[Shape, Array]]:
        """Which windows are encoded together, and in what shape."""
        if self._packs:
            return packed_batches(pieces.lengths, self._tokens)
        return batches(pieces.lengths, self._limit, self._tokens)

    def _fill(
        self, store: torch.Tensor, shape: Shape, pieces: Cut, chosen: Array, layers: Sequence[int]
    ) -> bool:
        """Encode a batch into the store; in halves where memory runs out, and then say so."""
        batch = self._batch(shape, pieces, chosen)
        try:
            states = self._forward(batch, layers)
        except torch.OutOfMemoryError:
            if shape.rows == 1 and len(chosen) == 1:
                raise FreightError(
                    f"one text of {pieces.lengths[chosen[0]]} tokens does not fit in the memory of"
                    f" {self._device}; use a smaller encoder, a shorter window or dtype='bfloat16'"
                ) from None
            for half, part in self._halves(shape, pieces, chosen):
                self._fill(store, half, pieces, part, layers)
            return True
        units = pieces.units[batch.place]
        mine = units >= 0
        where, taken = (sent(x, store.device) for x in (units[mine], batch.taken[mine]))
        found = states.flatten(1, 2)[:, taken].transpose(0, 1)
        store.index_add_(0, where, found.to(store.dtype))
        return False

    def _halves(self, shape: Shape, pieces: Cut, chosen: Array) -> Iterator[tuple[Shape, Array]]:
        if self._packs:
            for half, which in packed_batches(pieces.lengths[chosen], shape.length // 2):
                yield half, chosen[which]
            return
        rows = shape.rows // 2
        for start in range(0, len(chosen), rows):
            yield Shape(rows, shape.length), chosen[start : start + rows]

    def _batch(self, shape: Shape, pieces: Cut, chosen: Array) -> TokenBatch:
        padding = self._tokeniser.padding
        if self._packs:
            kind = self._config.model_type
            return packed_batch(shape, pieces, chosen, padding, self._limit, kind)
        return padded_batch(shape, pieces, chosen, padding)

    def _forward(self, batch: TokenBatch, layers: Sequence[int]) -> torch.Tensor:
        with _RUNNING:
            if self._packs:
                return self._recorder.states(batch, layers)
            arrays = {name: sent(x, self._device) for name, x in batch.arrays.items()}
            return hidden_states(self._model, {**arrays, **batch.numbers}, layers)

    @cached_property
    def _recorder(self) -> Recorder:
        return Recorder(self._model)

    @cached_property
    def _packs(self) -> bool:
        return packs(self._config.model_type, _DTYPES[self.dtype], self._device)

    @cached_property
    def _tokens(self) -> int:
        """How many tokens a batch has; those that fit into its cache suit a CPU."""
        padded = 2**12 if self._device.type == "cuda" else 2**9
        return self.budget or (2**15 if self._packs else padded)

    @cached_property
    def _device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            found = torch.device(self.device)
        except RuntimeError:
            raise InvalidInput(
                f"device={self.device!r}; there is auto, cpu, cuda, cuda:1"
            ) from None
        if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
            there = torch.cuda.device_count()
            raise InvalidInput(f"device={self.device!r}, and {there} GPUs can be seen; try cpu")
        return found

    @cached_property
    def _folder(self) -> Path | None:
        if self.name == EMBEDDED:
            return embedded_folder()
        path = Path(self.name).expanduser()
        if path.is_dir():
            return path
        if path.is_absolute() or self.name.startswith((".", "~")):
            raise InvalidInput(f"there is no folder {path}; give a model's folder or a hub name")
        return None

    @cached_property
    def _config(self) -> Any:
        from transformers import AutoConfig

        return self._load(AutoConfig)

    @cached_property
    def _tokeniser(self) -> Tokeniser:
        from transformers import AutoTokenizer

        spaced = self._config.model_type in ("roberta", "longformer", "bart", "gpt2")
        options = {"add_prefix_space": True} if spaced else {}
        return Tokeniser(self._load(AutoTokenizer, **options))

    @cached_property
    def _model(self) -> Any:
        from transformers import AutoModel
        from transformers.utils import logging as talk

        logging: Any = talk
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            options = {"attn_implementation": register()} if self._packs else {}
            precision = _DTYPES[self.dtype]
            model = self._load(AutoModel, use_safetensors=True, dtype=precision, **options)
        finally:
            if shown:
                logging.enable_progress_bar()
        return model.to(self._device).eval()

    def _load(self, kind: Any, **options: Any) -> Any:
        return load_part(
            kind,
            self.name,
            self._folder,
            revision=self.revision,
            trust_remote_code=self.remote_code,
            **options,
        )

    @cached_property
    def _width(self) -> int:
        return int(self._config.hidden_size)

    @cached_property
    def _limit(self) -> int:
        """The most tokens that the model has positions for, special ones included."""
        positions = getattr(self._config, "max_position_embeddings", None)
        if not positions or positions < 0:
            return 512
        named = self._model.named_modules()
        table = next((m for name, m in named if name.endswith("position_embeddings")), None)
        padding = getattr(table, "padding_idx", None)
        return int(positions) - (0 if padding is None else int(padding) + 1)


def file_digest(folder: Path, *patterns: str) -> str:
    """The sha256 of a folder's file, or of the digests of its files, in the order of names."""
    digests = []
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        with path.open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )
