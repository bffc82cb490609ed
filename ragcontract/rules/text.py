"""The rules about the text of answers: texts that they contain, patterns, a length, and JSON that fits a schema."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ragcontract.answers.matchers import finds, finds_text, pattern_fault, spans, text_fault
from ragcontract.answers.normalising import Form, composed
from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings, Matcher, Single, Wanted
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, excerpt, joined
from ragcontract.core.rule import NO_ANSWER, Fault, RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import shorten
from ragcontract.rules.answered import (
    AnswerRule,
    Flagging,
    Place,
    Search,
    answer_in,
    begins,
    places,
    quoted,
)


class _Texts(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule that searches for all texts of ``value``, or for ``any`` of several."""

    value: Annotated[Wanted | tuple[Wanted, ...] | None, Meta(description="A text, or several: all of them.")] = None
    any: Annotated[tuple[Wanted, ...] | None, Meta(description="Several texts: any of them.")] = None
    ignore_case: Annotated[bool, Meta(description="Whether upper and lower case are the same.")] = True
    word: Annotated[bool, Meta(description="Whether only whole words are found.")] = False

    def faults(self) -> Iterable[Fault]:
        """Return the faults, such as both ``value`` and ``any``, or texts that are empty or repeated."""
        if (self.value is None) == (self.any is None):
            instead = "found neither" if self.value is None else "found both"
            return [((), f"expected exactly one of value (all of these) and any (one of these), {instead}")]
        field = "any" if self.value is None else "value"
        if not self.texts:
            return [((field,), "is empty; give at least one text")]
        wrong: list[Fault] = []
        first: dict[str, int] = {}
        for number, text in enumerate(self.texts):
            path = (field,) if isinstance(self.value, str) else (field, number)
            if fault := text_fault(text):
                wrong.append((path, fault))
            if first.setdefault(text, number) != number:
                wrong.append((path, f"repeats {field}[{first[text]}]; leave one of them out"))
        return wrong

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.value,) if isinstance(self.value, str) else self.value or self.any or ()

    @property
    def sought(self) -> int:
        return len(self.texts)


class Contains(_Texts, frozen=True, kw_only=True, gc=False):
    """The answer contains the texts, or one of them."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        answer, form = answer_in(row), Form(context.settings.answers.normalise, self.ignore_case)
        missing = [text for text in self.texts if not finds_text(text, answer, form, word=self.word)]
        if not missing or (self.any is not None and len(missing) < len(self.any)):
            return
        expected = joined(([quoted(text)] for text in missing[: bounds.LISTED]), len(missing) - bounds.LISTED)
        any_of = ("any of ",) if self.any and len(self.any) > 1 else ()
        yield self.broken((*any_of, *expected), begins(answer), *missing)


class MustContain(Contains, frozen=True, kw_only=True, gc=False, tag="must_contain"):
    """The answer contains a text: all of ``value``, or one of ``any``."""


class AnswerMustInclude(Contains, frozen=True, kw_only=True, gc=False, tag="answer_must_include"):
    """``answer_must_include``: the answer contains all of these texts."""

    in_rows: ClassVar[bool] = False


class MustNotContain(_Texts, Flagging, frozen=True, kw_only=True, gc=False, tag="must_not_contain"):
    """What the user was shown contains none of the texts in ``value``; with ``any``, none of those either."""

    def searches(self, settings: AnswerSettings) -> Iterator[tuple[Matcher, Search]]:
        for text in self.texts:
            matcher = Matcher(text=text, ignore_case=self.ignore_case, word=self.word)
            yield matcher, partial(spans, matcher, normalise=settings.normalise)

    def broken_by(self, matcher: Matcher, place: Place) -> Violation:
        text = matcher.text or ""
        return self.broken(("no ", quoted(text)), (place.excerpt,), text)


class MaxChars(AnswerRule, frozen=True, kw_only=True, gc=False, tag="max_chars"):
    """The answer has at most ``value`` characters."""

    value: Annotated[int, Meta(ge=1, le=bounds.ANSWER - 1, title=f"a whole number from 1 to {bounds.ANSWER - 1:,}")]

    @property
    def in_any_turn(self) -> bool:
        return False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        length = len(row.response) if isinstance(row.response, str) else 0
        if length > self.value:
            yield self.broken((f"at most {self.value:,} characters",), (f"{length:,} characters",))


class _Regex(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A pattern that is searched for."""

    pattern: Annotated[Wanted, Meta(description="A regular expression (RE2).")]
    ignore_case: Annotated[bool, Meta(description="Whether upper and lower case are the same.")] = True
    dot_all: Annotated[bool, Meta(description="Whether a dot matches line breaks, too.")] = False

    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the pattern."""
        fault = pattern_fault(self.pattern, ignore_case=self.ignore_case, dot_all=self.dot_all)
        return [(("pattern",), fault)] if fault else []

    @property
    def sought(self) -> int:
        return 1

    @property
    def matcher(self) -> Single:
        return Single(regex=composed(self.pattern), ignore_case=self.ignore_case, dot_all=self.dot_all)


class RegexMustMatch(_Regex, frozen=True, kw_only=True, gc=False, tag="regex_must_match"):
    """The pattern matches somewhere in the answer."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        answer = answer_in(row)
        if not finds(self.matcher, answer):
            yield self.broken(("a match of ", quoted(self.pattern)), begins(answer))


class RegexMustNotMatch(_Regex, frozen=True, kw_only=True, gc=False, tag="regex_must_not_match"):
    """The pattern matches nowhere in what the user was shown."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal"}
    forbids: ClassVar[bool] = True

    @property
    def in_any_turn(self) -> bool:
        return False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        search = partial(spans, self.matcher, normalise=context.settings.answers.normalise)
        if place := next(places(row, search), None):
            yield self.broken(("no match of ", quoted(self.pattern)), (place.excerpt,))


_EXPECTED = ("JSON that fits the schema",)


class JsonSchema(AnswerRule, frozen=True, kw_only=True, gc=False, tag="json_schema"):
    """The answer is JSON, alone or in one fenced block, has no key twice, and fits the schema (draft 2020-12)."""

    schema: Annotated[dict[str, Any] | bool, Meta(description="A JSON Schema.")]

    def __hash__(self) -> int:
        """Return the hash of the schema, which is an object."""
        return hash(msgspec.json.encode(self.schema, order="deterministic"))

    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the schema."""
        from ragcontract.answers.json_fit import schema_fault

        fault = schema_fault(self.schema)
        return [(("schema",), fault)] if fault else []

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        from ragcontract.answers.json_answer import NotJsonError, parsed, unfenced
        from ragcontract.answers.json_fit import TooMuchWorkError, first_failure
        from ragcontract.files.json_text import doubled_key

        answer = answer_in(row)
        try:
            document = parsed(answer.text)
            if (key := doubled_key(unfenced(answer.text).encode())) is not None:
                twice = " twice: some programs read its first value and some its last"
                yield self.broken(("each key once in an object",), ("the key ", excerpt(key), twice), "duplicate key")
                return
            failure = first_failure(document, self.schema)
        except NotJsonError as error:
            begun = begins(answer)
            instead = begun if begun == NO_ANSWER else (f"an answer that {error}: ", *begun)
            yield self.broken(_EXPECTED, instead, "no JSON")
            return
        except TooMuchWorkError:
            steps = (f"an answer that takes more than {bounds.SCHEMA_STEPS:,} steps to check",)
            yield self.broken(_EXPECTED, steps, "too much work")
            return
        if failure:
            place = ("at ", Name(shorten(failure.path, bounds.EXCERPT), said=True), ": ") if failure.path else ()
            wanted = quoted(f"{failure.keyword}: {failure.wanted}")
            actual = replace(excerpt(failure.actual), quoted=False)  # it is JSON
            yield self.broken((*_EXPECTED, ": ", wanted), (*place, actual), f"{failure.path} {failure.keyword}")
