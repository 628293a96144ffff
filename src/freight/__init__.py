"""Score generated text by optimal transport."""

from freight.errors import FreightError, InvalidInput, NotConverged
from freight.kernels import set_threads
from freight.solvers import barycenter, solve
from freight.types import Barycenters, Plans, Problem

__all__ = [
    "Barycenters",
    "FreightError",
    "InvalidInput",
    "NotConverged",
    "Plans",
    "Problem",
    "barycenter",
    "set_threads",
    "solve",
]

__version__ = "0.1.0"
