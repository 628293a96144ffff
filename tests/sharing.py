"""What costs much to make and never changes is made once for each process of a test run.

The weights of the encoders of our extras, their tokenizers and what standardisation fits to them
are read and computed for the first metric that needs them; each later one gets the same objects.
Nothing that a test checks is skipped: texts are encoded and problems are solved as often as they
are asked for. A test of loading itself asks for the fixture `unshared`.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import Any

import pytest
import torch

import freight
from freight import kernels
from freight.core.types import Encoder
from freight.core.weightings import Standardised
from freight.encoders import EMBEDDED, MULTILINGUAL, PACKAGED
from freight.encoders.cache import MemoryCached
from freight.encoders.transformer import Transformer

SLOW = (
    "tests/run/",
    "tests/docs/",
    "docs/",
    "tests/serve/",
    "tests/release/",
    "tests/interop/",
    "tests/encoders/",
)
"""Begun first, so that workers which take one file after the other end at about the same time."""


class Sharing:
    """Computed attributes of equal objects, kept for all of them."""

    def __init__(self) -> None:
        self._originals: list[tuple[type, str, Any]] = []

    def share(self, owner: type, name: str, wanted: Callable[[Any], Hashable | None]) -> None:
        """Compute an attribute once for each key; where the key is None, for each object."""
        original = owner.__dict__[name]
        known: dict[Hashable, Any] = {}

        def shared(self: Any) -> Any:
            key = wanted(self)
            if key is None:
                return original.func(self)
            if key not in known:
                known[key] = original.func(self)
            return known[key]

        replacement = cached_property(shared)
        replacement.__set_name__(owner, name)
        self._originals.append((owner, name, original))
        setattr(owner, name, replacement)

    def stop(self) -> None:
        """Put the attributes back as they were."""
        while self._originals:
            setattr(*self._originals.pop())

    def start(self) -> None:
        """Share the encoders of our extras, and what is computed from them."""
        for name in _computed(Transformer):
            if "device" not in name:  # the one that there is depends on what a test pretends
                self.share(Transformer, name, _of_extra)
        for name in _computed(Standardised):
            self.share(Standardised, name, lambda pooling: _of_extra(pooling.encoder) and pooling)


def _computed(owner: type) -> list[str]:
    return [name for name, value in vars(owner).items() if isinstance(value, cached_property)]


def _of_extra(encoder: Any) -> Hashable | None:
    known = isinstance(encoder, Transformer) and encoder.name in (EMBEDDED, MULTILINGUAL)
    return encoder if known else None


_SHARING = Sharing()


@pytest.fixture(scope="session", autouse=True)
def _shared() -> Iterator[None]:
    _SHARING.start()
    yield
    _SHARING.stop()


@pytest.fixture
def unshared() -> Iterator[None]:
    """Everything is loaded anew inside this test."""
    _SHARING.stop()
    yield
    _SHARING.start()


@pytest.fixture(autouse=True)
def _as_many_threads_as_before() -> Iterator[None]:
    """A number of threads that a test sets ends with it: workers that have more than cores wait."""
    before = kernels.get_kernel_threads(), torch.get_num_threads()
    yield
    if (kernels.get_kernel_threads(), torch.get_num_threads()) != before:
        kernels.set_kernel_threads(before[0])
        torch.set_num_threads(before[1])


def need_encoder(name: str) -> None:
    """Skip a test where the packages of an encoder are not installed."""
    if not PACKAGED[name].is_installed:
        pytest.skip(f"{name} is not installed: {PACKAGED[name].install}")


@pytest.fixture(scope="session")
def embedded() -> Encoder:
    """The embedded encoder; a text that several tests score is encoded once."""
    return MemoryCached(freight.encoder(EMBEDDED))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow folders first; within a folder the order stays."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOW))
