"""Which of the packages that we ask for are here, in which versions, and whether they import."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import (
    PackageNotFoundError,
    metadata,
    packages_distributions,
    requires,
    version,
)

from freight.doctor.troubles import Trouble
from freight.errors import FreightError

_OURS, _ALL = "freight", ("all", "dev")


@dataclass(frozen=True)
class Package:
    """A package that we ask for: the versions that would do, the one that is here, what is wrong.

    `error` is why it cannot be imported.
    """

    name: str
    wanted: str
    version: str | None = None
    fits: bool = False
    error: str | None = None

    @property
    def trouble(self) -> Trouble | None:
        """What to do about it, where it is missing, too old or broken."""
        asked = f"'{self.name}{self.wanted}'"
        if self.version is None:
            return Trouble(f"{self.name} is not installed", f"pip install {asked}")
        if not self.fits:
            what = f"{self.name} {self.version} is installed, {self.wanted} is needed"
            return Trouble(what, f"pip install --upgrade {asked}")
        if self.error:
            what = f"{self.name} {self.version} cannot be imported: {self.error}"
            return Trouble(what, f"pip install --force-reinstall {asked}")
        return None


@dataclass(frozen=True)
class Extra:
    """What is installed together on request."""

    name: str
    packages: tuple[Package, ...]

    @property
    def installed(self) -> bool:
        """Whether all of it is here, in whatever state."""
        return all(package.version for package in self.packages)

    @property
    def install(self) -> str:
        """The command that brings it."""
        return f"pip install '{_OURS}[{self.name}]'"


def requirements() -> tuple[Package, ...]:
    """The packages that nothing works without."""
    return tuple(_looked_at(_asked("")))


def extras() -> tuple[Extra, ...]:
    """The extras, less those that gather others; what is needed anyway is not counted in."""
    core = _asked("")
    names = [name for name in metadata(_OURS).get_all("Provides-Extra") or () if name not in _ALL]
    asked = {name: sorted({*_asked(name)} - {*core}) for name in names}
    return tuple(Extra(name, tuple(_looked_at(of))) for name, of in asked.items())


@cache
def _asked(extra: str) -> tuple[tuple[str, str], ...]:
    """Names and versions of what is asked for here, with or without an extra."""
    from packaging.requirements import Requirement

    try:
        every = [Requirement(text) for text in requires(_OURS) or ()]
    except PackageNotFoundError:
        raise FreightError(
            "freight is imported from a folder that is not installed; pip install -e ."
        ) from None
    mine = (x for x in every if not x.marker or x.marker.evaluate({"extra": extra}))
    return tuple((one.name, str(one.specifier)) for one in mine)


def _looked_at(asked: Iterable[tuple[str, str]]) -> Iterable[Package]:
    for name, wanted in asked:
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Package(name, wanted)
        else:
            yield Package(name, wanted, found, _fits(found, wanted), _failure(name))


def _fits(found: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(found, prereleases=True)


@cache
def _failure(package: str) -> str | None:
    """Why a package cannot be imported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(_modules().get(_plain(package), _plain(package)))
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return None


@cache
def _modules() -> dict[str, str]:
    """The module that each package is imported as, where that is not its own name."""
    found: dict[str, list[str]] = {}
    for module, packages in packages_distributions().items():
        for package in packages:
            found.setdefault(_plain(package), []).append(module)
    return {
        name: min((m for m in modules if m[0] != "_"), key=lambda m: (_plain(m) != name, m))
        for name, modules in found.items()
        if any(m[0] != "_" for m in modules)
    }


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
