"""Adapters: small differences to an encoder's weights, fitted to human ratings, in one file.

An adapter belongs to the weights that it was fitted on, which it knows by their hash, and to a
metric, whose parameters it may set. The differences are added to the weights once, when
the encoder is loaded: an encoder with an adapter is as fast as without.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from freight.core.types import Encoder, name_of
from freight.data.output import one_line_errors, write_whole
from freight.encoders import encoder
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import StrPath

FILE = "adapter.safetensors"
"""The file of an adapter in its folder."""

_KEY = "freight"
"""Under which the metadata of a file hold what is not a tensor."""

OF_METRIC = "metric."
"""How the names of tensors begin that belong to the metric, not to the encoder."""

LEFT, RIGHT = ".a", ".b"
"""The endings of the two factors of a difference of low rank."""

_NAME = re.compile(r"[\w.-]{1,60}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Adapter:
    """Differences to the parameters of an encoder, and the settings of a metric that go with them.

    `tensors` are differences by the parameter's name; a pair `NAME.a`, `NAME.b` is one of low rank,
    their product. Tensors whose names begin with `metric.` are the metric's own. `encoder` is the
    name of the encoder that they were fitted on, `weights` the sha256 of its weights. `strength`
    scales them: 0 is the untrained metric. `provenance` says what they were fitted on, with which
    seed and version, and what they gained.
    """

    name: str
    metric: str
    encoder: str
    weights: str
    tensors: Mapping[str, Tensor]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    strength: float = 1.0

    def __post_init__(self) -> None:
        """Round to what a file holds, so that an adapter in memory is the one that is saved."""
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"{self.name!r} is no name of an adapter; use up to 60 letters, digits, _ . -"
            )
        if not math.isfinite(self.strength) or self.strength < 0:
            raise InvalidInput(f"strength={self.strength} of {self.name}: must be 0 or more")
        rounded = {
            name: tensor.detach().to("cpu", torch.float16).contiguous()
            for name, tensor in sorted(self.tensors.items())
        }
        for name, tensor in rounded.items():
            if not bool(torch.isfinite(tensor).all()):
                raise InvalidInput(f"{name} of the adapter {self.name} is not finite everywhere")
        object.__setattr__(self, "tensors", rounded)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Adapter) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str]:
        return self.name, self.digest

    @property
    def identity(self) -> str:
        """What a signature says of it: the name, the strength unless it is 1, and a hash."""
        scaled = "" if self.strength == 1.0 else f"*{self.strength:g}"
        return f"{self.name}{scaled}-{self.digest[:8]}"

    @cached_property
    def digest(self) -> str:
        """The sha256 of all that a score depends on."""
        said = self.metric, self.weights, dict(self.parameters), self.strength
        content = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
        for name, tensor in self.tensors.items():
            content.update(f"{name}{tuple(tensor.shape)}".encode())
            content.update(tensor.numpy().tobytes())
        return content.hexdigest()

    def scaled(self, strength: float) -> Adapter:
        """The same at another strength."""
        return replace(self, strength=float(strength))

    def tensor(self, name: str) -> Tensor | None:
        """One of the tensors at this strength, if it is there."""
        known = self.tensors.get(name)
        return None if known is None else self.strength * known.float()

    def differences(self) -> Iterator[tuple[str, Tensor]]:
        """By parameter of the encoder, what is to be added to it."""
        for name, tensor in self.tensors.items():
            if name.startswith(OF_METRIC):
                continue
            stem, other = name.removesuffix(LEFT), f"{name.removesuffix(LEFT)}{RIGHT}"
            if stem != name and other in self.tensors:
                yield stem, self.strength * (tensor.float() @ self.tensors[other].float())
            elif not (name.endswith(RIGHT) and f"{name[:-2]}{LEFT}" in self.tensors):
                yield name, self.strength * tensor.float()

    @torch.no_grad()
    def apply(self, model: nn.Module) -> None:
        """Add the differences to the parameters of a model, in place."""
        own = dict(model.named_parameters())
        for name, difference in self.differences():
            if name not in own or own[name].shape != difference.shape:
                raise InvalidInput(
                    f"the adapter {self.name} changes {name} {tuple(difference.shape)}, which the"
                    f" encoder does not have; it was fitted on {self.encoder}"
                )
            changed = own[name].float() + difference.to(own[name].device)
            own[name].copy_(changed)

    def check_encoder(self, name: str, weights: str) -> None:
        """Refuse an encoder of other weights than those that it was fitted on."""
        if weights != self.weights:
            raise InvalidInput(
                f"the adapter {self.name} is for {self.encoder} (weights {self.weights[:12]}), not"
                f" for {name} (weights {weights[:12]}); give the encoder it was fitted on, or train"
                " one for this encoder"
            )

    def settings(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """The metric's own settings at this strength, given its defaults.

        Numbers lie between the default and the fitted value; what is no number cannot.
        """
        if self.strength == 0.0:
            return {}
        return {
            name: _between(defaults.get(name), value, self.strength)
            for name, value in self.parameters.items()
        }

    def save(self, path: StrPath) -> Path:
        """Write it to a folder, which is made, or to FILE.safetensors; returns the file."""
        target = Path(path)
        if target.suffix != Path(FILE).suffix:
            with one_line_errors(target):
                target.mkdir(parents=True, exist_ok=True)
            target = target / FILE
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "tensors"}
        write_whole(target, save(dict(self.tensors), {_KEY: json.dumps(said)}))
        return target


def _between(default: Any, fitted: Any, strength: float) -> Any:
    numbers = [one for one in (default, fitted) if isinstance(one, float) and math.isfinite(one)]
    if len(numbers) < 2:
        return fitted
    return numbers[0] + strength * (numbers[1] - numbers[0]) if strength != 1.0 else fitted


def read_adapter(source: StrPath | Adapter) -> Adapter:
    """The adapter in a folder or a file, the one that is shipped by this name, or the one given."""
    if isinstance(source, Adapter):
        return source
    path = Path(source).expanduser()
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        shipped = {one.stem: one for one in _shipped_files()}
        if str(source) not in shipped:
            raise InvalidInput(
                f"there is no adapter {source}; give a folder that `freight train metric` wrote,"
                f" {', '.join(('its file', *shipped))}"
            )
        path = shipped[str(source)]
    return _read_file(path)


def find_shipped(name: str, encoder: str, weights: str) -> Adapter:
    """The adapter of this name that comes with the library for an encoder of these weights."""
    known = [read_adapter(path) for path in _shipped_files() if path.stem.startswith(f"{name}.")]
    for adapter in known:
        if adapter.weights == weights:
            return adapter
    raise InvalidInput(
        f"{name} comes with the library for {', '.join(one.encoder for one in known)}, not for"
        f" {encoder} (weights {weights[:12]}); train an adapter for it, `freight train metric`"
    )


def with_adapter(chosen: str | Encoder, adapter: StrPath | Adapter) -> Encoder:
    """The same encoder with the differences of an adapter in its weights.

    An adapter is given by its folder, its file, its name where it is shipped, or as it is.
    """
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    made, differences = encoder(chosen), read_adapter(adapter)
    if adapter_of(made) == differences:
        return made
    if isinstance(made, CachedEncoder):
        return replace(made, inner=with_adapter(made.inner, differences))
    if not isinstance(made, Transformer):
        raise InvalidInput(
            f"the adapter {differences.name} is for {differences.encoder}, and"
            f" {name_of(made) or made.identity} has no weights that it could change"
        )
    differences.check_encoder(made.name, made.weights_hash)
    return replace(made, adapter=differences)


def without_adapter(chosen: Encoder) -> Encoder:
    """The same encoder with its own weights."""
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return replace(chosen, inner=without_adapter(chosen.inner))
    return replace(chosen, adapter=None) if isinstance(chosen, Transformer) else chosen


def shipped_adapter(name: str, chosen: Encoder) -> Adapter | None:
    """The adapter of this name that comes with the library for an encoder; others are refused.

    None for vectors of tests, which have no weights.
    """
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.hashed import Hashed
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return shipped_adapter(name, chosen.inner)
    if isinstance(chosen, Hashed):
        return None
    weights = chosen.weights_hash if isinstance(chosen, Transformer) else "none"
    return find_shipped(name, name_of(chosen) or chosen.identity, weights)


def adapter_of(chosen: Encoder) -> Adapter | None:
    """The adapter of an encoder, if it has one."""
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return adapter_of(chosen.inner)
    return chosen.adapter if isinstance(chosen, Transformer) else None


def weights_of(chosen: Encoder) -> str:
    """The hash of an encoder's own weights and words, and its precision; empty without weights."""
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return weights_of(chosen.inner)
    return f"{chosen.version}/{chosen.dtype}" if isinstance(chosen, Transformer) else ""


def _shipped_files() -> list[Path]:
    return sorted((Path(__file__).parent / "shipped").glob("*.safetensors"))


def _read_file(path: Path) -> Adapter:
    try:
        with safe_open(path, framework="pt") as stored:
            said = json.loads((stored.metadata() or {})[_KEY])
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        return Adapter(**said, tensors=tensors)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is no adapter: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return "its metadata do not say what it was fitted on"
    return (str(error).strip() or type(error).__name__).splitlines()[0]
