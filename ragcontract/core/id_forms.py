"""Finds ids that probably name the same thing in two forms: ``doc_sso`` as ``doc_sso#3`` or ``DOC_SSO.md``.

Two ids match only if they are equal once the parts that the match names are taken off one of them.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.safe_text import shorten

Part = Literal["blanks", "case", "leading zeros", "folder", "extension", "suffix"]
# Before the number of a chunk: doc_chunk_3.
_WORDS = ("chunk", "part", "passage", "page", "section", "node", "segment", "split", "paragraph", "block", "c", "p")
BLANK = "␣"
_DIGITS, _SEPARATORS = "0123456789", "_-#:/@| "
EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


Pair: TypeAlias = tuple[str, str, tuple[Part, ...], str]  # longer id, shorter id, the additional parts, their text


class Match(Struct, frozen=True, kw_only=True):
    """A ``wanted`` id that was ``found`` in another form.

    One of them has the additional ``parts``: the one that was found if ``longer_found``, else the wanted one. ``cut``
    is the text of such a part, with ``n`` for numbers: ``#n``, ``.md``; empty if there are several parts.
    """

    wanted: str
    found: str
    parts: tuple[Part, ...]
    longer_found: bool
    cut: str = ""


def matches(wanted: Collection[str], found: Iterable[str]) -> list[Match]:
    """Return the wanted ids that were found in another form; an id that may stand for several others is left out."""
    by_wanted: dict[str, Match] = {}
    found = list(dict.fromkeys(found))
    for longer, shorter, longer_found in ((found, wanted, True), (wanted, found, False)):
        pairs = list(_pairs(longer, shorter))
        several = _in_several_folders(pairs)
        forms = set() if longer_found or not pairs else _forms(found)
        for one, other, parts, cut in pairs:
            if not longer_found and set(parts) <= {"blanks", "case"}:
                continue  # neither is longer, so the other direction has found all of these
            if other in several or (cut, other) in forms:
                continue
            here, there = (other, one) if longer_found else (one, other)
            has_parts = there != there.strip() if parts == ("blanks",) else longer_found
            match = Match(wanted=here, found=there, parts=parts, longer_found=has_parts, cut=cut)
            by_wanted.setdefault(here, match)
    return [by_wanted[one] for one in wanted if one in by_wanted]


def _forms(names: Iterable[str]) -> set[tuple[str, str]]:
    """Return what can be taken off ids, and what is left: with faq_3 beside faq in a run, faq_2 is not faq there."""
    return {(cut, rest) for name in names for _, rest, cut in _shortened(name.strip()) if cut}


def _in_several_folders(pairs: Iterable[Pair]) -> set[str]:
    """Return the ids without a folder that are files of several folders, such as README.md."""
    folders: dict[str, set[str]] = {}
    for one, other, parts, _ in pairs:
        if "folder" in parts:
            folders.setdefault(other, set()).add(one.replace("\\", "/").rpartition("/")[0])
    return {other for other, names in folders.items() if len(names) > 1}


def most_common(found: Iterable[Match]) -> tuple[Match | None, int]:
    """Return the first match with the most frequent parts, and how many have these parts."""
    first: dict[tuple[tuple[Part, ...], bool], Match] = {}
    counts: Counter[tuple[tuple[Part, ...], bool]] = Counter()
    for match in found:
        form = match.parts, match.longer_found
        first.setdefault(form, match)
        counts[form] += 1
    for form, number in counts.most_common(1):
        return first[form], number
    return None, 0


def same_form(one: Match, other: Match) -> bool:
    """Return whether two matches have the same additional parts on the same side."""
    return (one.parts, one.longer_found) == (other.parts, other.longer_found)


def difference(match: Match) -> Phrase:
    """Return how an id was found, as ``without the suffix #n of the run's ids (doc_sso#3 for doc_sso)``."""
    parts = [part for part in match.parts if part != "case"]
    said: list[str | Name] = []
    if parts:
        *first, last = parts
        listed = f"{', '.join(first)} and {last}" if first else last
        said.append(f"without the {listed}" if match.longer_found else f"without their {listed}")
        said += [" ", Name(match.cut)] if match.cut else []
        said += [" of the run's ids"] if match.longer_found else []
    if "case" in match.parts:
        said.append(" and in other case" if parts else "in other case")
    return (*said, " (", named(match.found), " for ", named(match.wanted), ")")


def named(name: str) -> Name:
    """Return an id for a sentence: cut if it is long, with blanks at its start or end made visible."""
    rest = name.lstrip()
    before, after = len(name) - len(rest), len(rest) - len(rest.rstrip())
    return Name(shorten(BLANK * before + name.strip() + BLANK * after, bounds.VALUE_TEXT))


def _pairs(longer: Iterable[str], shorter: Iterable[str]) -> Iterator[Pair]:
    """Yield ``(longer, shorter, parts, cut)`` for ids of which the longer one has additional parts."""
    plain, folded = _unique(shorter, str.strip), _unique(shorter, lambda name: name.strip().casefold())
    for name in longer:
        for parts, rest, cut in _shortened(name.strip()):
            other = plain.get(rest)
            case: tuple[Part, ...] = ()
            if other is None and (other := folded.get(rest.casefold())) is not None:
                case = ("case",)
            if other is not None and other != name:
                blanks: tuple[Part, ...] = ("blanks",) if {name, other} - {name.strip(), other.strip()} else ()
                all_parts = (*blanks, *case, *parts)
                yield name, other, all_parts, cut if len(all_parts) == 1 else ""
                break


def _unique(names: Iterable[str], key: Callable[[str], str]) -> dict[str, str]:
    """Map keys to names, without keys that several names have."""
    found: dict[str, str] = {}
    several = set()
    for name in names:
        if found.setdefault(key(name), name) != name:
            several.add(key(name))
    for one in several:
        del found[one]
    return found


def _shortened(name: str) -> Iterator[tuple[tuple[Part, ...], str, str]]:
    """Yield ``(parts, rest, cut)``: the name itself, then what is left without parts of it."""
    yield (), name, ""
    if name.isdecimal():
        yield ("leading zeros",), name.lstrip("0") or "0", ""
        return
    ways: list[tuple[tuple[Part, ...], str]] = [((), name)]
    if stem := without_suffix(name):
        ways.append((("suffix",), stem))
    for parts, rest in ways:
        file = rest.replace("\\", "/").rstrip("/").rpartition("/")[2]
        bare = EXTENSION.sub("", rest)
        variants: list[tuple[tuple[Part, ...], str]] = [
            (parts, rest),
            ((*parts, "extension"), bare),
            ((*parts, "folder"), file),
            ((*parts, "folder", "extension"), EXTENSION.sub("", file)),
        ]
        for found, short in variants:
            if found and short and len(short) < len(name) and not (found != parts and short == rest):
                yield found, short, re.sub("[0-9]+", "n", name[len(short) :]) if "folder" not in found else ""


def without_suffix(name: str) -> str:
    """Return an id without the number of a chunk at its end, as in ``doc#3`` and ``doc_chunk_3``; or nothing."""
    if "#" in name:
        return name[: name.rindex("#")].rstrip(_SEPARATORS)
    stem = name.rstrip(_DIGITS)
    before = stem.rstrip(_SEPARATORS)
    if len(stem) == len(name):
        return ""
    folded = before.casefold()
    for word in _WORDS if folded.endswith(_WORDS) else ():
        if folded.endswith(word):
            shorter = before[: -len(word)]
            if shorter.rstrip(_SEPARATORS) != shorter:
                return shorter.rstrip(_SEPARATORS)
    return before if before != stem else ""
