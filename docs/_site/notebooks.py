"""The notebooks as pages: their text, their code, and what it printed when they were last run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook beside the documentation."""
    folder = Path(config.docs_dir).parent / "notebooks"
    for path in sorted(folder.glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        note = f"*This page is `notebooks/{path.name}`, which runs as it is.*"
        shown = [part for cell in cells for part in _cell(cell)]
        page = "\n\n".join((shown[0], note, *shown[1:]))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page))
    return files


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
    for output in cell.get("outputs", []):
        data = output.get("data", {"text/plain": output.get("text", [])})
        if "text/html" in data:
            yield f'<div class="output">{"".join(data["text/html"])}</div>'
        else:
            yield f"```text\n{''.join(data['text/plain']).rstrip()}\n```"
