"""Tables of a page, usually docs/background/statistics.md, that a command makes, between two comments with a name."""

import sys
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "background" / "statistics.md"
END = "<!-- end -->"


def begin(name: str) -> str:
    """Return the comment at the start of a table."""
    return f"<!-- begin: {name} -->\n"


def table(page: str, name: str) -> str:
    """Return what stands on the page between a table's comments; empty if it has no such table."""
    return page.partition(begin(name))[2].partition(END)[0]


def rows(head: Sequence[str], body: Iterable[Sequence[str]], texts: int) -> str:
    """Return a Markdown table whose first columns are so many texts, and all others numbers."""
    lines = [head, [*["---"] * texts, *["---:"] * (len(head) - texts)], *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def share(number: float, of: int) -> str:
    """Write a share in percent, with a decimal where it is small; ``-`` of none."""
    if not of:
        return "-"
    percent = 100 * number / of
    return f"{percent:.1f}%" if percent < 10 else f"{percent:.0f}%"  # noqa: PLR2004


def precision(trials: int, of: float = 0.5) -> str:
    """Say how far a share near ``of`` of so many trials is off at most, 19 times in 20."""
    return f"give or take {100 * 1.96 * sqrt(of * (1 - of) / trials):.1f}%"


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Write a table into the page, and print it."""
    before, marker, rest = page.read_text(encoding="utf-8").partition(begin(name))
    if not marker:
        sys.exit(f"{page.name} has no {begin(name).strip()}")
    page.write_text(before + marker + text + END + rest.partition(END)[2], encoding="utf-8")
    print(text)
