"""Finds ids that probably name a forbidden document in another form: ``docs/Secret.md#3`` for ``secret``.

Two ids are lookalikes if they are equal except for case, blanks, invisible characters, percent-encoding, a leading
``./``, leading zeros of a number, and parts that only one of them has. Such a part is a folder in front, an extension,
a query such as ``?page=2``, or the number of a chunk or a copy at the end. If both have a number, as ``policy_1`` and
``policy_2`` do, they are siblings, not lookalikes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import unquote

from ragcontract.core.id_forms import EXTENSION, without_suffix
from ragcontract.core.invisible import folded

Part = Literal["suffix", "extension", "query"]
_NUMBER = re.compile("[-_ ]+[0-9]+")  # of a chunk, or of the second of two documents
_COPY = re.compile(r"[-_ ]*\([0-9]+\)$")  # secret (1).md
_TAKEN_OFF = 3  # parts, as in secret.en.md#3
_ENDS = (" ", ".", "/ ", "\\ ")  # what may follow the name of a file where ids are joined by blanks
_REMEMBERED = 10_000
_NOTHING: frozenset[Part] = frozenset()


class Lookalike(NamedTuple):
    """An id that a run has in place of a forbidden one."""

    forbidden: str
    actual: str
    identical: bool  # they look the same to a reader
    numbered: bool  # only a number at the end, which may be a part of the name, tells them apart


class _Spelling(NamedTuple):
    """An id without some of its parts."""

    file: str
    folder: str
    taken: frozenset[Part]  # the parts that were taken off
    number: bool  # whether the suffix is only a number, which may be a part of the name


def lookalikes(forbidden: Sequence[str], retrieved: Sequence[str]) -> Iterator[Lookalike]:
    """Yield each retrieved id that looks like a forbidden one.

    Ids that are both retrieved and forbidden are left out, because nothing needs to be guessed about them.
    """
    if not (likely := _likely(forbidden, retrieved)):
        return
    known: dict[str, list[tuple[str, _Spelling]]] = {}
    for doc_id in likely:
        for spelling in _spellings(doc_id) if doc_id not in retrieved else ():
            known.setdefault(spelling.file, []).append((doc_id, spelling))
    for retrieved_id in dict.fromkeys(retrieved):
        similar = (
            lookalike
            for theirs in _spellings(retrieved_id)
            for doc_id, ours in known.get(theirs.file, ())
            if (lookalike := _lookalike(doc_id, ours, retrieved_id, theirs, retrieved))
        )
        if retrieved_id not in forbidden and (lookalike := next(similar, None)):
            yield lookalike


def _lookalike(
    forbidden_id: str, ours: _Spelling, retrieved_id: str, theirs: _Spelling, retrieved: Iterable[str]
) -> Lookalike | None:
    """Return the lookalike, if these spellings of the two ids, which are of the same file, make them one."""
    shorter, longer = sorted((ours.folder, theirs.folder), key=len)
    in_front = not shorter or shorter == longer or longer.endswith(f"/{shorter}")
    if not in_front or not ours.taken.isdisjoint(theirs.taken):
        return None
    taken = ours.taken | theirs.taken
    numbered = shorter == longer and taken == {"suffix"} and (ours.number or theirs.number)
    if numbered and ours.number and _has_sibling(theirs, retrieved):
        return None
    return Lookalike(forbidden_id, retrieved_id, identical=shorter == longer and not taken, numbered=numbered)


def _likely(forbidden: Sequence[str], retrieved: Sequence[str]) -> dict[str, None]:
    """Return the forbidden ids that may look like a retrieved one; a fast check, which excludes almost all."""
    text = f"{' '.join(retrieved)} "
    if not text.isprintable():
        return dict.fromkeys(forbidden)
    text = text.casefold() if text.isascii() and "%" not in text else f"{_plain(text)} "
    return dict.fromkeys(doc_id for doc_id in forbidden if any(part in text for part in _necessary(doc_id)))


@lru_cache(_REMEMBERED)
def _necessary(doc_id: str) -> tuple[str, ...]:
    """Return texts of which each lookalike of the id has at least one."""
    spellings = _spellings(doc_id)
    shortest = min((spelling.file for spelling in spellings if "suffix" not in spelling.taken), key=len)
    # Where a number was taken off this id, the other id has none, so its file ends there.
    ends = (spelling.file + end for spelling in spellings if "suffix" in spelling.taken for end in _ENDS)
    return (shortest, *dict.fromkeys(ends))


def _plain(name: str) -> str:
    """Return an id as a reader sees it, without regard to case."""
    name = unquote(name) if "%" in name else name
    return folded(name).strip()


def _spellings(name: str) -> list[_Spelling]:
    """Return the spellings of an id: the whole one, and those without parts at its end."""
    path = _plain(name)
    if "/" in path or "\\" in path:
        path = "/".join([part for part in path.replace("\\", "/").split("/") if part and part != "."])
    elif path.isdecimal():
        path = path.lstrip("0") or "0"
    known: dict[str, tuple[frozenset[Part], bool]] = {path or name: (_NOTHING, False)}
    shortened = [path or name]
    for _ in range(_TAKEN_OFF):
        shortened = [rest for whole in shortened for rest in _without_part(whole, known)]
    spellings = []
    for rest, (taken, number) in known.items():
        folder, _, file = rest.rpartition("/")
        spellings.append(_Spelling(file, folder, taken, number))
    return spellings


def _without_part(path: str, known: dict[str, tuple[frozenset[Part], bool]]) -> list[str]:
    """Return a path without one part at its end, in each way that is not known yet, and add these ways to ``known``."""
    taken, number = known[path]
    new = []
    if (rest := without_suffix(path)) and rest not in known:
        is_number = (number or "suffix" not in taken) and _NUMBER.fullmatch(path, len(rest)) is not None
        known[rest] = taken | {"suffix"}, is_number
        new.append(rest)
    if path.endswith(")") and (rest := _COPY.sub("", path)) and rest not in known and rest != path:
        known[rest] = taken | {"suffix"}, True
        new.append(rest)
    if "?" in path and (rest := path.partition("?")[0].rstrip("/")) and rest not in known:
        known[rest] = taken | {"query"}, number
        new.append(rest)
    if "." in path and (rest := EXTENSION.sub("", path)) and rest not in known and not rest.endswith("/"):
        known[rest] = taken | {"extension"}, number
        new.append(rest)
    return new


def _has_sibling(spelling: _Spelling, retrieved: Iterable[str]) -> bool:
    """Return whether the id is also retrieved with a number. If a run has faq and faq_3, faq is not faq_2."""
    numbered = _Spelling(spelling.file, spelling.folder, frozenset({"suffix"}), number=True)
    return any(other == numbered for name in retrieved for other in _spellings(name))
