"""Allowed phrases, within which an answer may make a forbidden claim, as in "does not say that it costs $5".

The module also matches claims and elements as fitz-gov 4.1.0 does, so that its figures can be compared. That differs
from our own rules on purpose. Texts are compared in lower case and not normalized otherwise, empty and repeated
elements count, an answer may be empty, and an allowed phrase covers whatever lies within its match, however long that
is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.matchers import alternatives, spans_by_form, spans_in_form
from ragcontract.answers.normalising import Span
from ragcontract.answers.regexes import compiled
from ragcontract.core import bounds
from ragcontract.core.config_sections import Matcher

# Marks that may stand between the mark of a sentence and the blank after it: ends of quotes and emphasis, and tags.
_CLOSING = r"[\"'”’)\]»›」』】*_~†‡]|</?[a-z][^<>]*>"
# A citation, which may also stand without a blank after it: [1], [^1], [1](http://x), (1), 【1】, ¹, ^1^, <sup>1</sup>.
_CITATION = (
    r"(?:\\?\[[^\[\]\n]*(?:\[[^\[\]\n]*\])*\]|[(（][\s0-9,;–-]{1,20}[)）]|【[^【】\n]*】|［[^［］\n]*］)(?:\([^\s()]*\))?"
    r"|[¹²³⁰⁴-⁹]+|\$?\^[\[{(]?[0-9]{1,3}[\]})]?[\^$]?|<[^<>]*>[\[(]?[0-9]{1,3}[\])]?(?=<)|&sup[1-3];"
)
# Marks that end a sentence wherever they stand, as Unicode's property Sentence_Terminal has them, and the Tibetan ones.
_MARKS = "։؝-؟۔܀-܂߹࠷࠹࠽࠾।॥༎།၊။።፧፨᙮᜵᜶។៕᠃᠉᥄᥅᪨-᪫᭚᭛᭞᭟᭽᭾᰻᰼᱾᱿‼‽⁇-⁉⸮⸼。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝-꩟꫰꫱꯫﹒﹖﹗！？｡"
# Ends of lines that are not line breaks within a paragraph, blank lines, and beginnings of items, rows and cells.
_BREAK = r"[\v\f\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)|\n[^\S\n]*\n|\n(?=[^\S\n]*(?:[-*+#]+|[0-9]{1,9}[.)])\s)|\|"
_CELL = r"</?(?:d[dt]|div|h[1-6]|li|p|t[dhr])\b[^<>]*>"
_END = rf"[.!?…]+(?:{_CLOSING})*(?:(?=\s)|{_CITATION})|[{_MARKS}]+|．(?![0-9０-９])|{_BREAK}|{_CELL}"
_SENTENCE_END = re.compile(_END, re.IGNORECASE)
_SENTENCE_END_IN_JSON = re.compile(rf'{_END}|"(?=\s*[,:\]}}])', re.IGNORECASE)


def forbidden(claim: Matcher, allowed: Sequence[Matcher], answer: Answer, *, normalise: bool = True) -> Iterator[Span]:
    """Yield the spans of the matches of a claim that no allowed phrase covers.

    A phrase covers a match that lies within it, in the same sentence, if the phrase is at most
    ``bounds.ALLOWED_PHRASE`` characters long. In the text that a page shows, only phrases that it shows cover anything;
    a phrase in a comment or in an attribute does not. After ``bounds.CLEARED`` matches in one form of the answer, all
    further ones count as forbidden.
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
    window = _window(form, start, end)
    return window is not None and any(
        first <= start and end <= last and last - first <= bounds.ALLOWED_PHRASE
        for phrase in allowed
        for first, last in _within(phrase, form, window, normalise=normalise)
    )


def _window(form: Answer, start: int, end: int) -> Span | None:
    """Return the part of the sentence around a span in which a phrase that covers it can lie; None across sentences."""
    first, last = max(0, end - bounds.ALLOWED_PHRASE), min(len(form.text), start + bounds.ALLOWED_PHRASE)
    ends = _SENTENCE_END_IN_JSON if form.is_json else _SENTENCE_END
    for mark in ends.finditer(form.text, first, last):
        if mark.end() <= start:
            first = mark.end()
        elif mark.end() < end:
            return None
        else:
            last = mark.end()
            break
    return first, last


def _within(phrase: Matcher, form: Answer, window: Span, *, normalise: bool) -> Iterator[Span]:
    part = form.part(window)
    for single in alternatives(phrase):
        forms: Iterable[Answer] = chain([part], part.reworded if normalise else ())
        if single.regex is not None:
            # What is around the window counts for \b and ^.
            yield from spans_in_form(single, form, normalise=normalise, within=window)
            forms = filter(None, (part.shown, part.stripped) if normalise else ())
        for each in forms:
            for start, end in map(each.written, spans_in_form(single, each, normalise=normalise)):
                yield window[0] + start, window[0] + end


Found = tuple[str, Span]  # the text as fitz-gov reports it, and where it stands in the answer


def forbidden_claims(claims: Sequence[Matcher], allowed: Sequence[Matcher], response: str) -> list[Found]:
    """Return all matches of the claims that no allowed phrase clears, in the order of the claims.

    A phrase around the match of a pattern clears it. A phrase anywhere in the answer clears a text.
    """
    answer = Answer(response, compose=False)
    cleared = [span for phrase in allowed for span in _spans(phrase, answer)]
    matches: list[Found] = []
    for claim in claims:
        if claim.text is not None:
            matches += [] if cleared else _first(claim, answer)
        else:
            spans = _not_within(list(_spans(claim, answer)), cleared)
            matches += [(answer.text[slice(*span)], span) for span in spans]
    return matches


def elements_found(elements: Sequence[Matcher], response: str) -> list[Found]:
    """Return the first match of each element that is in the answer."""
    answer = Answer(response, compose=False)
    return [match for element in elements for match in _first(element, answer)]


def _first(matcher: Matcher, answer: Answer) -> list[Found]:
    """Return the first match; a text is reported as it is written in the golden file."""
    span = next(_spans(matcher, answer), None)
    if span is None:
        return []
    return [(answer.text[slice(*span)] if matcher.text is None else matcher.text, span)]


def _spans(matcher: Matcher, answer: Answer) -> Iterator[Span]:
    if matcher.regex is not None:
        pattern = compiled(matcher.regex, ignore_case=matcher.ignore_case is not False, dot_all=bool(matcher.dot_all))
        yield from islice(pattern.matches(answer), bounds.MATCHES)
        return
    sought, searched = matcher.text or "", answer.text
    if matcher.ignore_case is not False:
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
