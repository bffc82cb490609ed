"""Finds ids that probably name a forbidden document in another form: ``docs/Secret.md#3`` for ``secret``.

Two ids are lookalikes if they are equal but for case, blanks, invisible characters, percent-encoding, a leading ``./``,
leading zeros of a number, and what only one of them has: a folder in front, an extension, a query as ``?page=2``, the
number of a chunk or of a copy at the end. Numbers on both sides make siblings, which ``policy_1`` and ``policy_2`` are.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import unquote

from ragcontract.core.id_forms import EXTENSION, without_suffix
from ragcontract.core.invisible import without_invisible

Part = Literal["suffix", "extension", "query"]
_NUMBER = re.compile("[-_ ]+[0-9]+")  # of a chunk, or of the second of two documents
_COPY = re.compile(r"[-_ ]*\([0-9]+\)$")  # secret (1).md
_TAKEN_OFF = 3  # parts, as in secret.en.md#3
_ENDS = (" ", ".", "/ ", "\\ ")  # what may follow the name of a file where ids are joined by blanks
_REMEMBERED = 10_000
_NOTHING: frozenset[Part] = frozenset()


class Lookalike(NamedTuple):
    """An id that a run has in place of a ``forbidden`` one; they may be ``identical`` to a reader, or ``numbered``."""

    forbidden: str
    found: str
    identical: bool
    numbered: bool


class _Spelling(NamedTuple):
    """What is left of an id: the ``file`` and its ``folder``, without the parts that were ``taken`` off."""

    file: str
    folder: str
    taken: frozenset[Part]
    number: bool  # whether the suffix is but a number, which may be a part of the name


def lookalikes(forbidden: Sequence[str], retrieved: Sequence[str]) -> Iterator[Lookalike]:
    """Yield each retrieved id that looks like a forbidden one, unless either is retrieved, or forbidden, as it is."""
    if not (likely := _likely(forbidden, retrieved)):
        return
    known: dict[str, list[tuple[str, _Spelling]]] = {}
    for doc_id in likely:
        for spelling in _spellings(doc_id) if doc_id not in retrieved else ():
            known.setdefault(spelling.file, []).append((doc_id, spelling))
    for found in dict.fromkeys(retrieved):
        pairs = ((doc_id, one, other) for other in _spellings(found) for doc_id, one in known.get(other.file, ()))
        of_found = (lookalike for pair in pairs if (lookalike := _lookalike(found, *pair, retrieved)))
        if found not in forbidden and (lookalike := next(of_found, None)):
            yield lookalike


def _lookalike(found: str, doc_id: str, one: _Spelling, other: _Spelling, retrieved: Iterable[str]) -> Lookalike | None:
    """Return the lookalike that spellings of the same file make of a retrieved and a forbidden id, if they do."""
    shorter, longer = sorted((one.folder, other.folder), key=len)
    in_front = not shorter or shorter == longer or longer.endswith(f"/{shorter}")
    if not in_front or not one.taken.isdisjoint(other.taken):
        return None
    taken = one.taken | other.taken
    numbered = shorter == longer and taken == {"suffix"} and (one.number or other.number)
    if numbered and one.number and _has_sibling(other, retrieved):
        return None
    return Lookalike(doc_id, found, identical=shorter == longer and not taken, numbered=numbered)


def _likely(forbidden: Sequence[str], retrieved: Sequence[str]) -> dict[str, None]:
    """Return the forbidden ids, without those that clearly look like no retrieved one: almost all, and fast."""
    text = f"{' '.join(retrieved)} "
    if not text.isprintable():
        return dict.fromkeys(forbidden)
    text = text.casefold() if text.isascii() and "%" not in text else f"{_plain(text)} "
    return dict.fromkeys(doc_id for doc_id in forbidden if any(part in text for part in _necessary(doc_id)))


@lru_cache(_REMEMBERED)
def _necessary(doc_id: str) -> tuple[str, ...]:
    """Return texts of which a lookalike has one."""
    spellings = _spellings(doc_id)
    shortest = min((one.file for one in spellings if "suffix" not in one.taken), key=len)
    # The other id has no number where this one had one, so its file ends there.
    ends = (one.file + end for one in spellings if "suffix" in one.taken for end in _ENDS)
    return (shortest, *dict.fromkeys(ends))


def _plain(name: str) -> str:
    """Return an id as a reader sees it, without regard to case."""
    name = unquote(name) if "%" in name else name
    name = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return without_invisible(name).strip().casefold()


def _spellings(name: str) -> list[_Spelling]:
    """Return the id as it is, and without parts at its end."""
    path = _plain(name)
    if "/" in path or "\\" in path:
        path = "/".join([part for part in path.replace("\\", "/").split("/") if part and part != "."])
    elif path.isdecimal():
        path = path.lstrip("0") or "0"
    found: dict[str, tuple[frozenset[Part], bool]] = {path or name: (_NOTHING, False)}
    shortened = [path or name]
    for _ in range(_TAKEN_OFF):
        shortened = [rest for one in shortened for rest in _without_part(one, found)]
    spellings = []
    for rest, (taken, number) in found.items():
        folder, _, file = rest.rpartition("/")
        spellings.append(_Spelling(file, folder, taken, number))
    return spellings


def _without_part(path: str, found: dict[str, tuple[frozenset[Part], bool]]) -> list[str]:
    """Return a path without the number of a chunk, and without its extension, and note what is new in ``found``."""
    taken, number = found[path]
    new = []
    if (rest := without_suffix(path)) and rest not in found:
        is_number = (number or "suffix" not in taken) and _NUMBER.fullmatch(path, len(rest)) is not None
        found[rest] = taken | {"suffix"}, is_number
        new.append(rest)
    if path.endswith(")") and (rest := _COPY.sub("", path)) and rest not in found and rest != path:
        found[rest] = taken | {"suffix"}, True
        new.append(rest)
    if "?" in path and (rest := path.partition("?")[0].rstrip("/")) and rest not in found:
        found[rest] = taken | {"query"}, number
        new.append(rest)
    if "." in path and (rest := EXTENSION.sub("", path)) and rest not in found and not rest.endswith("/"):
        found[rest] = taken | {"extension"}, number
        new.append(rest)
    return new


def _has_sibling(found: _Spelling, retrieved: Iterable[str]) -> bool:
    """Return whether the id is retrieved with numbers too: beside faq_3, faq is not faq_2."""
    numbered = _Spelling(found.file, found.folder, frozenset({"suffix"}), number=True)
    return any(spelling == numbered for name in retrieved for spelling in _spellings(name))
