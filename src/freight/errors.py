"""What can go wrong, said so that the reader knows what to change."""


class FreightError(Exception):
    """Anything a caller can mend: bad input, a missing part, a problem without an answer."""


class InvalidInput(FreightError, ValueError):
    """An argument that cannot be used; the message names it and says what would do."""


class NotConverged(FreightError):
    """A solver stopped before its tolerance; the message says which problems, and how far off."""
