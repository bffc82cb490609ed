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
_FOLDERS = 8  # the most that are taken off an id
BLANK = "␣"
_DIGITS, _SEPARATORS = "0123456789", "_-#:/@| "
EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


Pair: TypeAlias = tuple[str, str, tuple[Part, ...], str]  # longer id, shorter id, the additional parts, their text


class Match(Struct, frozen=True, kw_only=True):
    """A wanted id that a run has in another form. One of the two ids has additional parts."""

    wanted: str
    actual: str
    parts: tuple[Part, ...]
    longer_found: bool  # whether the id that was found has the additional parts
    cut: str = ""  # the text of the only additional part, with ``n`` for numbers, as ``#n`` or ``.md``


def matches(wanted: Collection[str], available: Iterable[str]) -> list[Match]:
    """Return the wanted ids that are available in another form. An id that may stand for several others is left out."""
    by_wanted: dict[str, Match] = {}
    available = list(dict.fromkeys(available))
    for longer_ids, shorter_ids, longer_found in ((available, wanted, True), (wanted, available, False)):
        pairs = list(_pairs(longer_ids, shorter_ids))
        several = _in_several_folders(pairs)
        forms = set() if longer_found or not pairs else _forms(available)
        for longer, shorter, parts, cut in pairs:
            if not longer_found and set(parts) <= {"blanks", "case"}:
                continue  # neither is longer, so the other direction has all of these
            if shorter in several or (cut, shorter) in forms:
                continue
            here, there = (shorter, longer) if longer_found else (longer, shorter)
            has_parts = there != there.strip() if parts == ("blanks",) else longer_found
            match = Match(wanted=here, actual=there, parts=parts, longer_found=has_parts, cut=cut)
            by_wanted.setdefault(here, match)
    return [by_wanted[wanted_id] for wanted_id in wanted if wanted_id in by_wanted]


def _forms(names: Iterable[str]) -> set[tuple[str, str]]:
    """Return the parts that can be taken off ids, each with the rest: if a run has faq and faq_3, faq_2 is not faq."""
    return {(cut, rest) for name in names for _, rest, cut in _shortened(name.strip()) if cut}


def _in_several_folders(pairs: Iterable[Pair]) -> set[str]:
    """Return the ids without a folder that are files of several folders, such as README.md."""
    folders: dict[str, set[str]] = {}
    for longer, shorter, parts, _ in pairs:
        if "folder" in parts:
            folders.setdefault(shorter, set()).add(longer.replace("\\", "/").rpartition("/")[0])
    return {shorter for shorter, names in folders.items() if len(names) > 1}


def most_common(similar: Iterable[Match]) -> tuple[Match | None, int]:
    """Return the first match with the most frequent parts, and how many have these parts."""
    first: dict[tuple[tuple[Part, ...], bool], Match] = {}
    counts: Counter[tuple[tuple[Part, ...], bool]] = Counter()
    for match in similar:
        form = match.parts, match.longer_found
        first.setdefault(form, match)
        counts[form] += 1
    for form, number in counts.most_common(1):
        return first[form], number
    return None, 0


def same_form(match: Match, other: Match) -> bool:
    """Return whether two matches have the same additional parts on the same side."""
    return (match.parts, match.longer_found) == (other.parts, other.longer_found)


def difference(match: Match) -> Phrase:
    """Describe how the two ids differ, as ``without the suffix #n of the run's ids (doc_sso#3 for doc_sso)``."""
    parts = [part for part in match.parts if part != "case"]
    phrase: list[str | Name] = []
    if parts:
        *first, last = parts
        listed = f"{', '.join(first)} and {last}" if first else last
        phrase.append(f"without the {listed}" if match.longer_found else f"without their {listed}")
        phrase += [" ", Name(match.cut)] if match.cut else []
        phrase += [" of the run's ids"] if match.longer_found else []
    if "case" in match.parts:
        phrase.append(" and in other case" if parts else "in other case")
    return (*phrase, " (", named(match.actual), " for ", named(match.wanted), ")")


def named(name: str) -> Name:
    """Return an id for a sentence: cut if it is long, with blanks at its start or end made visible."""
    rest = name.lstrip()
    before, after = len(name) - len(rest), len(rest) - len(rest.rstrip())
    return Name(shorten(BLANK * before + name.strip() + BLANK * after, bounds.VALUE_TEXT))


def _pairs(longer: Iterable[str], shorter: Iterable[str]) -> Iterator[Pair]:
    """Yield the pairs of ids that differ only in additional parts of the longer id."""
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
    by_key: dict[str, str] = {}
    several = set()
    for name in names:
        if by_key.setdefault(key(name), name) != name:
            several.add(key(name))
    for shared in several:
        del by_key[shared]
    return by_key


def _shortened(name: str) -> Iterator[tuple[tuple[Part, ...], str, str]]:
    """Yield ``(parts, rest, cut)`` for the whole name, and then for each rest without some parts of it."""
    yield (), name, ""
    if name.isdecimal():
        yield ("leading zeros",), name.lstrip("0") or "0", ""
        return
    ways: list[tuple[tuple[Part, ...], str]] = [((), name)]
    ways += [(("suffix",), stem) for stem in dict.fromkeys((_without_number(name), without_suffix(name))) if stem]
    for parts, rest in ways:
        variants: list[tuple[tuple[Part, ...], str]] = [(parts, rest), ((*parts, "extension"), EXTENSION.sub("", rest))]
        for file in _without_folders(rest):
            variants += [((*parts, "folder"), file), ((*parts, "folder", "extension"), EXTENSION.sub("", file))]
        for taken, short in variants:
            if taken and short and len(short) < len(name) and not (taken != parts and short == rest):
                yield taken, short, re.sub("[0-9]+", "n", name[len(short) :]) if "folder" not in taken else ""


def _without_folders(path: str) -> Iterator[str]:
    """Yield a path without its first folder, without the first two, and so on."""
    path = path.replace("\\", "/").rstrip("/")
    for _ in range(min(path.count("/"), _FOLDERS)):
        path = path.partition("/")[2]
        yield path


def without_suffix(name: str) -> str:
    """Return an id without the number of a chunk at its end, as in ``doc#3`` and ``doc_chunk_3``, or an empty text."""
    if "#" in name:
        return name[: name.rindex("#")].rstrip(_SEPARATORS)
    return _without_number(name)


def _without_number(name: str) -> str:
    """Return an id without a number at its end and the word before it, as in ``guide#setup-3``, or an empty text."""
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
