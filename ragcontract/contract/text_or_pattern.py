"""Warns of forbidden patterns that look like texts, and of forbidden texts that look like patterns: both find nothing.

``30 days (calendar)`` does not find itself as a pattern, and no answer has the text ``secret.*``.
"""

import re
from collections.abc import Iterable, Iterator

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.matcher_records import Single
from ragcontract.answers.matchers import finds
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import count
from ragcontract.core.rule import RowRule, names_of
from ragcontract.core.text import shorten, visible
from ragcontract.rules.containing import MustNotContain
from ragcontract.rules.elements import ForbiddenClaims, ForbiddenElements
from ragcontract.rules.matching import RegexMustNotMatch

_MAY_FAIL = re.compile(r"[()+?*$]")  # what a pattern has that does not find its own text
# What only somebody writes who means a pattern: escapes, classes, alternatives, groups with a repetition, a beginning,
# and a letter that may be absent, as in colou?r.
_MEANT = re.compile(r"[\\\[|{^]|\.[*+]|\(\?|\)[?*+]|\w\?\w")
_PATTERN_IN_TEXT = re.compile(r"\\b|\\[dswDSWB](?![A-Za-z])|\.[*+]")
_AS_TEXT = (
    'which does not find this very text, because ( ) + ? * and $ mean something else in patterns; write {"text": …}'
)
_AS_PATTERN = 'which is searched for as it is written, not as a pattern; write {"regex": …}'


def warnings(queries: Iterable[GoldenQuery]) -> Iterator[str]:
    """Yield a warning of the first such pattern, and one of the first such text; each counts the others."""
    patterns: dict[str, str] = {}  # where each is first
    texts: dict[str, str] = {}
    for query in queries:
        if query.answer and query.answer.as_evaluated:
            continue
        for rule in (rule.judged for rule in query.rules if isinstance(rule, RowRule)):
            for single in _forbidden(rule):
                if single.regex is not None and _is_text(single):
                    patterns.setdefault(single.regex, _place(query, rule))
                elif single.text is not None and _PATTERN_IN_TEXT.search(single.text):
                    texts.setdefault(single.text, _place(query, rule))
    yield from _warning(patterns, "pattern", _AS_TEXT)
    yield from _warning(texts, "text", _AS_PATTERN)


def _place(query: GoldenQuery, rule: RowRule) -> str:
    return f"{query.location}: {names_of(type(rule))[0]}"


def _warning(places: dict[str, str], kind: str, why: str) -> Iterator[str]:
    if places:
        first, place = next(iter(places.items()))
        others = f" (and {count(len(places) - 1, 'other')})" if len(places) > 1 else ""
        yield f"{place} forbids the {kind} {shorten(visible(first), bounds.VALUE)!r}{others}, {why}"


def _forbidden(rule: object) -> Iterator[Single]:
    match rule:
        case RegexMustNotMatch():
            yield Single(regex=rule.pattern)
        case MustNotContain():
            yield from (Single(text=text) for text in rule.texts)
        case ForbiddenClaims() | ForbiddenElements():
            matchers = rule.claims if isinstance(rule, ForbiddenClaims) else rule.elements
            for matcher in matchers:
                for single in [matcher] if matcher.any is None else matcher.any:
                    yield Single(text=single) if isinstance(single, str) else single


def _is_text(single: Single) -> bool:
    pattern = single.regex or ""
    if not _MAY_FAIL.search(pattern) or _MEANT.search(pattern):
        return False
    return not finds(single, Answer(pattern))
