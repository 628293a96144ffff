"""Which units of a cloud a metric moves."""

import numpy as np

from freight.clouds import Cloud, Kind


def tokens(cloud: Cloud) -> Cloud:
    """The encoder's units, sub-words or words, that have a vector; special ones are absent."""
    return cloud.only(~cloud.having(Kind.SPECIAL | Kind.ABSENT))


def all_tokens(cloud: Cloud) -> Cloud:
    """The encoder's units that have a vector, and special ones."""
    absent = cloud.having(Kind.ABSENT)
    return cloud.only(~absent) if absent.any() else cloud


def words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens; special tokens are absent."""
    return all_words(tokens(cloud))


def all_words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens, and special tokens."""
    continued = all_tokens(cloud).having(Kind.CONTINUATION)
    return all_tokens(cloud).merged(np.cumsum(~continued)) if continued.any() else all_tokens(cloud)
