"""Reviews what a contract expects of answers for likely mistakes.

The rules themselves find most mistakes. Each is asked about the question, the reference and the texts of the other
rules as if they were the answer.

Forbidden patterns that look like texts, and forbidden texts that look like patterns, find nothing. Every command that
reads the contract warns about them. ``30 days (calendar)`` does not find itself as a pattern, no answer has the text
``secret.*``, and the pattern ``secret`` with a blank after it is not found before a full stop.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, permutations
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ragcontract.answers.answer_text import Answer, answer_of
from ragcontract.answers.matchers import alternatives, finds
from ragcontract.answers.metric_options import ABSTAIN
from ragcontract.answers.normalising import is_written_together
from ragcontract.contract.config import Config, enforced
from ragcontract.core import bounds
from ragcontract.core.config_sections import Matcher, Single
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.numbers import count
from ragcontract.core.phrase import render
from ragcontract.core.rule import RowContext, RowRule, RuleSettings, Violation, names_of
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import shorten, visible
from ragcontract.rules.answered import ExpectedMode
from ragcontract.rules.claims import ForbiddenClaims, ForbiddenElements, RequiredElements
from ragcontract.rules.refusal import MustNotRefuse, MustRefuse
from ragcontract.rules.text import (
    AnswerMustInclude,
    JsonSchema,
    MaxChars,
    MustContain,
    MustNotContain,
    RegexMustMatch,
    RegexMustNotMatch,
)
from ragcontract.rules.turns import InTurns

Name: TypeAlias = Literal[
    "todo-placeholder", "duplicate-question", "forbidden-and-relevant", "more-than-k", "small-tag", "never-retrieved",
    "rank-beyond-depth", "limit-needs-queries", "limit-never-fails", "field-not-used", "nothing-can-fail",
    # about answers
    "short-text", "loose-number", "repeated-element", "schema-without-type", "forbidden-and-required",
    "forbidden-in-question", "forbidden-in-reference", "reference-breaks-rule", "refuse-and-answer", "no-abstention",
]  # fmt: skip
Queries = Mapping[str, GoldenQuery]  # by id
Found = Iterator[tuple[GoldenQuery, str]]
Find: TypeAlias = "Callable[[Reviewed], Found]"

UNTYPED: Line[Callable[[Any], str | None]] = Line(home="ragcontract.answers.json_fit:untyped")  # few contracts need it
FORBIDDING = (MustNotContain, RegexMustNotMatch, ForbiddenClaims, ForbiddenElements)
REQUIRING = (MustContain, AnswerMustInclude, RegexMustMatch, RequiredElements, MaxChars)
SAYING = (*REQUIRING, MustRefuse, MustNotRefuse)  # whether, or what, the application must answer
SHORT = 5  # letters: shorter words are parts of many others ("rape" is in "therapeutic")
BETWEEN = "\n\n¶\n\n"  # texts that are searched at once: no text or pattern finds anything across it
_MAY_FAIL = re.compile(r"[()+?*$]")  # without any of these, a pattern finds its own text
# Only a pattern has these: escapes, classes, alternatives, groups with a repetition, a beginning, and a letter that may
# be absent, as in colou?r and in stays? open.
_MEANT = re.compile(r"[\\\[|{^]|\.[*+]|\(\?|\)[?*+]|\w\?.")
_PATTERN_IN_TEXT = re.compile(r"\\b|\\[dswDSWB](?![A-Za-z])|\.[*+]")
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_GROUP = re.compile(r"\([^()]*\)")
_BEGINS_WITH_BLANK = re.compile(r"\s(?![*?{])")  # one that must be there
_AS_TEXT = (
    'which does not find this very text, because ( ) + ? * and $ mean something else in patterns; write {"text": …}'
)
_WITH_BLANK = (
    "which begins or ends with a blank or a line end, so that it is not found before a full stop or at the end of an "
    'answer; leave it out, or write {"text": …, "word": true} for a whole word'
)
_AS_PATTERN = 'which is searched for as it is written, not as a pattern; write {"regex": …}'


class Exports(Struct, frozen=True, kw_only=True):
    """A summary of all runs."""

    depth: int  # the length of the longest list of results
    never: frozenset[str]  # the relevant documents that no run returns
    doc_ids: frozenset[str]  # some of the ids that occur, to suggest spellings from


class Reviewed(Struct, frozen=True, kw_only=True):
    """What is reviewed."""

    queries: Queries
    config: Config
    k: int
    exports: Exports | None = None  # None without a run

    @property
    def own(self) -> list[GoldenQuery]:
        """The queries that were not imported from a benchmark."""
        return [query for query in self.queries.values() if not (query.answer and query.answer.as_evaluated)]

    def rules(self, query: GoldenQuery) -> list[RowRule]:
        """Return the enforced rules of a query about its answer, or about one of its turns."""
        rules = [rule.inner for rule in query.rules if isinstance(rule, RowRule)]
        return [rule for rule in rules if enforced(self.config, type(rule))]

    def broken(self, query: GoldenQuery, text: str, kinds: tuple[type[RowRule], ...]) -> Iterator[Violation]:
        """Yield the violations of a query's rules of these kinds by an answer with this text."""
        for rule in self.rules(query):
            if isinstance(rule, kinds):
                yield from self.breaking(rule, query, text)

    def breaking(self, rule: RowRule, query: GoldenQuery, text: str) -> Iterator[Violation]:
        """Yield the violations of a rule by an answer with this text."""
        row = RunRow(query_id=query.id, results=[], response=text)
        context = RowContext(settings=RuleSettings(k=self.config.cutoffs[0], answers=self.config.answers))
        yield from rule.violations(query, row, context)


def _of_rules(find: Callable[[RowRule], Iterator[str]]) -> Find:
    """Return a function that looks at each rule on its own."""

    def found(reviewed: Reviewed) -> Found:
        for query in reviewed.own:
            for rule in reviewed.rules(query):
                yield from ((query, f"{query.id!r} {message}") for message in find(rule))

    return found


def _short(rule: RowRule) -> Iterator[str]:
    for text, as_rule in _texts(rule, (MustNotContain, ForbiddenClaims, ForbiddenElements)):
        if text.isalpha() and len(text) < SHORT and not is_written_together(text):
            advice = 'add "word": true to the rule' if as_rule else f'write {{"text": "{text}", "word": true}}'
            yield f"forbids {text!r} anywhere, also within longer words; {advice}"


def _loose_numbers(rule: RowRule) -> Iterator[str]:
    for text, as_rule in _texts(rule, (MustContain, AnswerMustInclude, RequiredElements)):
        if text[:1].isdigit() and text[-1:].isdigit() and not any(map(str.isalpha, text)):
            word = f'{{"type": "must_contain", "value": "{text}", "word": true}}'
            advice = f"use the rule {word}" if as_rule else f'write {{"text": "{text}", "word": true}}'
            yield f"requires {text!r}, which is also found in 1{text} and {text}0; {advice}"


def _texts(rule: RowRule, kinds: tuple[type[RowRule], ...]) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a rule that are found within words, and whether they are written without a matcher.

    A pattern of letters only is such a text, too.
    """
    if not isinstance(rule, kinds):
        return
    if isinstance(rule, MustContain | AnswerMustInclude | MustNotContain):
        yield from ((text, True) for text in (() if rule.word else rule.texts))
        return
    for single in chain.from_iterable(map(alternatives, _elements(rule))):
        text = single.regex if single.text is None else single.text
        if text and not single.word and (single.text is not None or text.isalpha()):
            yield text, False


def _elements(rule: RowRule) -> Sequence[Matcher]:
    match rule:
        case ForbiddenClaims():
            return rule.claims
        case RequiredElements() | ForbiddenElements():
            return rule.elements
        case _:
            return ()


def _repeated(rule: RowRule) -> Iterator[str]:
    """Yield a message for each element whose text is in the text of another element."""
    texts = [element for element in _elements(rule)[: bounds.LINT_ELEMENTS] if element.text is not None]
    for inner, outer in permutations(texts, 2):
        if finds(inner, answer_of(outer.text or "")):
            useless = inner if isinstance(rule, RequiredElements) else outer
            verb = "requires" if isinstance(rule, RequiredElements) else "forbids"
            both = f"{_short_repr(inner.text)} and {_short_repr(outer.text)}"
            yield f"{verb} {both}, which contains it; leave {_short_repr(useless.text)} out"


def _without_type(rule: RowRule) -> Iterator[str]:
    if isinstance(rule, JsonSchema) and (path := UNTYPED.load()(rule.schema)) is not None:
        place = f"at {shorten(path, bounds.NAME)!r} in its schema" if path else "in its schema"
        advice = 'add it, as in "type": "object"'
        yield f"has a json_schema that accepts null, texts and numbers, because there is no type {place}; {advice}"


def _forbidden_and_required(reviewed: Reviewed) -> Found:
    for query in reviewed.own:
        required = [text for rule in reviewed.rules(query) for text in _required(rule)]
        for violation in reviewed.broken(query, BETWEEN.join(required), FORBIDDING) if required else ():
            yield query, f"{query.id!r} requires and forbids the same: {_said(violation)}; take one out"


def _required(rule: RowRule) -> Iterator[str]:
    if isinstance(rule, MustContain | AnswerMustInclude) and (rule.value is not None or len(rule.texts) == 1):
        yield from rule.texts
    if isinstance(rule, RequiredElements) and rule.least == len(rule.elements):
        yield from (element.text for element in rule.elements if element.text is not None)


def _forbidden_in_question(reviewed: Reviewed) -> Found:
    advice = "an answer that repeats the question breaks it; forbid only what a wrong answer says"
    for query in reviewed.own:
        for rule in query.rules:
            if not isinstance(rule, RowRule) or not enforced(reviewed.config, type(rule.inner)):
                continue
            for whose, question in _questions(query, rule) if isinstance(rule.inner, FORBIDDING) else ():
                violations = list(reviewed.breaking(rule.inner, query, question))
                for violation in violations:
                    yield query, f"{query.id!r} forbids what {whose} question says: {_said(violation)}; {advice}"
                if violations:
                    break  # one of its questions says enough


def _questions(query: GoldenQuery, rule: RowRule) -> Iterator[tuple[str, str]]:
    """Yield the questions whose answers a rule is about: of a conversation, those of its turns."""
    turns = query.answer.turns if query.answer and isinstance(rule, InTurns) else None
    if turns is None or not isinstance(rule, InTurns):
        yield "its own", query.query
        return
    for number in rule.turns:
        yield f"turn {number + 1}'s", turns[number]


def _forbidden_in_reference(reviewed: Reviewed) -> Found:
    for query in reviewed.own:
        for field in ("reference_contexts", "reference_claims"):
            texts: Sequence[str] = getattr(query.answer, field, None) or ()
            for violation in reviewed.broken(query, BETWEEN.join(texts), FORBIDDING) if texts else ():
                advice = "an answer that quotes them breaks it; forbid only what a wrong answer says"
                yield query, f"{query.id!r} forbids what its {field} say: {_said(violation)}; {advice}"


def _reference_breaks(reviewed: Reviewed) -> Found:
    for query in reviewed.own:
        reference = query.answer and query.answer.reference
        for violation in reviewed.broken(query, reference, (*FORBIDDING, *REQUIRING)) if reference else ():
            yield (
                query,
                f"{query.id!r} has a reference that breaks {violation.rule}: {_said(violation)}; correct one of them",
            )


def _refuse_and_answer(reviewed: Reviewed) -> Found:
    """Yield queries that must refuse and expect a mode of answers; reading the contract finds other contradictions."""
    for query in reviewed.own:
        if query.answer and query.answer.turns:
            continue  # one turn may refuse and another one answer
        rules = reviewed.rules(query)
        modes = [rule.mode for rule in rules if isinstance(rule, ExpectedMode) and rule.mode != ABSTAIN]
        if modes and any(isinstance(rule, MustRefuse) for rule in rules):
            yield (
                query,
                f"{query.id!r} must refuse, and in the mode {modes[0]}, which is not a mode of refusals; take one out",
            )


def _no_abstention(reviewed: Reviewed) -> Found:
    """Yield queries that nothing answers; if none expects anything of answers, only those that forbid nothing, too."""
    about_answers = any(query.rules or query.answer for query in reviewed.queries.values())
    for query in reviewed.own:
        if not about_answers and (not _has_only_zeros(query) or query.forbidden_doc_ids):
            continue
        says = query.answer and (query.answer.expected_mode or query.answer.expected_label or query.answer.reference)
        wants = any(isinstance(rule, SAYING) for rule in query.rules)
        if query.names_documents and not query.relevant_doc_ids and not says and not wants:
            advice = 'add "expected_mode": "abstain", or the rule must_refuse'
            zeros = "has no grade but 0, so that no ranking metric counts it"
            why = zeros if _has_only_zeros(query) else "has no relevant documents"
            yield query, f"{query.id!r} {why}, and may be answered all the same; {advice}"


def _has_only_zeros(query: GoldenQuery) -> bool:
    return query.relevance is not None and not any(query.relevance.values())


# What is found in contracts that expect something of answers, by the name of the finding.
FINDINGS: Mapping[Name, Find] = {
    "short-text": _of_rules(_short),
    "loose-number": _of_rules(_loose_numbers),
    "repeated-element": _of_rules(_repeated),
    "schema-without-type": _of_rules(_without_type),
    "forbidden-and-required": _forbidden_and_required,
    "forbidden-in-question": _forbidden_in_question,
    "forbidden-in-reference": _forbidden_in_reference,
    "reference-breaks-rule": _reference_breaks,
    "refuse-and-answer": _refuse_and_answer,
    "no-abstention": _no_abstention,
}


def _said(violation: Violation) -> str:
    return f"expected {render(violation.expected)}; found: {render(violation.actual)}"


def _short_repr(text: str | None) -> str:
    return repr(shorten(text or "", bounds.EXCERPT))


def warnings(queries: Iterable[GoldenQuery]) -> Iterator[str]:
    """Yield a warning about the first forbidden pattern or text with each kind of mistake, which counts the others."""
    places: dict[str, dict[str, str]] = {_AS_TEXT: {}, _WITH_BLANK: {}, _AS_PATTERN: {}}  # the first of each text
    for query in queries:
        if query.answer and query.answer.as_evaluated:
            continue
        for rule in (rule.inner for rule in query.rules if isinstance(rule, RowRule)):
            for single in _forbidden(rule):
                if why := _mistake(single):
                    places[why].setdefault(single.regex or single.text or "", _place(query, rule))
    for why, of_kind in places.items():
        yield from _warning(of_kind, "text" if why is _AS_PATTERN else "pattern", why)


def _mistake(single: Single) -> str | None:
    if single.regex is None:
        return _AS_PATTERN if _PATTERN_IN_TEXT.search(single.text or "") else None
    if _is_text(single):
        return _AS_TEXT
    return _WITH_BLANK if _has_blank_at_end(single.regex) else None


def _has_blank_at_end(pattern: str) -> bool:
    """Return whether a pattern, or one of its alternatives, begins or ends with a blank beside more than ^ and $."""
    pattern = _ESCAPE_OR_CLASS.sub("x", pattern)
    while (outer := _GROUP.sub("x", pattern)) != pattern:
        pattern = outer
    return any(
        text.strip().strip("^$") and (text[-1].isspace() or _BEGINS_WITH_BLANK.match(text))
        for text in pattern.split("|")
    )


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
            yield from chain.from_iterable(map(alternatives, _elements(rule)))


def _is_text(single: Single) -> bool:
    pattern = single.regex or ""
    if not _MAY_FAIL.search(pattern) or _MEANT.search(pattern):
        return False
    return not finds(single, Answer(pattern))
