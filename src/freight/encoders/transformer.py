"""Hidden states of a pretrained encoder, by folder or hub name.

A BERT in a folder is run by `freight.encoders.bert`, everything else by `transformers`. Nothing is
truncated: long texts are split into windows. The model stops at the highest layer that is asked
for. Only safetensors are loaded, and no code from a repository unless asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from freight.core.types import Cloud, Progress
from freight.encoders import PACKAGED, loaded_once, packaged_folder
from freight.encoders.adapters import Adapter
from freight.encoders.batching import (
    BatchShape,
    PackedWindows,
    TokenBatch,
    can_pack,
    make_packed_batch,
    make_padded_batch,
    plan_packed_batches,
    plan_padded_batches,
    register_packed_attention,
    split_into_windows,
)
from freight.encoders.bert import Bert, BertConfig
from freight.encoders.cuda_graphs import CudaGraphs
from freight.encoders.tokenizer import Tokenizer, Tokens, open_tokenizer
from freight.errors import FreightError, InvalidInput, MissingPart
from freight.transport.devices import GPU_LOCK, add_states
from freight.transport.types import Array, send_to_device

_RUNNING = RLock()
"""Held while a model runs: hidden states are taken by hooks, which two threads must not mix."""

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Transformer:
    """A pretrained encoder: what to load, at which precision to run it, and where.

    `device` is "auto" for a GPU where there is one; `budget` is the number of tokens per batch, by
    default what suits the device. An `adapter` changes the weights once they are loaded.
    """

    name: str
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    remote_code: bool = False
    budget: int | None = None
    adapter: Adapter | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise InvalidInput(f"dtype={self.dtype!r}; there is {', '.join(_DTYPES)}")
        if self.budget is not None and self.budget < 1:
            raise InvalidInput(f"budget={self.budget} has no room for a token")

    def __getstate__(self) -> dict[str, Any]:
        """What pickles is the specification; weights are loaded again where they are needed."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def depth(self) -> int:
        """How many layers there are besides the embedding layer."""
        return int(self._config.num_hidden_layers)

    @property
    def identity(self) -> str:
        """Name and revision or hash of the weights, precision, and after `/on:` where it runs.

        A folder is named by its hash: elsewhere the same weights may be in another one.
        """
        device = self.torch_device.type
        device += f"*{torch.get_num_threads()}" if device == "cpu" else ""
        shapes = "packed" if self._packs else "padded"
        adapter = "" if self.adapter is None else f"+{self.adapter.identity}"
        named = self.name in PACKAGED or self._folder is None
        name = f"{self.name if named else 'folder'}@{self.version}{adapter}"
        return f"{name}/{self.dtype}/on:{device}/{shapes}/{self._batch_tokens}"

    @loaded_once
    def version(self) -> str:
        """The hash of weights and words, or the revision on a hub; an adapter does not count."""
        if self._folder is not None:
            words = file_digest(self._folder, "*.json", "*.txt", "*.model")
            return f"sha256-{self.weights_hash[:12]}.{words[:6]}"
        return getattr(self._config, "_commit_hash", None) or self.revision or "main"

    @loaded_once
    def weights_hash(self) -> str:
        """The sha256 of the file of weights, wherever it lies; those of a hub are downloaded."""
        if self._folder is not None:
            known = PACKAGED.get(self.name)
            if known is not None and known.form == "folder":  # checked when the folder was given
                return known.files[0][2]
            return file_digest(self._folder, "*.safetensors")
        from transformers.utils.hub import cached_file

        config: Any = cached_file(self.name, "config.json", revision=self.version)
        folder = Path(config).parent
        if not list(folder.glob("*.safetensors")):
            self._pretrained()
        return file_digest(folder, "*.safetensors")

    def prepare(self, texts: Sequence[str]) -> Tokens:
        """Tokenize, which can be done while the model encodes other texts."""
        return self._tokenizer.tokenize_in_processes(texts)

    def encode(
        self, texts: Sequence[str] | Tokens, layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """Vectors of these hidden states for every unit of every text, special tokens included."""
        for layer in layers:
            if not 0 <= layer <= self.depth:
                raise InvalidInput(
                    f"layer {layer} is out of range; {self.name} has 0..{self.depth}"
                )
        tokens = texts if isinstance(texts, Tokens) else self._tokenizer(texts)
        count, total = len(tokens.texts), int(tokens.offsets[-1])
        store = torch.zeros((total, len(layers), self._width), device=self.torch_device)
        halved = np.zeros(count, bool)
        if not layers or not count:
            return tokens.cloud(store, halved, halved)
        windows = split_into_windows(
            tokens.ids, tokens.offsets, self._tokenizer.special, self._limit
        )
        planned = list(self._plan(windows))
        work = sum(shape.rows * shape.length for shape, _ in planned)
        for shape, chosen in planned:
            if self._fill(store, shape, windows, chosen, layers):
                halved[windows.owner[chosen]] = True
            if progress:
                progress(shape.rows * shape.length / work)
        if self._packs and self.cuda_graphs.waiting:
            with GPU_LOCK, _RUNNING:  # in this order: whoever scores has the first, and may encode
                self.cuda_graphs.capture()
        windowed = np.bincount(windows.owner, minlength=count) > 1
        if windowed.any():
            seen = np.bincount(windows.units + 1, minlength=total + 1)[1:]
            store /= torch.as_tensor(seen, device=store.device, dtype=store.dtype)[:, None, None]
        return tokens.cloud(store, windowed, halved)

    def _plan(self, windows: PackedWindows) -> Iterator[tuple[BatchShape, Array]]:
        """Which windows are encoded together, and in which shape."""
        if self._packs:
            return plan_packed_batches(windows.lengths, self._batch_tokens)
        return plan_padded_batches(windows.lengths, self._limit, self._batch_tokens)

    def _fill(
        self,
        store: Tensor,
        shape: BatchShape,
        windows: PackedWindows,
        chosen: Array,
        layers: Sequence[int],
    ) -> bool:
        """Add the vectors of a batch to the store; true if memory ran out and it was halved."""
        batch = self._batch(shape, windows, chosen)
        try:
            states = self._forward(batch, layers)
        except torch.OutOfMemoryError:
            if shape.rows == 1 and len(chosen) == 1:
                raise FreightError(
                    f"one text of {windows.lengths[chosen[0]]} tokens does not fit in the memory of"
                    f" {self.torch_device}; use a smaller encoder, a shorter window or"
                    " dtype='bfloat16'"
                ) from None
            for half, part in self._halves(shape, windows, chosen):
                self._fill(store, half, windows, part, layers)
            return True
        units = windows.units[batch.source]
        used = units >= 0
        target, position = (
            send_to_device(x, store.device) for x in (units[used], batch.position[used])
        )
        states = states.flatten(1, 2)
        if store.is_cuda:
            add_states(store, states, target, position, alone=windows.whole)
        else:
            vectors = states[:, position].transpose(0, 1)
            store.index_add_(0, target, vectors.to(store.dtype))
        return False

    def _halves(
        self, shape: BatchShape, windows: PackedWindows, chosen: Array
    ) -> Iterator[tuple[BatchShape, Array]]:
        if self._packs:
            for half, members in plan_packed_batches(windows.lengths[chosen], shape.length // 2):
                yield half, chosen[members]
            return
        rows = shape.rows // 2
        for start in range(0, len(chosen), rows):
            yield BatchShape(rows, shape.length), chosen[start : start + rows]

    def _batch(self, shape: BatchShape, windows: PackedWindows, chosen: Array) -> TokenBatch:
        padding = self._tokenizer.padding
        if self._packs:
            kind = self._config.model_type
            return make_packed_batch(shape, windows, chosen, padding, self._limit, kind)
        return make_padded_batch(shape, windows, chosen, padding)

    def _forward(self, batch: TokenBatch, layers: Sequence[int]) -> Tensor:
        with _RUNNING:
            if self._packs:
                return self.cuda_graphs.states(batch, layers)
            arrays = {
                name: send_to_device(x, self.torch_device) for name, x in batch.arrays.items()
            }
            return hidden_states(self._model, {**arrays, **batch.numbers}, layers)

    @loaded_once
    def cuda_graphs(self) -> CudaGraphs:
        """The graphs of its batch shapes; used where batches are packed."""
        device = next(self._model.parameters()).device
        return CudaGraphs(partial(hidden_states, self._model), device)

    @loaded_once
    def _packs(self) -> bool:
        return can_pack(self._config.model_type, _DTYPES[self.dtype], self.torch_device)

    @loaded_once
    def _batch_tokens(self) -> int:
        """The number of tokens per batch; on a CPU a batch is to fit into the processor's cache."""
        padded = 2**12 if self.torch_device.type == "cuda" else 2**9
        return self.budget or (2**15 if self._packs else padded)

    @loaded_once
    def torch_device(self) -> torch.device:
        """Where the model runs, and where the vectors of its clouds are."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError:
            raise InvalidInput(
                f"device={self.device!r}; there is auto, cpu, cuda, cuda:1"
            ) from None
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            raise InvalidInput(f"device={self.device!r}, and {count} GPUs can be seen; try cpu")
        return device

    @loaded_once
    def _folder(self) -> Path | None:
        if self.name in PACKAGED:
            return packaged_folder(self.name)
        path = Path(self.name).expanduser()
        if path.is_dir():
            return path
        if path.is_absolute() or self.name.startswith((".", "~")):
            raise InvalidInput(f"there is no folder {path}; give a model's folder or a hub name")
        return None

    @loaded_once
    def _config(self) -> Any:
        own = BertConfig.read(self._folder) if self._folder else None
        if own is not None:
            return own
        from transformers import AutoConfig

        return self._load(AutoConfig)

    @loaded_once
    def _tokenizer(self) -> Tokenizer:
        if isinstance(self._config, BertConfig) and self._folder:
            own = open_tokenizer(self._folder)
            if own is not None:
                return own
        from transformers import AutoTokenizer

        spaced = self._config.model_type in ("roberta", "longformer", "bart", "gpt2")
        options = {"add_prefix_space": True} if spaced else {}
        loaded = self._load(AutoTokenizer, **options)
        if not loaded.is_fast:
            raise MissingPart(
                f"{type(loaded).__name__} has no fast version, which character spans need;"
                " install the package that its conversion asks for, or use another model"
            )
        return Tokenizer(loaded.backend_tokenizer, loaded.unk_token_id, loaded.pad_token_id)

    @loaded_once
    def _model(self) -> Any:
        model = self._pretrained()
        if self.adapter is not None:
            self.adapter.check_encoder(self.name, self.weights_hash)
            self.adapter.apply(model)
        return model.to(self.torch_device).eval()

    def _pretrained(self) -> Any:
        """The model as it was published."""
        precision = _DTYPES[self.dtype]
        if isinstance(self._config, BertConfig) and self._folder:
            return Bert.load(self._folder, self._config, precision)
        from transformers import AutoModel
        from transformers.utils import logging as transformers_logging

        logging: Any = transformers_logging
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            options = {"attn_implementation": register_packed_attention()} if self._packs else {}
            return self._load(AutoModel, use_safetensors=True, dtype=precision, **options)
        finally:
            if shown:
                logging.enable_progress_bar()

    def _load(self, kind: Any, **options: Any) -> Any:
        return load_part(
            kind,
            self.name,
            self._folder,
            revision=self.revision,
            trust_remote_code=self.remote_code,
            **options,
        )

    @loaded_once
    def _width(self) -> int:
        return int(self._config.hidden_size)

    @loaded_once
    def _limit(self) -> int:
        """The number of tokens that the model has positions for, special ones included."""
        positions = getattr(self._config, "max_position_embeddings", None)
        if not positions or positions < 0:
            return 512
        modules = self._model.named_modules()
        table = next((m for name, m in modules if name.endswith("position_embeddings")), None)
        padding = getattr(table, "padding_idx", None)
        return int(positions) - (0 if padding is None else int(padding) + 1)


def file_digest(folder: Path, *patterns: str) -> str:
    """The sha256 of the one file that matches, or of the digests of several, ordered by name."""
    digests = []
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        with path.open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )


class _Stop(Exception):
    """Raised inside the model at the highest layer that is wanted."""


def differentiable_states(model: Any, inputs: Mapping[str, Any], layers: Sequence[int]) -> Tensor:
    """The states (layer, row, token, dim) of these layers; 0 is the input of the first one.

    Layers above the highest one wanted are not run. The last state is taken from the model's own
    list, since some models normalize it once more.
    """
    if isinstance(model, Bert):
        states: Tensor = model(**inputs, layers=layers)
        return states
    blocks = _blocks(model)
    if blocks is None or max(layers) >= len(blocks):
        every = model(**inputs, output_hidden_states=True).hidden_states
        return torch.stack([every[layer] for layer in layers])
    inputs_of: dict[int, Tensor] = {}
    with ExitStack() as hooks, suppress(_Stop):
        for layer in range(max(layers) + 1):
            handle = blocks[layer].register_forward_pre_hook(
                _capture_input(inputs_of, layer, max(layers)), with_kwargs=True
            )
            hooks.callback(handle.remove)
        model(**inputs)
    return torch.stack([inputs_of[layer] for layer in layers])


hidden_states = torch.inference_mode()(differentiable_states)


def _capture_input(inputs_of: dict[int, Tensor], layer: int, top: int) -> Any:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        inputs_of[layer] = args[0] if args else kwargs["hidden_states"]
        if layer == top:
            raise _Stop

    return hook


def _blocks(model: Any) -> nn.ModuleList | None:
    """The list of the model's layers, where it has one."""
    depth = model.config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return module
    return None


def load_part(kind: Any, name: str, folder: Path | None, **options: Any) -> Any:
    """Load by one of the Auto classes of `transformers`; what is on disk is not downloaded again.

    Before a download a short request checks that the hub answers: without a network its client
    would retry for half a minute.
    """
    if folder is not None:
        return _load(kind, name, str(folder), options)
    try:
        return _load(kind, name, name, {**options, "local_files_only": True})
    except MissingPart:
        _check_hub(name, options.get("revision"))
        return _load(kind, name, name, options)


def _load(kind: Any, name: str, where: str, options: dict[str, Any]) -> Any:
    try:
        return kind.from_pretrained(where, **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise MissingPart(f"{name!r} could not be loaded: {reason}") from error


def _check_hub(name: str, revision: str | None) -> None:
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, revision=revision, timeout=10)
    except Exception as error:  # each version of the client has network errors of its own
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise MissingPart(
            f"{name!r} could not be loaded: it is no folder, not in the hub's cache on disk, and"
            f" the hub did not give it ({reason}); without a network, give a model's folder"
        ) from error
