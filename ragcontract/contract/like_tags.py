"""Finds tags that are like a tag of the configuration: their queries are left out of what it says of that one."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.invisible import without_invisible
from ragcontract.core.numbers import count
from ragcontract.files.schema import shown


def like_tags(queries: Collection[GoldenQuery], named: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each tag that differs from a ``named`` one only in case, blanks, ``-``, ``_`` or unseen.

    A query that has the named tag, too, is not left out. A named tag that no query has is another mistake.
    """
    known = {tag for query in queries for tag in query.tags}
    names = dict.fromkeys(tag for tag in named if tag in known)
    by_form: dict[str, str] = {}
    for name in names:
        by_form.setdefault(_form(name), name)
    apart: dict[str, list[GoldenQuery]] = {}
    for query in queries:
        for tag in query.tags:
            if tag not in names and by_form.get(_form(tag), tag) not in {tag, *query.tags}:
                apart.setdefault(tag, []).append(query)
    for tag, having in apart.items():
        meant = by_form[_form(tag)]
        yield (
            f"{having[0].location}: tags: {shown(tag)} of {count(len(having), 'query')} is another tag than "
            f"{shown(meant)}, which the configuration or --tag names; write both the same way if they are one"
        )


def _form(tag: str) -> str:
    plain = unicodedata.normalize("NFKC", without_invisible(tag)).casefold()
    return "".join(char for char in plain if not (char.isspace() or char in "-_"))
