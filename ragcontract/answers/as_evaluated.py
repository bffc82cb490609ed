"""Matching as fitz-gov 4.1.0 does it, so that its figures can be compared; our own rules differ on purpose.

Texts are compared in lower case and not normalized otherwise, empty and repeated elements count, an answer may be
empty, and an allowed phrase covers whatever lies within its match, however long that is.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.matcher_records import Matcher
from ragcontract.answers.regexes import compiled
from ragcontract.answers.tracing import Span
from ragcontract.core import bounds

Found = tuple[str, Span]  # the text as fitz-gov reports it, and where it stands in the answer


def forbidden_claims(claims: Sequence[Matcher], allowed: Sequence[Matcher], response: str) -> list[Found]:
    """Return all matches of the claims that no allowed phrase clears, in the order of the claims.

    A match of a pattern is cleared by a phrase around it; a text, by a phrase anywhere.
    """
    answer = Answer(response, compose=False)
    cleared = [span for phrase in allowed for span in _spans(phrase, answer)]
    found: list[Found] = []
    for claim in claims:
        if claim.text is not None:
            found += [] if cleared else _first(claim, answer)
        else:
            spans = _not_within(list(_spans(claim, answer)), cleared)
            found += [(answer.text[slice(*span)], span) for span in spans]
    return found


def elements_found(elements: Sequence[Matcher], response: str) -> list[Found]:
    """Return the first match of each element that is in the answer."""
    answer = Answer(response, compose=False)
    return [found for element in elements for found in _first(element, answer)]


def _first(one: Matcher, answer: Answer) -> list[Found]:
    """Return the first match; a text is reported as it is written in the golden file."""
    span = next(_spans(one, answer), None)
    if span is None:
        return []
    return [(answer.text[slice(*span)] if one.text is None else one.text, span)]


def _spans(one: Matcher, answer: Answer) -> Iterator[Span]:
    if one.regex is not None:
        pattern = compiled(one.regex, ignore_case=one.ignore_case is not False, dot_all=bool(one.dot_all))
        yield from islice(pattern.matches(answer), bounds.MATCHES)
        return
    sought, searched = one.text or "", answer.text
    if one.ignore_case is not False:
        sought, searched = sought.lower(), searched.lower()
    start = searched.find(sought)
    if start >= 0:
        yield start, start + len(sought)


def _not_within(spans: Sequence[Span], outer: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans that lie within none of the others, in a time that is linear in the number of both."""
    ends = sorted(outer)
    at = reach = 0
    for start, end in spans:  # from left to right
        while at < len(ends) and ends[at][0] <= start:
            reach = max(reach, ends[at][1])
            at += 1
        if not (at and end <= reach):
            yield start, end
