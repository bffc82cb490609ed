"""Rules about tool calls: must_call_tool, must_not_call_tool, tool_arguments_valid."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import TextId
from ragcontract.core.numbers import count as counted
from ragcontract.core.phrase import Name, Phrase, joined
from ragcontract.core.rule import Fault, RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answering import NO_CALLS

if TYPE_CHECKING:
    from ragcontract.answers.tool_calls import Call

Times = Annotated[int, Meta(ge=1, le=bounds.CALLS, title=f"a whole number from 1 to {bounds.CALLS:,}")]


class ToolRule(RowRule, frozen=True, kw_only=True, gc=False):
    """A rule about the calls in ``tool_calls``."""

    needs: ClassVar[frozenset[str]] = frozenset({"tool_calls", "error"})

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return that the row has no calls, or why they are none; with an error, none are known, and no rule holds."""
        from ragcontract.answers.cannot_score import CannotScoreError

        if row.tool_calls is None:
            if row.error is not None:
                return None
            rule = type(self).__struct_config__.tag
            return f"has no tool_calls, which {rule} needs; export them ([] if no tool was called)"
        try:
            calls_of(row)
        except CannotScoreError as error:
            return str(error)
        return None


class OneTool(ToolRule, frozen=True, kw_only=True, gc=False):
    """A rule about the calls of one tool, with these arguments and any others.

    A value of an argument is any JSON value, or a pattern for a text: ``{"regex": "^[0-9]+$"}``.
    """

    tool: Annotated[TextId, Meta(description="The tool.")]
    arguments: Annotated[
        dict[str, Any],
        Meta(
            description="Arguments that a call must have to count, each a value or `{regex: …}`.",
        ),
    ] = msgspec.field(default_factory=dict)

    def __hash__(self) -> int:
        """Return a hash of the JSON values, of which Python takes some for equal that are not: 1 and true."""
        from ragcontract.answers.json_values import TooDeepError, comparable

        try:
            arguments = comparable(self.arguments)
        except TooDeepError:
            arguments = None
        return hash((type(self), self.tool, arguments))

    def faults(self) -> Iterable[Fault]:
        """Return patterns that are none, and arguments that are too many or nested too deeply."""
        from ragcontract.answers.json_values import TooDeepError, comparable

        if (count := len(self.arguments)) > bounds.ARGUMENTS:
            return [(("arguments",), f"has {count:,} arguments; expected at most {bounds.ARGUMENTS:,}")]
        wrong: list[Fault] = []
        for name, value in self.arguments.items():
            try:
                comparable(value)
            except TooDeepError as error:
                wrong.append((("arguments", name), str(error)))
            if _is_pattern(value):
                wrong += [(("arguments", name, *path), message) for path, message in _pattern_faults(value)]
        return wrong

    def matching(self, row: RunRow) -> list["Call"]:
        """Return the calls of the tool that have the arguments."""
        return [call for call in calls_of(row) if call.name == self.tool and self._fits(call)]

    def _fits(self, call: "Call") -> bool:
        from ragcontract.answers.json_values import comparable

        if not self.arguments:
            return True
        made = call.arguments
        return made is not None and all(
            name in made
            and (_finds(value, made[name]) if _is_pattern(value) else comparable(made[name]) == comparable(value))
            for name, value in self.arguments.items()
        )

    def described(self) -> Phrase:
        """Return the call as people write it."""
        from ragcontract.answers.tool_calls import Call, brief

        return (Name(brief(Call(self.tool, self.arguments)) if self.arguments else self.tool),)


class MustCallTool(OneTool, frozen=True, kw_only=True, gc=False, tag="must_call_tool"):
    """The application calls a tool, with these arguments, so many times."""

    at_least: Annotated[Times, Meta(description="How often, at least; once by default.")] = 1
    at_most: Annotated[Times | None, Meta(description="How often, at most; any number of times by default.")] = None
    __hash__ = OneTool.__hash__

    def faults(self) -> Iterable[Fault]:
        """Return also that no number of calls would do."""
        if self.at_most is not None and self.at_most < self.at_least:
            message = f"is less than at_least ({self.at_least}); no number of calls is both"
            return [*OneTool.faults(self), (("at_most",), message)]
        return OneTool.faults(self)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation if there are too few or too many such calls."""
        count = len(self.matching(row))
        if count < self.at_least:
            times = "" if self.at_least == 1 else f" at least {self.at_least:,} times"
            cause, found = "too few", f"{counted(count, 'such call')}; " if count else ""
            called = (found, *_listed(calls_of(row))) if found else _listed(calls_of(row))
            called = NO_CALLS if row.tool_calls is None else called
        elif self.at_most is not None and count > self.at_most:
            times = f" at most {_times(self.at_most)}"
            cause, called = "too many", (counted(count, "such call"),)
        else:
            return
        expected: Phrase = ("a call of ", *self.described(), times) if times else ("a call of ", *self.described())
        yield Violation(rule="must_call_tool", expected=expected, found=called, causes=(cause,))


class MustNotCallTool(OneTool, frozen=True, kw_only=True, gc=False, tag="must_not_call_tool"):
    """The application does not call a tool, or not with these arguments."""

    __hash__ = OneTool.__hash__

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield one violation with all such calls; without a row, nobody knows that there was none."""
        expected: Phrase = ("no call of ", *self.described())
        if row.tool_calls is None:
            yield Violation(rule="must_not_call_tool", expected=expected, found=NO_CALLS, causes=NO_CALLS)
        elif calls := self.matching(row):
            yield Violation(rule="must_not_call_tool", expected=expected, found=_listed(calls), causes=_causes(calls))


class ToolArgumentsValid(ToolRule, frozen=True, kw_only=True, gc=False, tag="tool_arguments_valid"):
    """The arguments of every call are a JSON object."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield one violation with all calls whose arguments are none; without a row, nobody knows them."""
        expected = ("a JSON object as the arguments of every call",)
        if row.tool_calls is None:
            yield Violation(rule="tool_arguments_valid", expected=expected, found=NO_CALLS, causes=NO_CALLS)
        elif invalid := [call for call in calls_of(row) if call.arguments is None]:
            found = _listed(invalid)
            yield Violation(rule="tool_arguments_valid", expected=expected, found=found, causes=_causes(invalid))


def calls_of(row: RunRow) -> Sequence["Call"]:
    """Return the calls of a row; none for a golden query without a row. Raises CannotScoreError."""
    from ragcontract.answers.tool_calls import tool_calls

    return tool_calls(row.tool_calls or ())


def _listed(calls: Sequence["Call"]) -> Phrase:
    from ragcontract.answers.tool_calls import brief

    if not calls:
        return ("no tool was called",)
    return joined(([Name(brief(call), said=True)] for call in calls[: bounds.LISTED]), len(calls) - bounds.LISTED)


def _causes(calls: Sequence["Call"]) -> tuple[str, ...]:
    from ragcontract.answers.tool_calls import brief

    return tuple(dict.fromkeys(map(brief, calls)))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _is_pattern(value: object) -> bool:
    return isinstance(value, dict) and "regex" in value


def _pattern_faults(value: dict[str, Any]) -> Iterator[Fault]:
    from msgspec import ValidationError, convert

    from ragcontract.answers.matcher_records import Matcher
    from ragcontract.answers.matchers import faults
    from ragcontract.files.schema import mismatches

    try:
        pattern = convert(value, Matcher)
    except ValidationError:
        yield from mismatches(value, Matcher)
        return
    yield from faults(pattern, "regex", of_answers=False)  # any value of an argument may be wanted


def _finds(written: dict[str, Any], value: object) -> bool:
    """Return whether a pattern is found in an argument; it is not in what is no text."""
    if not isinstance(value, str) or len(value) > bounds.ANSWER:
        return False
    from msgspec import convert

    from ragcontract.answers.answer_text import answer_of
    from ragcontract.answers.matcher_records import Matcher
    from ragcontract.answers.matchers import finds, matcher

    return finds(matcher(convert(written, Matcher), "regex"), answer_of(value))
