"""Writes the tables of simulations into docs/choosing-limits.md, each between its two comments."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.docs import replace_part

PAGE = Path(__file__).parent.parent / "docs" / "choosing-limits.md"


def table(head: Sequence[str], body: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """Return a Markdown table; its first ``texts`` columns are text, and all others are numbers."""
    rows = [head, ["---"] * texts + ["---:"] * (len(head) - texts), *body]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def write(name: str, content: str, page: Path = PAGE) -> None:
    """Replace the part ``name`` of the page, and print it."""
    page.write_text(replace_part(page.read_text(encoding="utf-8"), name, content), encoding="utf-8")
    print(content)


def share(part: int, whole: int) -> str:
    """Write a share in percent; a dash where there is nothing to have a share of."""
    return f"{part / whole:.0%}" if whole else "–"
