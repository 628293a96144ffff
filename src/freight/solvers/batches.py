"""What a solver is handed: a padded batch, and how to treat every problem in it."""

from typing import NamedTuple

from freight.types import Array


class Batch(NamedTuple):
    """Padded problems (pair, hyp unit, ref unit), with the sizes inside which units exist."""

    cost: Array
    hyp_weights: Array
    ref_weights: Array
    hyp_sizes: Array
    ref_sizes: Array


class Terms(NamedTuple):
    """The penalties and the blur, how small a gap is asked for, and when to give up."""

    hyp: float
    ref: float
    epsilon: float
    tolerance: float
    cap: int


class Solved(NamedTuple):
    """A plan for every problem, how far from optimal it may be, and whether that will do."""

    flow: Array
    gap: Array
    converged: Array
