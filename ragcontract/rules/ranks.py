"""The rules about ranks, which say where relevant documents must appear and which documents must not."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import Rank
from ragcontract.core.phrase import Name, Phrase, joined, listed
from ragcontract.core.rule import RankRule, Rule, RuleSettings, Violation
from ragcontract.core.run import QueryScore, RanksById, ranks_by_id

NOTHING_LEFT = ""  # the cause that the last relevant document in the top k is lost; no document has this id
# The words for a wanted and for a forbidden document that the baseline did not retrieve.
ABSENT = {"relevant": "missing", "forbidden": "not there"}


class ForbiddenDocs(RankRule, frozen=True, kw_only=True, gc=False, tag="forbidden_docs"):
    """``forbidden_doc_ids``: none of them is in the first ``within`` results; null means all results."""

    in_rows: ClassVar[bool] = False
    shortcut: ClassVar[bool] = True
    k: int
    within: int | None = None

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:
        return [cls(k=settings.k, within=settings.forbidden_within)] if query.forbidden_doc_ids else []

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        ranks = ranks_by_id(query.forbidden_doc_ids, score.forbidden_ranks)
        present = [doc_id for doc_id, rank in ranks.items() if rank and (self.within is None or rank <= self.within)]
        if present:
            yield Violation(
                rule="forbidden_docs",
                doc_ids=tuple(present),
                documents="forbidden",
                limit=self.within,
                expected=("no ", *listed(present, "or"), f" {within(self.within)}"),
                actual=located(present, ranks, self.k),
            )


class MustRankAtMost(RankRule, frozen=True, kw_only=True, gc=False, tag="must_rank_at_most"):
    """``must_rank_at_most``: at least one relevant document is at this rank or better.

    A lower rank than in the baseline is not a new cause, but the loss of the last relevant document in the top k is.
    """

    in_rows: ClassVar[bool] = False
    shortcut: ClassVar[bool] = True
    rank: Rank
    k: int

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:
        return [] if query.must_rank_at_most is None else [cls(rank=query.must_rank_at_most, k=settings.k)]

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        if any(rank and rank <= self.rank for rank in score.ranks):
            return
        wanted = query.relevant_doc_ids
        lost = not any(rank and rank <= max(self.rank, self.k) for rank in score.ranks)
        yield Violation(
            rule="must_rank_at_most",
            doc_ids=wanted,
            documents="relevant",
            limit=self.rank,
            causes=("too low", NOTHING_LEFT) if lost else ("too low",),
            expected=(*listed(wanted, "or"), f" {within(self.rank)}"),
            actual=located(wanted, ranks_by_id(wanted, score.ranks), self.rank),
        )


class MustInclude(RankRule, frozen=True, kw_only=True, gc=False, tag="must_include"):
    """Every relevant document is in the top k; with ``must_include_any``, one of them is enough."""

    names: ClassVar[tuple[str, ...]] = ("must_include", "must_include_any")
    in_rows: ClassVar[bool] = False
    shortcut: ClassVar[bool] = True
    k: int
    any: bool = False

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:
        return [cls(k=settings.k, any=query.wants_any(settings.includes_any))] if query.relevant_doc_ids else []

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        ranks = ranks_by_id(query.relevant_doc_ids, score.ranks)
        missing = [doc_id for doc_id, rank in ranks.items() if rank is None or rank > self.k]
        if not missing or (self.any and len(missing) < len(ranks)):
            return
        yield Violation(
            rule="must_include_any" if self.any else "must_include",
            doc_ids=tuple(missing),
            documents="relevant",
            limit=self.k,
            causes=(*missing, NOTHING_LEFT) if len(missing) == len(ranks) else (),
            expected=(*listed(missing, "or" if self.any else "and"), f" {within(self.k)}"),
            actual=located(missing, ranks, self.k),
        )


class RankRules:
    """The rank rules among the rules of a contract."""

    def __init__(self, rules: Iterable[type[Rule]], settings: RuleSettings) -> None:
        self._rules = [rule for rule in rules if issubclass(rule, RankRule)]
        self._settings = settings
        self._has_shortcut = all(rule.shortcut or rule.in_rows for rule in self._rules)

    def may_be_violated(self, query: GoldenQuery, score: QueryScore) -> bool:
        """Return False if the query's score shows that no rank rule can be violated.

        This is an optimization. Most queries pass, and checking each rule of 100,000 queries would take a tenth of the
        time of a check.
        """
        if not (score.clean_rank and self._has_shortcut) or score.clean_rank > (
            query.must_rank_at_most or score.clean_rank
        ):
            return True
        return any(isinstance(rule, RankRule) for rule in query.rules) if query.rules else False

    def violations(self, query: GoldenQuery, score: QueryScore) -> tuple[Violation, ...]:
        """Return the violated rules, of several rows those that any row violates, with the worst rank of each document.

        The worst ranks alone are not enough. Some rules need only one document, which can be a different one in each
        row, so the worst ranks could violate a rule that no single row violates. What is wrong is what is wrong in a
        row: every relevant document may be missing in some row, and none of the rows have lost all of them.
        """
        violations = tuple(self._of_row(query, score))
        if not score.repeats or not violations:
            return violations
        causes: dict[str, set[str]] = {}
        for repeat in score.repeats:
            for violation in self._of_row(query, repeat):
                causes.setdefault(violation.rule, set()).update(violation.wrong)
        return tuple(
            replace(violation, causes=tuple(sorted(causes[violation.rule])))
            for violation in violations
            if violation.rule in causes
        )

    def _of_row(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        for rules in self._rules:
            for rule in rules.of(query, self._settings):
                yield from rule.violations(query, score)


def within(top: int | None) -> str:
    """Return ``in top 5``, or ``in the results`` if there is no limit on the rank."""
    return "in the results" if top is None else f"in top {top}"


def located(
    doc_ids: Sequence[str], ranks: RanksById, depth: int, *, before: RanksById | None = None, absent: str = "missing"
) -> Phrase:
    """Describe the current and previous ranks of documents: ``missing from top 5 (was rank 1)``.

    The names of the documents are included if there are several. ``absent`` is the wording for a document that was not
    retrieved in the baseline.
    """

    def rank_of(doc_id: str) -> str:
        rank = ranks.get(doc_id)
        text = f"missing from top {depth}" if rank is None else f"rank {rank}"
        if before is None:
            return text
        old = before.get(doc_id)
        if old and (old <= depth or rank is not None):  # a document below the top k was missing, too
            return f"{text} (was rank {old})"
        return f"{text} (was {absent}{' too' if rank is None else ''})"

    if len(doc_ids) == 1:
        return (rank_of(doc_ids[0]),)
    if before is None and not any(map(ranks.get, doc_ids)):
        return (f"all missing from top {depth}",)
    return joined(
        ((Name(doc_id), f" {rank_of(doc_id)}") for doc_id in doc_ids[: bounds.LISTED]), len(doc_ids) - bounds.LISTED
    )
