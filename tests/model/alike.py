"""The model of forbidden documents that a run may return in another form: the check asks whether they are the same."""

import dataclasses
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from tests.model.texts import without_invisible

CHUNK = re.compile(r"(?:#|_chunk_|:|_|-)(\d+)$")
EXTENSION = re.compile(r"\.[a-z][a-z0-9]{0,4}$")


@dataclasses.dataclass(frozen=True)
class Form:
    """An id without what makes no difference, and the parts that only one of two forms may have."""

    name: str
    folder: str
    extension: str
    chunk: str


def form_of(document: str) -> Form:
    """Return the form of an id."""
    text = _close_form(document)
    chunk = CHUNK.search(text)
    text = text[: chunk.start()] if chunk else text
    extension = EXTENSION.search(text)
    text = text[: extension.start()] if extension else text
    folder, _, name = text.rpartition("/")
    name = name.lstrip("0") if name.isdecimal() and name.strip("0") else name
    return Form(name, folder, extension[0] if extension else "", chunk[1] if chunk else "")


def _close_form(document: str) -> str:
    text = unicodedata.normalize("NFKC", without_invisible(document).strip().casefold()).removeprefix("./")
    return text.lstrip("0") or "0" if text.isdecimal() else text


def look_alike(one: str, other: str) -> bool:
    """Whether two ids may be those of one document."""
    first, second = form_of(one), form_of(other)
    parts = ((first.folder, second.folder), (first.extension, second.extension), (first.chunk, second.chunk))
    return first.name == second.name and all(a == b or "" in (a, b) for a, b in parts)


@dataclasses.dataclass(frozen=True)
class Wishes:
    """The documents that golden rows want, and those that the configuration says stand for themselves."""

    of_the_query: Collection[str]
    of_any_query: Collection[str]
    different: Collection[str]


def in_question(forbidden: Iterable[str], returned: Sequence[str], wishes: Wishes) -> list[tuple[str, str]]:
    """Return the forbidden documents that may have been returned in another form, with that form."""
    there = set(returned)
    return [
        (document, other)
        for document in forbidden
        for other in there - {document}
        if document not in there and look_alike(document, other) and not _explained(document, other, there, wishes)
    ]


def _explained(document: str, other: str, there: Collection[str], wishes: Wishes) -> bool:
    """Whether it is known that the returned document is another one than the forbidden document."""
    if {document, other} & set(wishes.different):
        return True
    if _close_form(document) == _close_form(other):
        return False
    if other in wishes.of_the_query or {document, other} <= set(wishes.of_any_query):
        return True
    ours, theirs = form_of(document), form_of(other)
    if bool(ours.chunk) != bool(theirs.chunk) and other in wishes.of_any_query:
        return True
    chunks = {form_of(each).chunk for each in there if form_of(each).name == ours.name}
    return bool(ours.chunk) and not theirs.chunk and bool(chunks - {"", ours.chunk})
