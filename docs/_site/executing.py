"""Runs the notebooks and keeps what they print: `make notebooks`."""

import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

BOOKS: Any = nbformat
_KEPT = ("text/plain", "text/html")


def executed(path: Path) -> Any:
    """The notebook as it comes out of a kernel that is started for it, in its own folder."""
    book = BOOKS.read(path, as_version=4)
    place = {"metadata": {"path": path.parent}}
    nbclient.NotebookClient(book, timeout=600, record_timing=False, resources=place).execute()
    for cell in book.cells:
        if "outputs" in cell:
            cell.outputs = [_small(one) for one in cell.outputs if one.get("name") != "stderr"]
    book.metadata.language_info = {"name": "python"}
    return book


def _small(output: Any) -> Any:
    if "data" in output:
        output.data = {kind: output.data[kind] for kind in _KEPT if kind in output.data}
    return output


if __name__ == "__main__":
    for name in sys.argv[1:]:
        BOOKS.write(executed(Path(name)), name)
