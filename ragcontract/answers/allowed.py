"""Allowed phrases: where a forbidden claim may stand all the same, as in "does not say that it costs $5"."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.matcher_records import Matcher, Single
from ragcontract.answers.matchers import spans_by_form, spans_in_form
from ragcontract.answers.tracing import Span
from ragcontract.core import bounds

# A sentence ends with its mark and what closes it, before a blank; with an ideographic mark; or with a blank line.
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|\n[^\S\n]*\n")


def forbidden(claim: Matcher, allowed: Sequence[Matcher], answer: Answer, *, normalise: bool = True) -> Iterator[Span]:
    """Yield the spans of the matches of a claim that no allowed phrase covers.

    A phrase covers a match that lies within it, in the same sentence, if the phrase is at most
    ``bounds.ALLOWED_PHRASE`` characters long. What a page shows of an answer is judged with the phrases that it shows:
    one in a comment or in an attribute covers nothing there. Of more than ``bounds.CLEARED`` matches in one form of the
    answer, all further ones count as forbidden.
    """
    numbers: Counter[int] = Counter()
    seen: set[Span] = set()
    for form, span in spans_by_form(claim, answer, normalise=normalise):
        numbers[id(form)] += 1
        if numbers[id(form)] <= bounds.CLEARED and _is_covered(span, allowed, form, normalise=normalise):
            continue
        written = form.written(span)
        if written not in seen:
            seen.add(written)
            yield written


def _is_covered(span: Span, allowed: Sequence[Matcher], form: Answer, *, normalise: bool) -> bool:
    start, end = span
    if end - start > bounds.ALLOWED_PHRASE or not allowed:
        return False
    window = _window(form.text, start, end)
    return window is not None and any(
        first <= start and end <= last and last - first <= bounds.ALLOWED_PHRASE
        for one in allowed
        for first, last in _within(one, form, window, normalise=normalise)
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


def _within(one: Matcher | Single, form: Answer, window: Span, *, normalise: bool) -> Iterator[Span]:
    """Yield the matches of a phrase in a part of a form of the answer."""
    if isinstance(one, Matcher) and one.any is not None:
        for alternative in one.any:
            if isinstance(alternative, Single):
                yield from _within(alternative, form, window, normalise=normalise)
        return
    part = form.part(window)
    forms: Iterable[Answer] = chain([part], part.reworded if normalise else ())
    if one.regex is not None:
        yield from spans_in_form(one, form, normalise=normalise, within=window)  # with what is around, for \b and ^
        forms = filter(None, (part.shown, part.stripped) if normalise else ())
    for each in forms:
        for start, end in map(each.written, spans_in_form(one, each, normalise=normalise)):
            yield window[0] + start, window[0] + end
