"""The rule interface: an expectation on one golden query that is met or violated.

A rule is a record. Most rules are entries in the ``rules`` of a golden row, with the class's tag as their ``type``.
Some are read from fields of their own (``must_rank_at_most: 3``). To add one, add a subclass of a class below and
register it in ``ragcontract.registry``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct

from ragcontract.core.config_sections import AnswerSettings
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.phrase import Message, Phrase
from ragcontract.core.run import QueryScore, RunRow

R = TypeVar("R")
# Whether a violation fails the check, only counts in the pass rate, only warns, or is excused and by what.
ViolationStatus = Literal["fail", "counted", "warn", "skipped", "known", "waived"]
Fault: TypeAlias = tuple[tuple[str | int, ...], str]  # the path within a value of a file, and what is wrong there


class Violation(Struct, frozen=True, kw_only=True, gc=False):
    """A violated rule; ``expected`` and ``actual`` complete "expected …; found: …"."""

    rule: str
    expected: Phrase
    actual: Phrase
    doc_ids: tuple[str, ...] = ()  # the documents involved
    documents: Literal["relevant", "forbidden"] | None = None  # which documents these are, if the rule is about ranks
    limit: int | None = None  # the rank, if the rule is about ranks
    causes: tuple[str, ...] = ()  # the single things that are wrong, if these are not the documents involved
    in_baseline: bool = False  # the baseline violates the rule already, for the same causes
    warns: bool = False  # the rule asks that it is reported and does not fail the check
    status: ViolationStatus = "fail"  # set by ``decision.policy``, which knows waivers, tiers and severities
    why: str = ""  # the reason for the status
    turn: int | None = None  # the number of the turn of a conversation, from 0, if it is about one turn
    metrics: tuple[str, ...] = ()  # the keys of the metrics whose values are wrong
    flag: "Flag | None" = None  # with which a judge can be asked about it, if the context asks for flags

    @property
    def wrong(self) -> frozenset[str]:
        """The single things that are wrong. One that was not wrong before makes a violation worse."""
        return frozenset(self.causes or self.doc_ids)


class Flag(Struct, frozen=True, kw_only=True, gc=False):
    """A violation that a judge can be asked about, with the words that were found."""

    violation: Violation  # as the rule found it in the answer, which may be that of a turn
    texts: tuple[str, ...]  # the different words that were found; empty if there are too many, so the violation stands
    why: str  # they were searched for


LEAKS = "must_not_leak"  # where it is broken, reports have no other words of the answer
NO_ANSWER = ("no answer",)
NO_CALLS = ("no tool_calls",)  # the calls of a golden query without a row, or of a turn after an error, are not known


def follows_from(violation: Violation, unanswered: Violation) -> bool:
    """Return True if a rule fails only for lack of an answer or after an error, as ``unanswered`` says already."""
    if violation is unanswered or violation.turn != unanswered.turn:
        return False
    return violation.actual[:1] in {NO_ANSWER, NO_CALLS} or violation.actual == unanswered.actual


class Plugin(Protocol):
    """Code of the user that a rule calls."""

    def evaluate(self, output: str, tool_calls: list[Any], rule: dict[str, Any]) -> tuple[bool, str]:
        """Return whether an answer passes, and why."""


class RuleSettings(Struct, frozen=True, kw_only=True):
    """The settings of rules."""

    k: int  # the largest cut-off
    includes_any: bool = False  # whether one relevant document in the top k is enough, unless a query says otherwise
    forbidden_within: int | None = None  # down to which rank documents are forbidden; None: at any rank
    different_documents: frozenset[str] = frozenset()  # ids that are never another form of another id
    answers: AnswerSettings = AnswerSettings()
    metrics: Mapping[str, Metric] = {}  # by key, the metrics that rules on values name
    plugins: Mapping[str, Plugin] = {}  # by class name; whoever runs the check names them, never the configuration


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """A turn of a conversation as a row of its own."""

    row: RunRow
    message: int | None = None  # where it begins in ``messages``, if it does


class Once:
    """Values that the rules of a query share. The first rule that needs a value of a row makes it."""

    def __init__(self) -> None:
        self._made: dict[tuple[Callable[..., Any], int], tuple[object, Any]] = {}

    def made(self, make: Callable[..., R], of: object, *more: object) -> R:
        """Return what ``make`` returns for a row or a turn, and for what is the same for all of them."""
        key = make, id(of)
        if key not in self._made:
            self._made[key] = of, make(of, *more)  # the row is held, so that no other row gets its id
        return cast("R", self._made[key][1])


class RowContext(Struct, frozen=True, kw_only=True):
    """Settings, metrics and turns that a rule can read besides the row."""

    settings: RuleSettings
    metrics: Mapping[str, float] = {}  # the row's values by key, if the rule ``needs_metrics``
    turns: tuple[Turn, ...] = ()  # if the query has turns
    flags: bool = False  # whether rules that search answers return what a judge can be asked about violations
    once: Once = msgspec.field(default_factory=Once)  # what the rules of the query share


class Rule(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    """One expectation on one query."""

    names: ClassVar[tuple[str, ...]] = ()  # in waivers and reports; by default the class's tag
    switch: ClassVar[str] = ""  # ``per_query.enforce_SWITCH`` turns the rule off
    in_rows: ClassVar[bool] = True  # whether it may be an entry in the ``rules`` of a golden row

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:  # noqa: ARG003 (used by subclasses that have fields)
        """Return the rules of this class that apply to a query; by default the entries of its ``rules``."""
        return [rule for rule in query.rules if type(rule) is cls]

    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the rule as it is written, although its fields have the right types."""
        return ()

    def broken(
        self, expected: Phrase, actual: Phrase, *causes: str, metrics: tuple[str, ...] = (), warns: bool = False
    ) -> Violation:
        """Return a violation of this rule, with the single things that are wrong."""
        name = names_of(type(self))[0]
        return Violation(rule=name, expected=expected, actual=actual, causes=causes, metrics=metrics, warns=warns)


class RowRule(Rule, frozen=True, kw_only=True, gc=False):
    """A rule that is checked against the run row: an entry in the ``rules`` of its golden query."""

    needs: ClassVar[frozenset[str]] = frozenset()  # the fields of the row that it reads
    needs_metrics: ClassVar[bool] = False
    about_answer: ClassVar[bool] = False  # the query must be answered, too
    on_spark: ClassVar[bool] = False  # it can be checked on Spark
    in_turns: Annotated[
        Literal["each", "any", "last"] | None, Meta(description="In which turns it must hold; only with `turns`.")
    ] = msgspec.field(default=None, name="in")

    @property
    def in_any_turn(self) -> bool:
        """True if the rule can be used with ``in: any``. False if it forbids something or sets a maximum."""
        return True

    @property
    def inner(self) -> "RowRule":
        """The rule that decides: this one, or the one that it applies to turns."""
        return self

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002 (used by subclasses)
        """Return what the row lacks, so that it cannot be judged; it completes "query 'q1' …".

        If several rules lack the same, the first parts of their messages are equal, and one is reported.
        """
        for field in sorted(self.needs):
            if "." not in field and getattr(row, field) is UNSET:
                return Message.quoting(f"has no {field}", f", which {names_of(type(self))[0]} needs; export it")
        return None

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:
        """Yield the violations in the row."""
        raise NotImplementedError


class RankRule(Rule, frozen=True, kw_only=True, gc=False):
    """A rule about ranks, which are kept when the rows are gone."""

    shortcut: ClassVar[bool] = False  # it holds for every query for which ``RankRules.may_be_violated`` is false

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        """Yield the violations in the ranks."""
        raise NotImplementedError


def row_rules_of(query: GoldenQuery, classes: tuple[type[Rule], ...]) -> list[RowRule]:
    """Return the rules of a query that are checked against its row, or its turns, and decided by one of the classes."""
    return [rule for rule in query.rules if isinstance(rule, RowRule) and type(rule.inner) in classes]


def names_of(rule: type[Rule]) -> tuple[str, ...]:
    """Return the names of a rule in waivers and reports."""
    return rule.names or (str(rule.__struct_config__.tag),)


def switch_of(rule: type[Rule]) -> str:
    """Return the part after ``enforce_`` in the configuration's ``per_query``."""
    return rule.switch or names_of(rule)[0]
