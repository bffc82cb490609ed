"""The fields of a golden row about what its answer says: claims, elements and texts, and the rules made from them."""

from collections.abc import Iterator, Sequence

from ragcontract.answers.matcher_records import AsWritten, Matcher, Reading
from ragcontract.contract.golden_row import GoldenRow
from ragcontract.core.golden import PLACEHOLDER
from ragcontract.core.rule import Rule
from ragcontract.files.schema import Mismatch
from ragcontract.rules.containing import AnswerMustInclude
from ragcontract.rules.elements import ForbiddenClaims, ForbiddenElements, RequiredElements

READINGS: dict[str, Reading] = {  # what a bare text stands for
    "answer_must_include": "text",
    "forbidden_claims": "regex",
    "allowed_phrases": "regex",
    "required_elements": "text",
    "forbidden_elements": "text",
}
FILL_IN = 'write a text that a right answer contains; or, if nothing answers it, only "expected_mode": "abstain"'
OPTIONS = {  # fields that belong to others, and what for
    "allowed_phrases": ("forbidden_claims", "to allow some of them within these phrases"),
    "min_required": ("required_elements", "to say how many of them are enough"),
}


def element_faults(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield what is wrong with these fields: in a row imported ``as_evaluated``, only what cannot be searched for."""
    for field, reading in READINGS.items():
        elements: Sequence[AsWritten] | None = getattr(row, field)
        if elements is None:
            continue
        if not elements and row.as_evaluated is None:
            yield Mismatch((field,), "is empty; leave it out, or give at least one")
        if field == "answer_must_include" and PLACEHOLDER in elements:
            yield Mismatch((field, elements.index(PLACEHOLDER)), f"still is the placeholder {PLACEHOLDER!r}; {FILL_IN}")
        first: dict[AsWritten, int] = {}
        for number, element in enumerate(elements):
            yield from _faults_of(element, reading, (field, number), as_evaluated=row.as_evaluated is not None)
            if first.setdefault(element, number) != number and row.as_evaluated is None:
                yield Mismatch((field, number), f"repeats {field}[{first[element]}]; leave one of them out")
    for field, (needed, why) in OPTIONS.items():
        if getattr(row, field) is not None and getattr(row, needed) is None:
            yield Mismatch((field,), f"needs {needed}, {why}")
    yield from _too_many(row)


def _faults_of(
    element: AsWritten, reading: Reading, path: tuple[str | int, ...], *, as_evaluated: bool
) -> Iterator[Mismatch]:
    from ragcontract.answers.matchers import faults

    if as_evaluated and _is_plain(element, reading):
        return  # what is empty counts, too
    for inner, message in faults(element, reading, of_answers=not as_evaluated):
        yield Mismatch((*path, *inner), message)


def _is_plain(element: AsWritten, reading: Reading) -> bool:
    """Return whether nothing can be wrong with what is searched for: a text, or an empty pattern."""
    if isinstance(element, str):
        return reading == "text"
    return element.any is None and not element.regex and (element.text is None) != (element.regex is None)


def _too_many(row: GoldenRow) -> Iterator[Mismatch]:
    if row.min_required is None or row.required_elements is None or row.as_evaluated is not None:
        return
    if row.min_required > len(row.required_elements):
        there = len(row.required_elements)
        yield Mismatch(("min_required",), f"is {row.min_required}, more than the {there} in required_elements")


def element_rules(row: GoldenRow) -> Iterator[Rule]:
    """Yield the rules made from these fields."""
    as_evaluated = row.as_evaluated is not None
    if row.answer_must_include is not None:
        yield AnswerMustInclude(value=tuple(row.answer_must_include))
    if row.forbidden_claims is not None:
        yield ForbiddenClaims(
            claims=_matchers(row, "forbidden_claims"),
            allowed=_matchers(row, "allowed_phrases"),
            as_evaluated=as_evaluated,
        )
    if row.required_elements is not None:
        elements = _matchers(row, "required_elements")
        least = len(elements) if row.min_required is None else row.min_required
        yield RequiredElements(elements=elements, least=least, as_evaluated=as_evaluated)
    if row.forbidden_elements is not None:
        yield ForbiddenElements(elements=_matchers(row, "forbidden_elements"), as_evaluated=as_evaluated)


def _matchers(row: GoldenRow, field: str) -> tuple[Matcher, ...]:
    """Return the matchers of a field; those of a row imported ``as_evaluated`` are taken as they are."""
    from ragcontract.answers.matchers import matcher

    written: Sequence[AsWritten] = getattr(row, field) or ()
    return tuple(matcher(one, READINGS[field], compose=row.as_evaluated is None) for one in written)
