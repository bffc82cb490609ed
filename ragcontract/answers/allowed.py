"""Allowed phrases: where a forbidden claim may stand all the same, as in "does not say that it costs $5"."""

import re
from collections.abc import Iterator, Sequence

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.matcher_records import Matcher, Single
from ragcontract.answers.matchers import spans
from ragcontract.answers.tracing import Span
from ragcontract.core import bounds

# A sentence ends with its mark and what closes it, before a blank; with an ideographic mark; or with a blank line.
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|\n[^\S\n]*\n")


def forbidden(claim: Matcher, allowed: Sequence[Matcher], answer: Answer, *, normalise: bool = True) -> Iterator[Span]:
    """Yield the spans of the matches of a claim that no allowed phrase covers.

    A phrase covers a match that lies within it, in the same sentence, if the phrase is at most
    ``bounds.ALLOWED_PHRASE`` characters long. Of more than ``bounds.CLEARED`` matches, all further ones count as
    forbidden.
    """
    for number, span in enumerate(spans(claim, answer, normalise=normalise)):
        if number >= bounds.CLEARED or not _is_covered(span, allowed, answer, normalise=normalise):
            yield span


def _is_covered(span: Span, allowed: Sequence[Matcher], answer: Answer, *, normalise: bool) -> bool:
    start, end = span
    if end - start > bounds.ALLOWED_PHRASE or not allowed:
        return False
    window = _window(answer.text, start, end)
    return window is not None and any(
        first <= start and end <= last and last - first <= bounds.ALLOWED_PHRASE
        for one in allowed
        for first, last in _within(one, answer, window, normalise=normalise)
    )


def _window(text: str, start: int, end: int) -> Span | None:
    """Return the part of the sentence around a span in which a phrase that covers it can lie; None across sentences."""
    first, last = max(0, end - bounds.ALLOWED_PHRASE), min(len(text), start + bounds.ALLOWED_PHRASE)
    for found in _SENTENCE_END.finditer(text, first, last):
        if found.end() <= start:
            first = found.end()
        elif found.end() < end:
            return None
        else:
            last = found.end()
            break
    return first, last


def _within(one: Matcher | Single, answer: Answer, window: Span, *, normalise: bool) -> Iterator[Span]:
    """Yield the matches of a phrase in a part of the answer."""
    if isinstance(one, Matcher) and one.any is not None:
        for alternative in one.any:
            if isinstance(alternative, Single):
                yield from _within(alternative, answer, window, normalise=normalise)
    elif one.regex is not None:
        from ragcontract.answers.regexes import compiled

        pattern = compiled(one.regex, ignore_case=one.ignore_case is not False, dot_all=bool(one.dot_all))
        yield from pattern.matches(answer, window)
        if normalise and (shown := Answer(answer.text[slice(*window)]).shown):
            yield from ((window[0] + a, window[0] + b) for a, b in map(shown.written, pattern.matches(shown)))
    else:
        part = Answer(answer.text[slice(*window)])
        yield from ((window[0] + a, window[0] + b) for a, b in spans(one, part, normalise=normalise))
