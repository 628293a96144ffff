"""What can be looked at: pages, heat maps and files, through a door into the reports."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from freight.errors import InvalidInput, MissingPart

ENDINGS = (".html", ".json", ".png", ".svg", ".pdf")


class Pictured(ABC):
    """What can be drawn, as a page or as heat maps, where the extra `report` is installed."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """In the words of JSON."""

    def html(self) -> str:
        """A page that is one file."""
        from freight.report.explanation import page

        shown: Any = self
        return page(shown)

    def plot(self, path: str | Path | None = None) -> Any:
        """Heat maps, a figure of matplotlib; written to a path (.png .svg .pdf) where given."""
        from freight.report.heatmaps import plot

        shown: Any = self
        return plot(shown, path)

    def save(self, path: str | Path) -> None:
        """Write it as what the path ends in: .html .json .png .svg .pdf."""
        place = Path(path)
        check_place(place)
        if place.suffix == ".json":
            part = place.with_name(place.name + ".part")
            part.write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n", "ascii")
            part.replace(place)
        elif place.suffix == ".html":
            from freight.report.html import write_page

            write_page(self.html(), place)
        else:
            self.plot(place)

    def _repr_html_(self) -> str | None:
        from freight.report.explanation import fragment, fragment_style

        shown: Any = self
        try:
            return f"<style>{fragment_style()}</style>{fragment(shown)}"
        except MissingPart:  # a notebook has another way to show it
            return None


def check_place(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{path} ends in none of {' '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    if path.suffix == ".html":
        from freight.report.html import check_page

        check_page(path)


def plain(value: Any) -> Any:
    """The same in the words of JSON; what is no finite number is null."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
