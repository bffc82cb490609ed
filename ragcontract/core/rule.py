"""Rule interface: an expectation on one golden query that is met or violated.

A rule is a record. Most rules are entries in the ``rules`` of a golden row, with the class's tag as their ``type``;
some are read from fields of their own (``must_rank_at_most: 3``). To add one, add a subclass of a class below and
register it in ``ragcontract.registry``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct

from ragcontract.core.answer_settings import AnswerSettings
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.phrase import Phrase
from ragcontract.core.run import QueryScore, RunRow

T = TypeVar("T")
R = TypeVar("R")
Fault: TypeAlias = tuple[tuple[str | int, ...], str]  # the path within a value of a file, and what is wrong there


class Violation(Struct, frozen=True, kw_only=True, gc=False):
    """A violated rule; ``expected`` and ``found`` complete "expected …; found: …".

    ``doc_ids`` are the documents involved, ``documents`` says which ones of the query these are if the rule is about
    their ranks, and ``limit`` is the rank for rules about ranks. ``causes`` are the single
    things that are wrong, for a rule where these are not the documents involved. ``in_baseline`` says that the baseline
    violates the rule already, for the same causes; ``known`` that this violation does not count therefore. ``waived``
    is the reason of the waiver, if there is one. ``skipped`` says why the query's tier is not judged. With ``tallied``,
    the violation counts in the pass rate and does not fail the check by itself. With ``warns``, it is reported and does
    not fail the check. ``turn`` is the number of the turn of a conversation, from 0, if it is about one; ``metrics``
    are the keys of those whose values are wrong.
    """

    rule: str
    expected: Phrase
    found: Phrase
    doc_ids: tuple[str, ...] = ()
    documents: Literal["relevant", "forbidden"] | None = None
    limit: int | None = None
    causes: tuple[str, ...] = ()
    in_baseline: bool = False
    known: bool = False
    waived: str | None = None
    skipped: str | None = None
    tallied: bool = False
    warns: bool = False
    turn: int | None = None
    metrics: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether the violation is neither waived nor excused as known, nor of a tier that is skipped."""
        return self.waived is None and self.skipped is None and not self.known

    @property
    def wrong(self) -> frozenset[str]:
        """The single things that are wrong: one more of them than before makes a violation worse."""
        return frozenset(self.causes or self.doc_ids)


class Plugin(Protocol):
    """Code of the user that a rule calls."""

    def evaluate(self, output: str, tool_calls: list[Any], rule: dict[str, Any]) -> tuple[bool, str]:
        """Return whether an answer passes, and why."""


class RuleSettings(Struct, frozen=True, kw_only=True):
    """Rule settings: the largest cut-off, how deep documents are forbidden, how answers are compared, plugins.

    ``different_documents`` are ids that stand for themselves alone, whatever they look like.

    ``metrics`` are those that rules on their values name, by key.

    Plugins are never named by the configuration, but by whoever runs the check, by the names of their classes.
    """

    k: int
    forbidden_within: int | None = None
    different_documents: frozenset[str] = frozenset()
    answers: AnswerSettings = AnswerSettings()
    metrics: Mapping[str, Metric] = {}
    plugins: Mapping[str, Plugin] = {}


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """A turn of a conversation as a row of its own; ``message`` is where it begins in ``messages``, None if nowhere."""

    row: RunRow
    message: int | None = None


class Once:
    """What the rules of a query share: each thing is made of a row by the first rule that reads it."""

    def __init__(self) -> None:
        """Start empty."""
        self._made: dict[tuple[Callable[..., Any], int], tuple[object, Any]] = {}

    def made(self, make: Callable[[T], R], of: T) -> R:
        """Return what ``make`` returns for a row or a turn."""
        key = make, id(of)
        if key not in self._made:
            self._made[key] = of, make(of)  # it is held, so that no other row gets its id
        return cast("R", self._made[key][1])


class RowContext(Struct, frozen=True, kw_only=True):
    """What a rule sees beside the row.

    The settings, the row's metrics by key, if the rule ``needs_metrics``, the turns, if the query has any, and what
    the rules share.
    """

    settings: RuleSettings
    metrics: Mapping[str, float] = {}
    turns: tuple[Turn, ...] = ()
    once: Once = msgspec.field(default_factory=Once)


class Rule(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    """One expectation on one query.

    ``names`` are its names in waivers and reports, by default the class's tag. ``per_query.enforce_SWITCH`` turns it
    off. ``in_rows`` says whether it may be an entry in the ``rules`` of a golden row.
    """

    names: ClassVar[tuple[str, ...]] = ()
    switch: ClassVar[str] = ""
    in_rows: ClassVar[bool] = True

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:  # noqa: ARG003 (used by subclasses that have fields)
        """Return the rules of this class that apply to a query; by default the entries of its ``rules``."""
        return [rule for rule in query.rules if type(rule) is cls]

    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the rule as it is written, although its fields have the right types."""
        return ()


class RowRule(Rule, frozen=True, kw_only=True, gc=False):
    """A rule that is checked against the run row: an entry in the ``rules`` of its golden query.

    ``needs`` names the fields of the row that it reads. ``about_answer`` says that the query must be answered, too.
    ``in_turns`` says to which turns it applies, if the query has turns. ``on_spark`` says that it can be checked there.
    ``in_any_turn`` says that it can be asked to hold in any of them; what must not be in any turn must hold in each.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    needs_metrics: ClassVar[bool] = False
    about_answer: ClassVar[bool] = False
    on_spark: ClassVar[bool] = False
    in_any_turn: ClassVar[bool] = True
    in_turns: Annotated[
        Literal["each", "any", "last"] | None, Meta(description="In which turns it must hold; only with `turns`.")
    ] = msgspec.field(default=None, name="in")

    @property
    def inner(self) -> "RowRule":
        """The rule that decides: this one, or the one that it applies to turns."""
        return self

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002 (used by subclasses)
        """Return what the row lacks, which makes it impossible to judge; it completes "query 'q1' …"."""
        for field in sorted(self.needs):
            if "." not in field and getattr(row, field) is UNSET:
                return f"has no {field}, which {names_of(type(self))[0]} needs; export it"
        return None

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:
        """Yield the violations in the row."""
        raise NotImplementedError


class RankRule(Rule, frozen=True, kw_only=True, gc=False):
    """A rule about ranks; ranks are stored when the rows are gone.

    ``shortcut`` says that the rule holds for every query for which ``rules.ranks.may_be_violated`` is false.
    """

    shortcut: ClassVar[bool] = False

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        """Yield the violations in the ranks."""
        raise NotImplementedError


def row_rules_of(query: GoldenQuery, classes: tuple[type[Rule], ...]) -> list[RowRule]:
    """Return the rules of a query that are checked against its row, or its turns, and decided by one of the classes."""
    rules = (rule for rule in query.rules if isinstance(rule, RowRule))
    return [rule for rule in rules if isinstance(rule.inner, classes)]


def names_of(rule: type[Rule]) -> tuple[str, ...]:
    """Return the names of a rule in waivers and reports."""
    return rule.names or (str(rule.__struct_config__.tag),)


def switch_of(rule: type[Rule]) -> str:
    """Return the part after ``enforce_`` in the configuration's ``per_query``."""
    return rule.switch or names_of(rule)[0]
