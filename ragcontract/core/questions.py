"""Questions: how duplicates are recognized, and the ids that are made from questions."""

import re
import unicodedata
from collections.abc import Collection, Iterable

from ragcontract.core import bounds

# The headers of a column of questions, ignoring case, blanks, hyphens and underscores.
COLUMNS = ("question", "query", "user input", "prompt", "input", "text")


def same_question(question: str) -> str:
    """Return a key that questions share if they differ only in case, spaces, character width or final punctuation."""
    folded = " ".join(unicodedata.normalize("NFKC", question).casefold().split())
    return folded.rstrip("?!. ") or folded


def column_name(header: str) -> str:
    """Return the name of a column as it is recognized: without case, hyphens and underscores."""
    return " ".join(re.split(r"[\s_-]+", header.strip().casefold()))


def unique_slugs(questions: Iterable[str], others: Collection[str] = ()) -> list[str]:
    """Return a unique id for each question: its first words, as in ``how-many-days``, with a number if taken.

    ``others`` are ids that are taken already.
    """
    taken = set(others)
    slugs = []
    for number, question in enumerate(questions, start=1):
        base = name = _slug(question) or f"question-{number}"
        more = 1
        while name in taken:
            more += 1
            name = f"{base}-{more}"
        taken.add(name)
        slugs.append(name)
    return slugs


def _slug(question: str) -> str:
    plain = "".join(
        char for char in unicodedata.normalize("NFKD", question.casefold()) if not unicodedata.combining(char)
    )
    words = re.findall(r"[a-z0-9]+", plain)
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[: bounds.SLUG]
        if len(longer) > bounds.SLUG:
            break
        slug = longer
    return slug
