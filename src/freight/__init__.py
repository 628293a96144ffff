"""Score generated text by optimal transport.

What is public is listed here and lives elsewhere: a name is imported when it is first used, so that
`freight --help` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freight import loss as loss
    from freight.catalogue import default_encoder, load, metrics, parameters, presets
    from freight.comparing import Comparison, compare
    from freight.data.judgements import Judgements, read_judgements
    from freight.decoding import Choice, mbr
    from freight.encoding import encoder, encoders, with_cache
    from freight.errors import FreightError, InvalidInput, MissingPart, NotConverged
    from freight.explanations import Explanation
    from freight.features import features
    from freight.kernels import set_threads
    from freight.metric import Metric
    from freight.results import Column, Result
    from freight.scoring import score_stream, score_together
    from freight.solvers import barycenter, solve
    from freight.types import Barycenters, Plans, Problem

__version__ = "0.1.0"

__all__ = [
    "Barycenters",
    "Choice",
    "Column",
    "Comparison",
    "Explanation",
    "FreightError",
    "InvalidInput",
    "Judgements",
    "Metric",
    "MissingPart",
    "NotConverged",
    "Plans",
    "Problem",
    "Result",
    "barycenter",
    "compare",
    "default_encoder",
    "encoder",
    "encoders",
    "features",
    "load",
    "mbr",
    "metrics",
    "parameters",
    "presets",
    "read_judgements",
    "score_stream",
    "score_together",
    "set_threads",
    "solve",
    "with_cache",
]

_HOMES = {
    "catalogue": ("default_encoder", "load", "metrics", "parameters", "presets"),
    "data.judgements": ("Judgements", "read_judgements"),
    "decoding": ("Choice", "mbr"),
    "encoding": ("encoder", "encoders", "with_cache"),
    "errors": ("FreightError", "InvalidInput", "MissingPart", "NotConverged"),
    "comparing": ("Comparison", "compare"),
    "explanations": ("Explanation",),
    "features": ("features",),
    "kernels": ("set_threads",),
    "metric": ("Metric",),
    "results": ("Column", "Result"),
    "scoring": ("score_stream", "score_together"),
    "solvers": ("barycenter", "solve"),
    "types": ("Barycenters", "Plans", "Problem"),
}

_MODULES = ("loss",)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"freight.{name}")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"freight.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'freight' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
