"""The rules about tool calls: must_call_tool, must_not_call_tool and tool_arguments_valid.

An argument of such a rule is a value or a pattern. A value that only looks like a pattern is refused where the rule
forbids a call, because it would never be found.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, ValidationError, convert

from ragcontract.answers.json_answer import TooDeepError, comparable
from ragcontract.answers.matchers import faults, matcher
from ragcontract.answers.metric_options import CannotScoreError, uncalled
from ragcontract.answers.tool_calls import CalledTools, ToolCall, brief
from ragcontract.core import bounds
from ragcontract.core.config_sections import Matcher
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import TextId
from ragcontract.core.invisible import is_visible
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count as counted
from ragcontract.core.phrase import Message, Name, Phrase, joined
from ragcontract.core.rule import NO_CALLS, Fault, RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.files.schema import mismatches

PATTERN = "regex"
OPTIONS = frozenset({"ignorecase", "word", "dotall"})
# Other names of a pattern, which arguments of tools are unlikely to have.
MISNAMED = frozenset({"re", "reg", "regularexpression", "regexpattern", "regexppattern"})
# The keys with which other fields and tools compare numbers and describe values, without separators of words.
COMPARING = frozenset(
    {
        "gt", "gte", "ge", "lt", "lte", "le", "ne", "neq", "nin", "notin", "min", "max", "minimum", "maximum",
        "between", "range", "greaterthan", "greaterthanorequal", "greaterthanorequals", "lessthan", "lessthanorequal",
        "lessthanorequals", "exclusiveminimum", "exclusivemaximum", "above", "below", "over", "under", "atleast",
        "atmost", "minlength", "maxlength", "enum", "const", "exists", "operator", "op", "pattern",
    }
)  # fmt: skip
# The keys with which they write texts to search for. A tool may have such an argument, too.
LIKELY = COMPARING | {
    "text", "any", "anyof", "all", "allof", "oneof", "in", "not", "match", "matches", "contains", "contain",
    "icontains", "includes", "startswith", "endswith", "prefix", "suffix", "glob", "wildcard", "like", "ilike",
    "equals", "eq", "value", "type",
}  # fmt: skip
# Texts that compare numbers (">100"), or that only a pattern would be: with a star at an end, ".*", "^", classes.
_COMPARES = re.compile(r"\s*(?:[<>]=?|[!=]=|[≤≥≠])\s*[-+$€£]?[0-9.]")
_AS_PATTERN = re.compile(r"%|%\S*%|\S*\*|\*\S*|\^.*|.*\.[*+].*|.*\\[bdswBDSW](?![A-Za-z]).*", re.DOTALL)
AS_PATTERN = (
    'is compared as a value, not searched for; write {"regex": …}, which is also searched for within objects, as in '
    r'{"regex": "^[0-9]{3,}$"} for numbers from 100, or {"regex": "^\\*$"} for a star'
)


def is_pattern(value: object) -> bool:
    """Return whether the value of an argument is a pattern for texts."""
    return isinstance(value, dict) and PATTERN in value


def misspelled_pattern(value: object) -> str | None:
    """Return the misspelled key of a pattern, which has nothing but options beside it; None for any other value."""
    key = _only_key(value)
    if key is None or key == PATTERN:
        return None
    return key if _plain(key) in MISNAMED or NearNames((PATTERN,)).misspelled(key) else None


def likely_matchers(value: object, level: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a value of patterns, and of what looks like a matcher of other fields and tools."""
    if isinstance(value, str) and (_COMPARES.match(value) or _AS_PATTERN.fullmatch(value)):
        yield ()
        return
    if (key := _key_of_matcher(value)) is not None:
        yield (key,)
        return
    if level > bounds.ARGUMENT_LEVELS:  # such a value is refused
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        for path in likely_matchers(item, level + 1):
            yield (str(name), *path)


def _key_of_matcher(value: object) -> str | None:
    """Return the key that makes an object look like a matcher, its only key or one that compares; None if none does."""
    key = _only_key(value)
    if key is not None:
        return key if key == PATTERN or _plain(key) in LIKELY or misspelled_pattern(value) else None
    names = [key for key in value if _plain(key) not in OPTIONS] if isinstance(value, dict) else []
    if not all(_plain(name) in LIKELY for name in names):
        return next((name for name in names if name.startswith("$")), None)
    return next((name for name in names if _plain(name) in COMPARING), None)


def _only_key(value: object) -> str | None:
    """Return the only key of an object, apart from the options of a matcher; None for any other value."""
    keys = [key for key in value if _plain(key) not in OPTIONS] if isinstance(value, dict) else []
    return keys[0] if len(keys) == 1 else None


def _plain(key: str) -> str:
    return re.sub(r"[\W_]+", "", key.casefold())


Times = Annotated[int, Meta(ge=1, le=bounds.CALLS, title=f"a whole number from 1 to {bounds.CALLS:,}")]
# Characters of patterns and lists, which names of tools do not have.
NOT_IN_NAMES = re.compile(r"[*|^$,;()\[\]{}?+%\\\s]")


class ToolRule(RowRule, frozen=True, kw_only=True, gc=False):
    """A rule about the calls in ``tool_calls``."""

    needs: ClassVar[frozenset[str]] = frozenset({"tool_calls", "messages", "error", "finish_reason"})

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return that the row has no calls, or why they cannot be read; after an error, no rule holds."""
        if row.tool_calls is None:
            if row.error is not None:
                return None
            rule = type(self).__struct_config__.tag
            rest = f", which {rule} needs; export them ([] if no tool was called)"
            return Message.quoting("has no tool_calls", rest)
        made = context.once.made(_read, row)
        return str(made) if isinstance(made, CannotScoreError) else uncalled(row.tool_calls, row.finish_reason)


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
        """Return a hash of the JSON values; Python takes some values for equal that are not, such as 1 and true."""
        try:
            arguments = comparable(self.arguments)
        except TooDeepError:
            arguments = None
        return hash((type(self), self.tool, arguments))

    def faults(self) -> Iterable[Fault]:
        """Return the faults: a tool without a name, wrong patterns, too many arguments or too deeply nested ones."""
        if not is_visible(self.tool):
            return [(("tool",), "has nothing but blanks and invisible characters; write the name of the tool")]
        if (count := len(self.arguments)) > bounds.ARGUMENTS:
            return [(("arguments",), f"has {count:,} arguments; expected at most {bounds.ARGUMENTS:,}")]
        wrong: list[Fault] = []
        for name, value in self.arguments.items():
            try:
                comparable(value)
            except TooDeepError as error:
                wrong.append((("arguments", name), str(error)))
            if is_pattern(value):
                wrong += [(("arguments", name, *path), message) for path, message in _pattern_faults(value)]
            elif key := misspelled_pattern(value):
                wrong.append((("arguments", name, key), "is not known; did you mean 'regex'?"))
        return wrong

    def fitting(self, called: CalledTools, calls: Sequence[ToolCall], *, unreadable: bool) -> Sequence[ToolCall]:
        """Return the calls that have the arguments.

        With ``unreadable``, these include calls whose arguments cannot be read, have their names in another form, or
        have a match of a pattern in a value that is not a text.
        """
        if not self.arguments or not calls:
            return calls if unreadable else [call for call in calls if call.arguments is not None]
        form: Callable[[str], str] = called.form_of if unreadable else str
        patterns = {name: value for name, value in self.arguments.items() if is_pattern(value)}
        searches = [(form(name), _search(called, value, anywhere=unreadable)) for name, value in patterns.items()]
        equal = {(form(name), called.key_of(self.arguments[name])) for name in self.arguments.keys() - patterns.keys()}

        def fits(call: "ToolCall") -> bool:
            made = called.arguments(call, in_any_form=unreadable)
            if made is None:
                return unreadable
            return made.keys >= equal and all(any(map(finds, made.values.get(name, ()))) for name, finds in searches)

        return [call for call in calls if fits(call)]

    def _possible(self, called: CalledTools) -> Sequence[ToolCall]:
        """Return the calls that may be of the tool, under its name in any form, with these arguments.

        Arguments that cannot be read, and those that stand beside the name of the tool, may be the ones that are
        forbidden.
        """
        calls = called.resembling(self.tool)
        if self.arguments:
            calls = [call.spread or call for call in calls]
        return self.fitting(called, calls, unreadable=True)

    def described(self) -> Phrase:
        """Return the call as people write it."""
        return (Name(brief(ToolCall(self.tool, self.arguments)) if self.arguments else self.tool),)


class MustCallTool(OneTool, frozen=True, kw_only=True, gc=False, tag="must_call_tool"):
    """The application calls a tool, with these arguments, so many times."""

    at_least: Annotated[Times, Meta(description="How often, at least; once by default.")] = 1
    at_most: Annotated[Times | None, Meta(description="How often, at most; any number of times by default.")] = None
    __hash__ = OneTool.__hash__

    @property
    def in_any_turn(self) -> bool:
        return self.at_most is None

    def faults(self) -> Iterable[Fault]:
        """Return also the fault that no number of calls keeps to both limits."""
        if self.at_most is not None and self.at_most < self.at_least:
            message = f"is less than at_least ({self.at_least}); no number of calls is both"
            return [*OneTool.faults(self), (("at_most",), message)]
        return OneTool.faults(self)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation if there are too few calls by the exact name, or too many that may be of the tool."""
        called = calls_of(row, context)
        made = self.fitting(called, called.named(self.tool), unreadable=False)
        if len(made) < self.at_least:
            times = "" if self.at_least == 1 else f" at least {self.at_least:,} times"
            cause, instead = "too few", (NO_CALLS if row.tool_calls is None else self._instead(called, len(made)))
        elif self.at_most is not None and len(most := self._possible(called)) > self.at_most:
            times, cause = f" at most {_times(self.at_most)}", "too many"
            instead = (counted(len(most), "such call"), *_under_other_names(self.tool, most))
        else:
            return
        expected: Phrase = ("a call of ", *self.described(), times) if times else ("a call of ", *self.described())
        yield self.broken(expected, instead, cause)

    def _instead(self, called: CalledTools, count: int) -> Phrase:
        """Return the calls that were made where there are too few; a name that is nearly the tool's is pointed out."""
        called_instead = _listed(called, called.calls)
        near = _under_other_names(self.tool, called.resembling(self.tool))
        return (f"{counted(count, 'such call')}; ", *called_instead, *near) if count else (*called_instead, *near)


class MustNotCallTool(OneTool, frozen=True, kw_only=True, gc=False, tag="must_not_call_tool"):
    """The application does not call a tool, or not with these arguments."""

    __hash__ = OneTool.__hash__

    @property
    def in_any_turn(self) -> bool:
        return False

    def faults(self) -> Iterable[Fault]:
        """Return also patterns as the tool or as a value, which would never be found, so that the rule always holds."""
        values = {name: value for name, value in self.arguments.items() if not is_pattern(value)}
        likely = ((name, path) for name, value in values.items() for path in likely_matchers(value))
        wrong = [(("arguments", name, *path), AS_PATTERN) for name, path in likely]
        known = [*OneTool.faults(self), *self._pattern_as_tool()]
        places = [path for path, _ in known]
        return [*known, *(fault for fault in wrong if fault[0] not in places)]

    def _pattern_as_tool(self) -> Iterator[Fault]:
        if other := NOT_IN_NAMES.search(self.tool.strip()):
            has = f"has {other[0]!r}, and is compared as a name; patterns and lists are not read"
            blank = ", and _ for a blank in a name" if other[0].isspace() else ""
            yield ("tool",), f"{has}: write a rule for each tool, with its name{blank}"

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield one violation with all such calls; without a row, yield one because the calls are unknown."""
        expected: Phrase = ("no call of ", *self.described())
        if row.tool_calls is None:
            yield self.broken(expected, NO_CALLS, *NO_CALLS)
            return
        called = calls_of(row, context)
        if calls := self._possible(called):
            yield self.broken(expected, _listed(called, calls, self.tool), *_causes(called, calls))


class ToolArgumentsValid(ToolRule, frozen=True, kw_only=True, gc=False, tag="tool_arguments_valid"):
    """The arguments of every call are a JSON object."""

    @property
    def in_any_turn(self) -> bool:
        return False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield one violation with all calls whose arguments are invalid, or because they are unknown without a row."""
        expected = ("a JSON object as the arguments of every call",)
        if row.tool_calls is None:
            yield self.broken(expected, NO_CALLS, *NO_CALLS)
            return
        called = calls_of(row, context)
        if invalid := [call for call in called.calls if call.arguments is None]:
            yield self.broken(expected, _listed(called, invalid), *_causes(called, invalid))


def calls_of(row: RunRow, context: RowContext) -> CalledTools:
    """Return the calls of a row, which are none for a golden query without a row; raises CannotScoreError."""
    made = context.once.made(_read, row)
    if isinstance(made, CannotScoreError):
        raise made
    return made


def _read(row: RunRow) -> CalledTools | CannotScoreError:
    try:
        return CalledTools(row.tool_calls or ())
    except CannotScoreError as error:
        return error


def _listed(called: CalledTools, calls: Sequence[ToolCall], tool: str | None = None) -> Phrase:
    """Return the first calls; with ``tool``, names of it in another form are pointed out."""
    if not calls:
        return ("no tool was called",)
    shown: list[Phrase] = []
    for call in calls[: bounds.LISTED]:
        name = Name(called.brief(call), said=True)
        shown.append((name,) if tool in {None, call.name} else ("called as ", name))
    return joined(shown, len(calls) - bounds.LISTED)


def _under_other_names(tool: str, calls: Sequence[ToolCall]) -> Phrase:
    """Return that some calls have the name of a tool in another form."""
    names = dict.fromkeys(call.name for call in calls if call.name != tool)
    if not names:
        return ()
    listed = joined(([Name(name, said=True)] for name in [*names][: bounds.LISTED]), len(names) - bounds.LISTED)
    return ("; under another name: ", *listed)


def _causes(called: CalledTools, calls: Sequence[ToolCall]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(called.brief, calls)))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _pattern_faults(value: dict[str, Any]) -> Iterator[Fault]:
    try:
        pattern = convert(value, Matcher)
    except ValidationError:
        yield from ((mismatch.path, mismatch.message) for mismatch in mismatches(value, Matcher))
        return
    yield from faults(pattern, "regex", of_answers=False)  # any value of an argument may be wanted


def _search(called: CalledTools, written: dict[str, Any], *, anywhere: bool) -> Callable[[object], bool]:
    """Return a function that says whether a pattern is found in an argument; it searches equal texts once.

    With ``anywhere``, the pattern is also searched for in numbers, booleans, lists and objects, and a text that is too
    long to be searched counts as a match.
    """
    pattern = matcher(convert(written, Matcher), "regex")
    known: dict[tuple[str, ...], bool] = {}

    def finds(value: object) -> bool:
        texts = called.texts(value) if anywhere or isinstance(value, str) else ()
        if texts not in known:
            known[texts] = called.has(pattern, texts, too_long=anywhere)
        return known[texts]

    return finds
