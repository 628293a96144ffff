"""Which units of a cloud a metric moves."""

import numpy as np

from freight.clouds import Cloud, Kind


def tokens(cloud: Cloud) -> Cloud:
    """Sub-word tokens; special ones are absent."""
    return cloud.only(~cloud.having(Kind.SPECIAL))


def all_tokens(cloud: Cloud) -> Cloud:
    """Sub-word tokens and special ones."""
    return cloud


def words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens; special tokens are absent."""
    return all_words(tokens(cloud))


def all_words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens, and special tokens."""
    begins = ~cloud.having(Kind.CONTINUATION)
    return cloud.merged(np.cumsum(begins))
