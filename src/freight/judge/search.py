"""How settings are proposed: all of a grid, or where the last ones were good."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from freight.errors import InvalidInput, MissingPart
from freight.judge.grid import Choice, Dimension, Settings, Space, every

Search = Generator[tuple[float, Settings], float, None]
"""Gives settings, each with its share of the work, and is sent how good they were.

Higher is better, and nan is no answer.
"""


def search(space: Space, trials: int | None = None, seed: int = 0) -> Search:
    """All of a grid, or so many trials of the tree-structured Parzen estimator."""
    if trials is None:
        return _grid(space)
    if trials < 1:
        raise InvalidInput(f"trials={trials}; give a number from 1 up")
    return _parzen(_optuna(), space, trials, seed)


def _grid(space: Space) -> Search:
    several = every(space)
    for settings in several:
        yield 1 / len(several), settings


def _parzen(optuna: Any, space: Space, trials: int, seed: int) -> Search:
    said = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(said)
    asked = {name: _distribution(optuna, one) for name, one in space.items()}
    for _ in range(trials):
        trial = study.ask(asked)
        drawn = {name: _setting(space[name], trial.params[name]) for name in space}
        value = yield 1 / trials, drawn
        if np.isnan(value):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingPart.extra("optuna", "tune") from error
    return optuna


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    """Values by their place, since optuna takes no lists among them."""
    kinds = optuna.distributions
    if isinstance(dimension, Choice):
        return kinds.CategoricalDistribution(tuple(range(len(dimension.values))))
    if dimension.whole:
        return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _setting(dimension: Dimension, drawn: Any) -> Any:
    return dimension.values[drawn] if isinstance(dimension, Choice) else dimension.rounded(drawn)
