"""Method names out of Java sources: what a declaration looks like, comments and strings aside."""

import re
from functools import cache
from typing import Any


def method_names(source: str) -> list[str]:
    """The names of the methods that a source declares, in order; constructors are none."""
    plain = _ASIDE.sub(lambda found: '""' if found[0][0] == '"' else " ", source)
    found = _declaration().finditer(plain)
    return [one["name"] for one in found if one["name"] not in _NEVER_A_NAME]


_ASIDE = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'  # a text block
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)+'"
    r"|//[^\n]*"
    r"|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)

# A word before a name and a parenthesis that is no type: then it is a call, a constructor, a
# record or a pattern.
_NEVER_A_TYPE = (
    "abstract|assert|break|case|catch|class|continue|default|do|else|enum|extends|final|finally|if"
    "|implements|import|instanceof|interface|native|new|package|permits|private|protected|public"
    "|record|return|sealed|static|strictfp|super|switch|synchronized|this|throw|throws|transient"
    "|try|volatile|when|while|yield"
)
_NEVER_A_NAME = {"catch", "for", "if", "switch", "synchronized", "try", "while"}


@cache
def _declaration() -> Any:
    """A type, a name, parameters in parentheses, and then a body, a semicolon or a default."""
    import regex

    identifier = r"[\p{L}_$][\p{L}\p{N}_$]*+"
    inner = rf"(?:\s*+\.\s*+(?!new\b){identifier})*+"
    arguments = _nested("<", r"[^<>(){};=]", ">")
    parameters = _nested(r"\(", r"[^();]", r"\)")
    return regex.compile(
        rf"(?<![\p{{L}}\p{{N}}_$.@])(?!(?:{_NEVER_A_TYPE})\b)"
        rf"{identifier}{inner}(?:\s*+{arguments})?+{inner}(?:\s*+\[\s*+\])*+"
        rf"(?:(?<=[>\]])\s*+|\s++)"
        rf"(?P<name>{identifier})\s*+"
        rf"{parameters}(?:\s*+\[\s*+\])*+(?:\s*+throws\b[^(){{}};]++)?+\s*+(?:[{{;]|default\b)"
    )


def _nested(left: str, inside: str, right: str) -> str:
    """Brackets in brackets, to a depth that holds the time to what the length of the text is."""
    pattern = f"{left}{inside}*+{right}"
    for _ in range(4):
        pattern = f"{left}(?:{inside}++|{pattern})*+{right}"
    return pattern
