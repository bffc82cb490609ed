"""The seam for rules: an expectation of one golden query that holds or is violated.

A rule is a record. Most are entries of a golden row's ``rules``, whose ``type`` is the class's tag; some are read from
fields of their own (``must_rank_at_most: 3``). Adding one is a class here below and a line in ``ragcontract.registry``.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Self

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Phrase
from ragcontract.core.run import RunRow
from ragcontract.core.scores import QueryScore


class Violation(Struct, frozen=True, kw_only=True, gc=False):
    """A rule that is violated: ``expected`` and ``found`` complete "expected …; found: …".

    ``doc_ids`` are the documents it is about and ``limit`` the rank, for rules of ranks; ``waived`` is why it does not
    count.
    """

    rule: str
    expected: Phrase
    found: Phrase
    doc_ids: tuple[str, ...] = ()
    limit: int | None = None
    waived: str | None = None


class RuleSettings(Struct, frozen=True, kw_only=True):
    """What the configuration says about rules: the largest cut-off, and where forbidden documents are looked for."""

    k: int
    forbidden_within: int | None = None


class Rule(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    """One expectation of one query.

    ``names`` are those in waivers and reports, the class's tag unless it says otherwise. ``per_query.enforce_SWITCH``
    turns it off. ``in_rows`` says whether it may be an entry of a golden row's ``rules``.
    """

    names: ClassVar[tuple[str, ...]] = ()
    switch: ClassVar[str] = ""
    in_rows: ClassVar[bool] = True

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:  # noqa: ARG003 (for those with fields)
        """Return the rules of this class that a query has: the entries of its ``rules``."""
        return [rule for rule in query.rules if type(rule) is cls]


class RowRule(Rule, frozen=True, kw_only=True, gc=False):
    """A rule that is checked while the run's row is at hand; ``needs`` names the fields of the row it reads."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def violations(self, query: GoldenQuery, row: RunRow) -> Iterator[Violation]:
        """Yield what the row violates."""
        raise NotImplementedError


class RankRule(Rule, frozen=True, kw_only=True, gc=False):
    """A rule about ranks, which are kept when rows are gone, on a cluster and with repeated rows too."""

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        """Yield what the ranks violate."""
        raise NotImplementedError


def names_of(rule: type[Rule]) -> tuple[str, ...]:
    """Return a rule's names in waivers and reports."""
    return rule.names or (str(rule.__struct_config__.tag),)


def switch_of(rule: type[Rule]) -> str:
    """Return the name behind ``enforce_`` in the configuration's ``per_query``."""
    return rule.switch or names_of(rule)[0]
