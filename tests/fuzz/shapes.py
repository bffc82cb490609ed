"""What is new in an execution: a cheap stand-in for the coverage of the code, which costs more than the execution.

The shape of a printed line is its words that occur in the texts of the program; what comes from the input drops out. An
input that makes the program print a line of a new shape has come to code that no input before it has come to.
"""

import ast
import re
from functools import lru_cache

from tests.fuzz.sandbox import Ended
from tests.runner import ROOT

WORD = re.compile(r"[A-Za-z]{3,}")
LINES, LENGTH = 60, 300  # of each stream, of each line
Shape = tuple[str, ...]


def shapes(target: str, ended: Ended) -> set[Shape]:
    """Return the shapes of what was printed, each with the target and the exit code."""
    known, head = vocabulary(), (target, str(ended.code))
    lines = [*ended.out.split("\n", LINES)[:LINES], *ended.err.split("\n", LINES)[:LINES]]
    return {(*head, *(word for word in WORD.findall(line[:LENGTH]) if word in known)) for line in lines}


@lru_cache
def vocabulary() -> frozenset[str]:
    """Return the words in the texts of the program, other than docstrings of single words."""
    words: set[str] = set()
    for path in (ROOT / "ragcontract").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                words.update(WORD.findall(node.value))
    return frozenset(words)
