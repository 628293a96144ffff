"""What can go wrong, said so that the reader knows what to change."""


class FreightError(Exception):
    """Anything a caller can mend: bad input, a missing part, a problem without an answer."""


class InvalidInput(FreightError, ValueError):
    """An argument that cannot be used; the message names it and says what would do."""


class NotConverged(FreightError):
    """A solver stopped before its tolerance; the message says which problems, and how far off."""


class UnknownVocabulary(UserWarning):
    """Much of the texts is unknown to the encoder, so that scores say little of them."""


class UnreadLanguage(UnknownVocabulary):
    """The references are in a language that the encoder was not trained on."""


class UntunedLayer(UserWarning):
    """Nobody has measured which layer of the encoder suits: two thirds of its depth is a guess."""


class MissingPart(FreightError, ImportError):
    """Something that is installed or fetched apart is not here; the message says how to get it."""

    @classmethod
    def extra(cls, package: str, extra: str) -> "MissingPart":
        """The message for a package that one of our extras brings."""
        return cls(f"{package} is not installed; run  pip install 'freight[{extra}]'")
