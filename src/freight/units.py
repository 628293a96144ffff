"""Which units of a cloud a metric moves."""

from freight.clouds import Cloud, Kind


def tokens(cloud: Cloud) -> Cloud:
    """Sub-word tokens; special ones are absent."""
    return cloud.only(~cloud.having(Kind.SPECIAL))


def all_tokens(cloud: Cloud) -> Cloud:
    """Sub-word tokens and special ones."""
    return cloud
