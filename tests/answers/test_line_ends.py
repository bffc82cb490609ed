"""Where a text ends for a pattern: a dollar sign matches before a last line break, as in Python."""

import re

import pytest

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.regexes import compiled

PATTERNS = (
    "said$",
    "$",
    "^said$",
    r"said\s*$",
    r"said\n?$",
    "(a$|said$)",
    r"\w+$",
    "x*$",
    "[$]",
    r"said\Z",
    ".+",
    "(?m)said$",
)
TEXTS = ("", "\n", "said", "said\n", "said\n\n", "a said\nsaid\n", "said é\n", "é said\n", "$")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_match_ends_where_it_ends_in_python(pattern: str) -> None:
    for text in TEXTS:
        expected = [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]
        assert list(compiled(pattern).matches(Answer(text, compose=False))) == expected, text
