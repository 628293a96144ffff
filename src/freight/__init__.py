"""Score generated text by optimal transport.

What is public is listed here and lives elsewhere: a name is imported when it is first used, so that
`freight --help` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from freight import moved

if TYPE_CHECKING:
    from freight import loss as loss
    from freight.core.critical import critical_differences
    from freight.core.metric import Metric
    from freight.core.pipeline import score_stream, score_together
    from freight.core.result import Column, Result
    from freight.data.judgement_files import read_judgements
    from freight.data.judgements import Judgements
    from freight.encoders import encoder, list_encoders, with_cache
    from freight.errors import FreightError, InvalidInput, MissingPart, NotConverged
    from freight.explain.comparison import Comparison, compare
    from freight.explain.explanation import Explanation
    from freight.kernels import set_threads
    from freight.learn.word_vectors import features
    from freight.metrics import default_encoder, list_metrics, load, parameters, presets, score
    from freight.run.decoding import Choice, mbr
    from freight.transport.barycenters import barycenter
    from freight.transport.solvers import solve
    from freight.transport.types import Barycenters, Plans, Problem

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
    "critical_differences",
    "default_encoder",
    "encoder",
    "features",
    "list_encoders",
    "list_metrics",
    "load",
    "mbr",
    "parameters",
    "presets",
    "read_judgements",
    "score",
    "score_stream",
    "score_together",
    "set_threads",
    "solve",
    "with_cache",
]

_HOMES = {
    "metrics": ("default_encoder", "list_metrics", "load", "parameters", "presets", "score"),
    "data.judgement_files": ("read_judgements",),
    "data.judgements": ("Judgements",),
    "run.decoding": ("Choice", "mbr"),
    "encoders": ("encoder", "list_encoders", "with_cache"),
    "errors": ("FreightError", "InvalidInput", "MissingPart", "NotConverged"),
    "explain.comparison": ("Comparison", "compare"),
    "explain.explanation": ("Explanation",),
    "learn.word_vectors": ("features",),
    "kernels": ("set_threads",),
    "core.metric": ("Metric",),
    "core.critical": ("critical_differences",),
    "core.result": ("Column", "Result"),
    "core.pipeline": ("score_stream", "score_together"),
    "transport.barycenters": ("barycenter",),
    "transport.solvers": ("solve",),
    "transport.types": ("Barycenters", "Plans", "Problem"),
}

_MODULES = ("loss",)

moved.install()


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
