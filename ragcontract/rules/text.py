"""The rules about texts in answers: must_contain, answer_must_include, must_not_contain and max_chars."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Annotated, ClassVar

from msgspec import Meta

from ragcontract.answers.matchers import faults, finds, spans
from ragcontract.core import bounds
from ragcontract.core.answer_settings import Matcher, Wanted
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Phrase, joined
from ragcontract.core.rule import Fault, RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answered import (
    AnswerRule,
    Flagging,
    Place,
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
            wrong += [(path, message) for _, message in faults(text, "text")]
            if first.setdefault(text, number) != number:
                wrong.append((path, f"repeats {field}[{first[text]}]; leave one of them out"))
        return wrong

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts."""
        return (self.value,) if isinstance(self.value, str) else self.value or self.any or ()

    @property
    def sought(self) -> int:
        """How many texts there are."""
        return len(self.texts)

    def matcher(self, text: str) -> Matcher:
        """Return the matcher of one of the texts."""
        return Matcher(text=text, ignore_case=self.ignore_case, word=self.word)


class Contains(_Texts, frozen=True, kw_only=True, gc=False):
    """The answer contains the texts, or one of them."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield one violation with all texts that are missing."""
        answer, normalise = answer_in(row), context.settings.answers.normalise
        missing = [text for text in self.texts if not finds(self.matcher(text), answer, normalise=normalise)]
        if not missing or (self.any is not None and len(missing) < len(self.any)):
            return
        yield Violation(
            rule=str(type(self).__struct_config__.tag),
            expected=_all_or_any(missing, "any of " if self.any and len(self.any) > 1 else ""),
            actual=begins(answer),
            causes=tuple(missing),
        )


class MustContain(Contains, frozen=True, kw_only=True, gc=False, tag="must_contain"):
    """The answer contains a text: all of ``value``, or one of ``any``."""


class AnswerMustInclude(Contains, frozen=True, kw_only=True, gc=False, tag="answer_must_include"):
    """``answer_must_include``: the answer contains all of these texts."""

    in_rows: ClassVar[bool] = False


class MustNotContain(_Texts, Flagging, frozen=True, kw_only=True, gc=False, tag="must_not_contain"):
    """What the user was shown contains none of the texts in ``value``; with ``any``, none of those either."""

    def matches(self, row: RunRow, context: RowContext) -> Iterator[tuple[Matcher, Violation, Iterator[Place]]]:
        """Yield the matcher of each text in the answer, its violation, and all its places."""
        for text in self.texts:
            matcher = self.matcher(text)
            matches = places(row, partial(spans, matcher, normalise=context.settings.answers.normalise))
            if place := next(matches, None):
                violation = Violation(
                    rule="must_not_contain",
                    expected=("no ", quoted(text)),
                    actual=(place.excerpt,),
                    causes=(text,),
                )
                yield matcher, violation, chain([place], matches)


class MaxChars(AnswerRule, frozen=True, kw_only=True, gc=False, tag="max_chars"):
    """The answer has at most ``value`` characters."""

    value: Annotated[int, Meta(ge=1, le=bounds.ANSWER - 1, title=f"a whole number from 1 to {bounds.ANSWER - 1:,}")]

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation if the answer is longer."""
        length = len(row.response) if isinstance(row.response, str) else 0
        if length > self.value:
            yield Violation(
                rule="max_chars", expected=(f"at most {self.value:,} characters",), actual=(f"{length:,} characters",)
            )


def _all_or_any(texts: list[str], prefix: str) -> Phrase:
    shown = joined(([quoted(text)] for text in texts[: bounds.LISTED]), len(texts) - bounds.LISTED)
    return (prefix, *shown) if prefix else shown
