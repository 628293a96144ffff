"""The names of the methods that Java sources declare, as texts to train word vectors on.

    freight train word2vec src.zip --take examples/java_methods.py:method_names \
        --lang code --glob '*.java' -o names.kv

`--take FILE.py:FUNCTION` calls the function with the content of each file; it returns the texts.
Declarations are matched by a regular expression, with comments and strings removed before.
"""

import re
from functools import cache
from typing import Any


def method_names(source: str) -> list[str]:
    """The names of the methods that a source declares, in order, without constructors."""
    plain = _COMMENTS_AND_STRINGS.sub(lambda match: '""' if match[0][0] == '"' else " ", source)
    matches = _declaration().finditer(plain)
    return [match["name"] for match in matches if match["name"] not in _NEVER_A_NAME]


_COMMENTS_AND_STRINGS = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'  # a text block
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)+'"
    r"|//[^\n]*"
    r"|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)

# Words that are no type: before a name and a parenthesis they make a call, a constructor, a
# record or a pattern of it.
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
    """Nested brackets, to a fixed depth, so that matching takes linear time."""
    pattern = f"{left}{inside}*+{right}"
    for _ in range(4):
        pattern = f"{left}(?:{inside}++|{pattern})*+{right}"
    return pattern
