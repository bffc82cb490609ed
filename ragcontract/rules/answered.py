"""The base of all rules about answers, and the rules that there is an answer, in the expected mode.

Some rules search answers for what must not be there. A search does not understand what it finds; "it does not cost $5"
has a price in it. Their violations can therefore have flags, with which a judge is asked whether the answer really
says so.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import ClassVar, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.answers.answer_text import Answer, answer_of, says_something, words_for_nothing
from ragcontract.answers.metric_options import ABSTAIN, is_cut_off, unknown_mode
from ragcontract.answers.normalising import Span
from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings, Matcher
from ragcontract.core.golden import GoldenQuery, Mode
from ragcontract.core.invisible import without_invisible
from ragcontract.core.phrase import Message, Name, Phrase, excerpt
from ragcontract.core.rule import NO_ANSWER, Flag, RowContext, RowRule, Violation, names_of
from ragcontract.core.run import RESPONSE_FIELDS, RunRow, mode_of
from ragcontract.core.safe_text import shorten

ANSWER = ("an answer",)
LACKING = Message.quoting(
    "has no response", ", which rules about its answer need; export it, as null if there was none"
)


class AnswerRule(RowRule, frozen=True, kw_only=True, gc=False):
    """A rule about the text of the answer. If there is no answer, the text is empty, and ``answered`` is broken."""

    needs: ClassVar[frozenset[str]] = RESPONSE_FIELDS
    about_answer: ClassVar[bool] = True
    forbids: ClassVar[bool] = False  # whether it searches the answer for what must not be there

    @property
    def sought(self) -> int:
        """How many texts and patterns it searches the answer for."""
        return 0

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return that the row has neither a response nor an error, in the same words for all rules of a query."""
        return LACKING if row.response is UNSET and row.error is None else None


def answer_in(row: RunRow) -> Answer:
    """Return the answer of a row, prepared for searching; it is empty if there is none."""
    return answer_of(row.response if isinstance(row.response, str) else "")


def answers_in(row: RunRow) -> tuple[Answer, ...]:
    """Return all texts that the user was shown, which are the answer and the text of a refusal beside it."""
    answer = answer_in(row)
    return (answer, answer_of(row.refusal)) if row.refusal else (answer,)


def begins(answer: Answer) -> Phrase:
    """Return how an answer begins, for a message about what is not in it."""
    return (excerpt(answer.text),) if says_something(answer) else NO_ANSWER


def the_error(text: str) -> Phrase:
    """Return the error of a row, for a message about what it prevented."""
    return ("the error ", excerpt(text)) if text.strip() else ("an error",)


def quoted(text: str) -> Name:
    """Return a text or a pattern of the golden file for a message."""
    return Name(shorten(text, bounds.EXCERPT))


class Answered(AnswerRule, frozen=True, kw_only=True, gc=False, tag="answered"):
    """The application answered. A reader sees a letter, a digit or a symbol in the response, and there was no error.

    Every query with a rule about its answer has this rule. A refusal that the model's interface reports apart from the
    text is an answer where a refusal is wanted (``must_refuse``). An empty array or object is an answer where a JSON
    schema decides. For benchmarks that accept any text, any text is an answer.
    """

    in_rows: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"finish_reason", "refusal", "mode"}
    refusal_answers: bool = False
    blank_answers: bool = False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation if there is no answer, and warnings if it was cut off or may hide what is forbidden."""
        if row.error is not None:
            yield self.broken(ANSWER, the_error(row.error), "error")
        elif not (isinstance(row.response, str) and (self.blank_answers or _says_something(query, row))) and not (
            self.refusal_answers and _has_refused(row)
        ):
            yield self.broken(ANSWER, _nothing_in(row), "no answer")
        if is_cut_off(row.finish_reason):
            reason = Name(shorten(row.finish_reason or "", bounds.NAME))
            cut_off = ("an answer that was cut off: finish_reason is ", reason)
            yield self.broken(("a complete answer",), cut_off, "cut off", warns=True)
        if _forbids(query):
            for answer in answers_in(row):
                if not answer.text.isascii() or "&" in answer.text:
                    yield from self._mixed_alphabets(answer)

    def _mixed_alphabets(self, answer: Answer) -> Iterator[Violation]:
        from ragcontract.answers.shown import alphabets_of, mixed_word

        if len(alphabets_of(answer.text)) == 1 and "&" not in answer.text:  # the common case
            return
        mixed = mixed_word(answer.text)
        if mixed is None and (shown := answer.shown) and (word := mixed_word(shown.text)):
            mixed = shown.written(word[0]), word[1]
        if mixed:
            (start, end), names = mixed
            has = f", which has {' and '.join(names)} letters, so a rule that forbids the word it looks like misses it"
            mixture = (excerpt(answer.text[start:end]), has)
            yield self.broken(("letters of one alphabet in each word",), mixture, "mixed alphabets", warns=True)


def says_nothing(query: GoldenQuery, row: RunRow) -> bool:
    """Return whether a row has a response in which a reader sees no answer; benchmarks accept any response."""
    if row.response is UNSET or (query.answer and query.answer.as_evaluated):
        return False
    return not _says_something(query, row)


def _says_something(query: GoldenQuery, row: RunRow) -> bool:
    answer = answer_in(row)
    return says_something(answer) or _is_wanted_json(query, answer) or _is_reference(query, answer)


def _has_refused(row: RunRow) -> bool:
    from ragcontract.answers.refusals import declared_evidence

    evidence = declared_evidence(row)
    return evidence is not None and evidence.kind != "mode"


def _nothing_in(row: RunRow) -> Phrase:
    if not isinstance(row.response, str):
        return ("null",)
    if not without_invisible(row.response).strip():
        return ("an empty response",)
    if words_for_nothing(answer_in(row)):
        return (excerpt(row.response), ", which programs write for a missing text")
    return (excerpt(answer_in(row).text), ", which has no letter, digit or symbol")


def _is_wanted_json(query: GoldenQuery, answer: Answer) -> bool:
    """Return whether an answer without words is JSON, of a query for which a JSON schema or a JSON parser decides.

    That is ``null``, ``"None"``, an array or an object, but no other text without a word, such as ``"-"``.
    """
    if not any(isinstance(rule, RowRule) and _wants_json(rule.inner) for rule in query.rules):
        return False
    from ragcontract.answers.json_answer import NotJsonError, parsed

    try:
        return isinstance(parsed(answer.text), list | dict | None) or bool(words_for_nothing(answer))
    except NotJsonError:
        return False


def _wants_json(rule: RowRule) -> bool:
    return "json_schema" in names_of(type(rule)) or getattr(rule, "language", "") == "json"


def _is_reference(query: GoldenQuery, answer: Answer) -> bool:
    """Return whether an answer such as ``null`` is also the reference of the golden query."""
    reference = query.answer.reference if query.answer else None
    words = words_for_nothing(answer)
    return bool(words) and words == words_for_nothing(answer_of(reference or ""))


def _forbids(query: GoldenQuery) -> bool:
    rules = (rule.inner for rule in query.rules if isinstance(rule, RowRule))
    return any(isinstance(rule, AnswerRule) and rule.forbids for rule in rules)


class ExpectedMode(RowRule, frozen=True, kw_only=True, gc=False, tag="expected_mode"):
    """``expected_mode``: the application answers in this mode. With an ``error``, it answers in no mode.

    A ``response`` that says nothing is an answer in the mode ``abstain`` only. Rows may leave it out.
    """

    needs: ClassVar[frozenset[str]] = RESPONSE_FIELDS | {"mode"}
    in_rows: ClassVar[bool] = False
    mode: Mode

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002 (the seam's)
        """Return that the mode is missing, unless that counts as a wrong mode, or that it is unknown."""
        missing_fails = row.error is not None or context.settings.answers.missing_modes == "fail"
        mode = mode_of(row)
        return None if mode is None and missing_fails else unknown_mode(mode)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002 (the seam's)
        mode = mode_of(row)
        says_no_answer = self.mode != ABSTAIN and row.error is None and says_nothing(query, row)
        if mode == self.mode and not says_no_answer:
            return
        causes: tuple[str, ...] = ()
        answered: Phrase = (f"mode {mode}",)
        if row.error is not None or mode is None:  # that is new where the baseline answered in a wrong mode
            answered = ("no mode",) if row.error is None else the_error(row.error)
            causes = ("no answer",)
        elif mode == self.mode:
            answered, causes = NO_ANSWER, ("no answer",)
        yield self.broken((f"mode {self.mode}",), answered, *causes)


class Place(Struct, frozen=True, kw_only=True, gc=False):
    """A place in what the user was shown where a search found something."""

    text: str
    span: Span
    in_response: bool  # a judge is asked only about the response

    @property
    def words(self) -> str:
        """The words that were found, as they are written."""
        return self.text[slice(*self.span)]

    @property
    def excerpt(self) -> Name:
        """The words that were found, with the words around them."""
        return excerpt(self.text, *self.span)


Search: TypeAlias = Callable[[Answer], Iterator[Span]]
Match: TypeAlias = tuple[Matcher | None, Violation, Iterator[Place]]


def places(row: RunRow, search: Search) -> Iterator[Place]:
    """Yield where a search finds something in all that the user was shown."""
    for number, answer in enumerate(answers_in(row)):
        for span in search(answer):
            yield Place(text=answer.text, span=span, in_response=number == 0)


class Flagging(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule that searches the answer for what must not be there. A judge can confirm what it finds."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal"}
    forbids: ClassVar[bool] = True

    @property
    def in_any_turn(self) -> bool:
        return False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation for each text, claim or element in the answer, which quotes its first place.

        Its flag has the different words that were found.
        """
        for matcher, violation, matches in self.matches(row, context):
            if not context.flags:
                yield violation
                continue
            why = reason(names_of(type(self))[0], matcher)
            yield replace(violation, flag=Flag(violation=violation, texts=different(matches), why=why))

    def matches(self, row: RunRow, context: RowContext) -> Iterator[Match]:
        """Yield each matcher that finds something in the answer, its violation, and the places where it does."""
        for matcher, search in self.searches(context.settings.answers):
            matching = places(row, search)
            if place := next(matching, None):
                yield matcher, self.broken_by(matcher, place), chain([place], matching)

    def searches(self, settings: AnswerSettings) -> Iterator[tuple[Matcher, Search]]:
        """Yield the matchers, each with the function that searches an answer for it."""
        raise NotImplementedError

    def broken_by(self, matcher: Matcher, place: Place) -> Violation:
        """Return the violation of a matcher that finds something; ``place`` is the first one."""
        raise NotImplementedError


def different(matches: Iterable[Place]) -> tuple[str, ...]:
    """Return the different words of matches, in their order; none if a judge cannot be asked about all of them."""
    texts: dict[str, None] = {}
    for number, place in enumerate(matches):
        texts[place.words] = None
        if len(texts) > bounds.FLAGGED or number >= bounds.MATCHES or not place.in_response:
            return ()
    return tuple(texts)


def reason(rule: str, matcher: Matcher | None) -> str:
    """Return why an answer was searched, which is the rule and what the matcher, if there is one, looks for."""
    if matcher is None:
        return rule
    from ragcontract.answers.matchers import described

    return shorten(f"{rule}: {' | '.join(described(matcher))}", bounds.EVIDENCE)
