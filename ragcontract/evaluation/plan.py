"""The turns of a row, for queries that are conversations.

Lists the violations of a row: of very many, the first ones, and what the others of each rule have in common.

A conversation of a thousand turns can violate each of a hundred rules in each turn. Nobody reads that, and reports of
it take minutes. The verdict, the waivers and the comparison with a baseline are the same as with all of them.

How to evaluate each row of a run; the same plan is used for run and baseline, locally and on a cluster.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.finding import unsaid
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Invalid, Metric, Missing
from ragcontract.core.rule import RankRule, RowContext, RowRule, RuleSettings, Turn, Violation, row_rules_of
from ragcontract.core.run import SAID, QueryScore, RunRow, Values, row_type
from ragcontract.evaluation.columns import Column
from ragcontract.metrics.ranking import Families
from ragcontract.runs.baseline_contract import digest_with

if TYPE_CHECKING:
    from ragcontract.judgments.second_pass import SecondPass
    from ragcontract.runs.scores_files import GivenScores, Wanted


def with_turns(query: GoldenQuery, row: RunRow) -> tuple[RunRow, tuple[Turn, ...] | str]:
    """Return a row and its turns if the query is a conversation, or what is wrong with its messages.

    The row then has the last response and the calls of all turns, for metrics.
    """
    if not query.turns:
        if not isinstance(getattr(row, "messages", None), list):
            return row, ()
        from ragcontract.answers.conversation import contradiction, with_last_turn

        why = contradiction(row)
        return (row, why) if why else (with_last_turn(row), ())
    from ragcontract.answers.conversation import turns_of, whole

    turns = turns_of(row, query.turns)
    return row if isinstance(turns, str) else whole(row, turns), turns


def asks_otherwise(query: GoldenQuery, row: RunRow) -> bool:
    """Return whether the user of a row's conversation does not say what the golden turns say."""
    if not query.turns or query.answer is None or not row.messages:
        return False
    from ragcontract.answers.conversation import other_questions

    return other_questions(row.messages, query.answer.turns or ())


def without_answers(query: GoldenQuery, row: RunRow) -> tuple[Turn, ...]:
    """Return the turns of a query that has no row."""
    if not query.turns:
        return ()
    from ragcontract.answers.conversation import unanswered

    return unanswered(row, query.turns)


EXPECTED = ("the rule to hold everywhere",)


def listed_first(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the first ``bounds.VIOLATIONS``; the others are one violation a rule, with their number and all causes.

    Violations that only warn stay apart from those that fail.
    """
    listed: list[Violation] = []
    others: dict[tuple[str, bool], list[Violation]] = {}
    for one in violations:
        if len(listed) < bounds.VIOLATIONS:
            listed.append(one)
        else:
            others.setdefault((one.rule, one.warns), []).append(one)
    return (*listed, *map(_as_one, others.values()))


def _as_one(violations: list[Violation]) -> Violation:
    if len(violations) == 1:
        return violations[0]
    causes = dict.fromkeys(cause for one in violations for cause in one.causes)
    found = (f"{len(violations):,} more violations, which are not listed",)
    return replace(violations[0], expected=EXPECTED, found=found, doc_ids=(), limit=None, causes=tuple(causes))


class BesideRanks(Struct, frozen=True, kw_only=True, gc=False):
    """The values of a row for each family but the ranking metrics, and the rules of rows that it violates.

    ``lacking`` are the metrics whose values are missing; their worst values stand for them. Of a row of a baseline,
    which may lack others, they are those that a judge said nothing of.
    """

    values: tuple[Values, ...] = ()
    violations: tuple[Violation, ...] = ()
    lacking: tuple[str, ...] = ()


class RowOutcome(BesideRanks, frozen=True, kw_only=True, gc=False):
    """The whole result of one row: also its ranks."""

    score: QueryScore
    overlap: Values = ()


class Plan(Families, frozen=True, kw_only=True):
    """The metrics, rules and options for the evaluation of rows.

    ``row_rules`` are the rule classes in use that need the row, and ``rank_rules`` those that need its ranks: they say
    which rows break the contract, so that their results can be listed. With ``turns``, some queries are conversations.
    ``pools`` are the judged pools that a baseline brings for a run, and ``first_ids`` the first ids of its rows, by
    query id. ``listed`` are the queries whose results are read from a baseline once more. Rows may lack ``results``
    unless ``results_required``. With ``repeats``, a query may have several rows; with ``keep_ids``, the document ids of
    all rows are stored. Without ``texts``, nothing that the application said or saw is held for reports. ``given`` is
    what scores files have for the run. With ``tags``, means are computed for these tags only, and rows for the golden
    queries that are ``not_judged``, which want ``wanted_elsewhere``, are skipped. A run is scored as if nothing was
    retrieved for a golden query without a row (whether that is allowed, ``decision.unjudgeable`` says); in a
    ``second_pass``, a judge clears what rules about answers flagged. What families have ``noted`` of a baseline is
    forgotten before the run. A baseline may lack rows, because golden queries may be new.
    """

    golden: dict[str, GoldenQuery]
    row_rules: tuple[type[RowRule], ...] = ()
    rank_rules: tuple[type[RankRule], ...] = ()
    pools: Mapping[str, bytes] = {}
    first_ids: Mapping[str, bytes] = {}
    listed: frozenset[str] = frozenset()
    settings: RuleSettings
    turns: bool = False
    results_required: bool = True
    repeats: bool = False
    keep_ids: bool = False
    texts: bool = True
    is_baseline: bool = False
    given: "GivenScores | None" = None
    second_pass: "SecondPass | None" = None
    noted: Sequence[MutableMapping[str, Any]] = ()
    tags: frozenset[str] = frozenset()
    not_judged: frozenset[str] = frozenset()
    wanted_elsewhere: frozenset[str] = frozenset()

    @property
    def k(self) -> int:
        """The largest cut-off."""
        return self.ranking.k

    def overlap_with_baseline(self, query: GoldenQuery, doc_ids: Sequence[str]) -> Values:
        """Return the overlap of a row with the baseline; empty if there is nothing to compare it with."""
        before, family = self.first_ids.get(query.id), self.overlap
        return () if before is None or family is None else family.against(doc_ids, before)

    @property
    def needs(self) -> frozenset[str]:
        """The fields of a run row that metrics and rules read."""
        of_families = (family.needs for family in (self.ranking, *self.families))
        found = frozenset[str]().union(*of_families, *(rule.needs for rule in self.row_rules))
        if self.second_pass and self.row_rules:
            found |= self.second_pass.needs
        if not self.turns:
            return found
        from ragcontract.rules.turns import InTurns

        return found | InTurns.needs

    @property
    def shows_texts(self) -> bool:
        """Whether reports show what was said and seen for a broken query: if metrics or rules read any of it."""
        return self.texts and not SAID.isdisjoint(self.needs)

    @property
    def row_type(self) -> type[RunRow]:
        """The record type with which rows are decoded; what only reports show of broken queries is not parsed."""
        needs = self.needs
        unparsed = SAID - needs - {"error"} if self.shows_texts else frozenset()
        return row_type(
            needs, unparsed=unparsed, results_required=self.results_required, is_judged=not self.is_baseline
        )

    def for_baseline(self, listed: Collection[str] = ()) -> "Plan":
        """Return the plan for the other side: a baseline is not judged, and need not have every query.

        What it violates is only compared, so its rows may lack what rules need. The results of the queries that are
        ``listed`` are read on their own, once it is known which ones a run breaks.
        """
        return replace(
            self,
            diagnostics=tuple(one for one in self.diagnostics if one is not self.overlap),
            rank_rules=(),
            keep_ids=False,
            is_baseline=True,
            listed=frozenset(listed),
            given=None,
        )

    def against(self, pools: Mapping[str, bytes], first_ids: Mapping[str, bytes]) -> "Plan":
        """Return the plan for a run, given what its baseline brings."""
        return replace(self, pools=pools, first_ids=first_ids)

    @property
    def scores(self) -> dict[str, Metric]:
        """The metrics that are read from the scores of a row, by name."""
        of_scores = [family for family in self.families if "scores" in family.needs]
        return {metric.key: metric for family in of_scores for metric in family.metrics}

    @property
    def wanted_scores(self) -> "Wanted":
        """What is read of scores files."""
        from ragcontract.runs.scores_files import Wanted

        return Wanted(
            golden=self.golden,
            not_judged=self.not_judged,
            metrics=self.scores,
            checks="checks" in self.needs,
            checks_read=self._checks_read() if "checks" in self.needs else {},
            repeats=self.repeats,
        )

    def _checks_read(self) -> dict[str, frozenset[str]]:
        from ragcontract.rules.custom import checks_read

        return {query_id: checks_read(query) for query_id, query in self.golden.items() if query.rules}

    def beside_ranks(self, query: GoldenQuery, row: RunRow) -> BesideRanks | list[Invalid]:
        """Return the outcome of a row but for its ranks, or what is wrong with it.

        A problem without a field completes "query 'q1' …". A baseline may lack what metrics
        need, as it may lack queries.
        """
        merged = self.given.merged(query.id, row) if self.given else row
        if isinstance(merged, list):
            return merged
        row, turns = with_turns(query, merged)
        if isinstance(turns, str):
            if not self.is_baseline:
                return [Invalid("", turns)]
            query, turns = replace(query, rules=()), ()  # what it violates is not known
        found = [valid_values(family, query, row) for family in self.families]
        missing = [one for one in found if isinstance(one, Missing)]
        wrong = [one for one in found if isinstance(one, Invalid)]
        if not self.is_baseline:
            wrong += [Invalid("", one.why) for one in missing if not one.metric]
        if wrong:
            return list(dict.fromkeys(wrong))
        lacking = self._lacking(found) if self.is_baseline else tuple([one.metric for one in missing])
        values = tuple([self._values(one, family) for one, family in zip(found, self.families, strict=True)])
        violations: tuple[Violation, ...] = ()
        if self.row_rules and query.rules:
            context = self._context(values, turns)
            rules = self._rules(query)
            unjudged = [why for rule in rules if (why := rule.lacking(query, row, context))]
            if unjudged and not self.is_baseline:
                once = {why.partition(", which ")[0]: why for why in unjudged}  # several rules lack the same
                return [Invalid("", why) for why in once.values()]
            if not unjudged:
                try:
                    violations = self._violated_in_each(rules, query, row, context)
                except CannotScoreError as error:
                    if not self.is_baseline:
                        return [Invalid("", str(error))]
        return BesideRanks(values=values, violations=violations, lacking=lacking)

    def has_failed(self, query: GoldenQuery, row: RunRow, values: Sequence[Values] = ()) -> bool:
        """Return whether an error stands for what a row would have had: nothing was retrieved, or its answer counts.

        ``values`` are those of all families but the ranking metrics.
        """
        if not row.error:
            return False
        of_answer = zip(self.families, values, strict=False)  # not strict: () if none applies
        return (
            not row.results
            or bool(self._rules(query))
            or any(value and "error" in family.needs for family, value in of_answer)
        )

    def _lacking(self, found: Sequence[Values | Missing | Invalid]) -> tuple[str, ...]:
        """Return the metrics that a row of a baseline lacks."""
        pairs = zip(found, self.families, strict=True)
        lacking = (family for values, family in pairs if isinstance(values, Missing))
        return tuple([metric.key for family in lacking for metric in family.metrics])

    def _values(self, found: Values | Missing | Invalid, family: Family) -> Values:
        if isinstance(found, Missing | Invalid):
            return () if self.is_baseline else worst_values(family.metrics)
        return found

    def missing(self, query: GoldenQuery) -> RowOutcome:
        """Return the outcome of a query without a row, as of an empty row: nothing found, the worst of what it has.

        A query that has no part in a family's metrics has none here either.
        """
        unanswered = {"response": None} if "response" in self.needs else {}
        row = self.row_type(query_id=query.id, results=[], **unanswered)
        values = [() if family.values(query, row) == () else worst_values(family.metrics) for family in self.families]
        context = self._context(values, without_answers(query, row))
        violations = self._violated(self._rules(query), query, row, context)
        score, overlap = self.ranking.score(query, ()), self.overlap_with_baseline(query, ())
        score = replace(score, judged=(0.0,) * len(score.judged))  # a row that is missing is not an empty one
        return RowOutcome(score=score, values=tuple(values), violations=violations, overlap=overlap)

    def score_gaps(self, columns: Sequence[Column], lacking: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Give the queries that lack a score in a row the worst value, or none in a baseline; return the queries.

        The mean of their other rows would pass for the score. Of a baseline, only judged metrics are returned: a limit
        on their change leaves no query out.
        """
        for family, column in zip(self.families, columns, strict=True):
            values = () if self.is_baseline else worst_values(family.metrics)
            for query_id in {query_id for metric in family.metrics for query_id in lacking.get(metric.key, ())}:
                column.replace(query_id, values)
        if not self.is_baseline:
            return lacking
        judged = {metric.key for family in self.families for metric in family.metrics if metric.task}
        return {key: query_ids for key, query_ids in lacking.items() if key in judged}

    def _rules(self, query: GoldenQuery) -> list[RowRule]:
        """Return the rules of a query that are in use."""
        return row_rules_of(query, self.row_rules)

    def _context(self, values: Sequence[Values], turns: Sequence[Turn]) -> RowContext:
        """Return what the rules of a row see, given the values of all families but the ranking metrics."""
        if not any(rule.needs_metrics for rule in self.row_rules):
            return RowContext(settings=self.settings, turns=tuple(turns))
        metrics = {
            metric.key: value
            for family, of_family in zip(self.families, values, strict=True)
            for metric, value in zip(family.metrics, of_family, strict=False)  # not strict: () if none applies
        }
        return RowContext(settings=self.settings, metrics=metrics, turns=tuple(turns))

    def _violated_in_each(
        self, rules: Sequence[RowRule], query: GoldenQuery, row: RunRow, context: RowContext
    ) -> tuple[Violation, ...]:
        """Return the violations of rules, those on metrics with the scores of each row that a scores file repeats."""
        repeated = self.given.repeated(query.id) if self.given and context.metrics else []
        if not repeated:
            return self._violated(rules, query, row, context)
        on_metrics = [rule for rule in rules if rule.needs_metrics]
        found = self._violated([rule for rule in rules if not rule.needs_metrics], query, row, context)
        for scores in repeated:
            of_row = replace(context, metrics={**context.metrics, **scores})
            found = tuple(dict.fromkeys([*found, *self._violated(on_metrics, query, row, of_row)]))
        return found

    def _violated(
        self, rules: Sequence[RowRule], query: GoldenQuery, row: RunRow, context: RowContext
    ) -> tuple[Violation, ...]:
        """Return the violations of rules, of very many only the first; raises CannotScoreError."""
        both: Iterable[tuple[RowRule, RowRule]] = zip(rules, rules, strict=True)
        if known := self.second_pass:
            both = known.applied(query, row, rules, context, strict=not self.is_baseline)
        found = [(rule, one) for rule, judged in both for one in judged.violations(query, row, context)]
        return listed_first(self._with_digests(found)) if found else ()

    def _with_digests(self, found: Iterable[tuple[RowRule, Violation]]) -> Iterator[Violation]:
        """Yield the violations of rules, with digests of the rule and of each thing that is wrong as their causes.

        A query may have several rules of one class, and a stored baseline has no texts: only a digest shows whether it
        violates the same rule for the same reason.
        """
        for rule, of_rule in groupby(found, key=itemgetter(0)):
            digest = digest_with(rule)
            for _, one in of_rule:
                causes = tuple(map(digest, one.causes or one.doc_ids or ("",)))
                if self.texts:
                    yield replace(one, causes=causes)
                else:
                    yield replace(one, causes=causes, expected=unsaid(one.expected), found=unsaid(one.found))


def valid_values(family: Family, query: GoldenQuery, row: RunRow) -> Values | Missing | Invalid:
    """Return the values of one row, or what is missing or wrong."""
    values = family.values(query, row)
    if isinstance(values, Missing | Invalid):
        return values
    if values and len(values) != len(family.metrics):
        return Invalid("", f"has {len(values)} values of {len(family.metrics)} metrics")
    for metric, value in zip(family.metrics, values, strict=False):
        low, high = metric.scale.low, metric.scale.high
        if not low <= value <= high:  # the comparison is false for NaN
            return Invalid("", f"{metric.key} is {value}, outside of its scale from {low:g} to {high:g}")
    return values


def worst_values(metrics: Iterable[Metric]) -> Values:
    """Return the values of a query without any result."""
    return tuple([metric.worst for metric in metrics])


def plan_for(contract: Contract, *, repeats: bool = False, keep_ids: bool = False, texts: bool = True) -> Plan:
    """Return the plan for scoring the rows of a run under a contract."""
    return Plan(
        golden=contract.queries,
        ranking=contract.ranking,
        families=contract.families,
        diagnostics=contract.diagnostics,
        row_rules=tuple(
            rule for rule in contract.rules if issubclass(rule, RowRule) and rule in contract.golden.rule_types
        ),
        rank_rules=tuple(rule for rule in contract.rules if issubclass(rule, RankRule)),
        settings=contract.settings,
        turns="turns" in contract.golden.answer_fields,
        results_required=contract.golden.all_documents and not contract.golden.problems,
        repeats=repeats,
        keep_ids=keep_ids,
        texts=texts,
        tags=frozenset(contract.scope.tags if contract.scope else ()),
        not_judged=frozenset(contract.scope.queries if contract.scope else ()),
        wanted_elsewhere=contract.scope.wanted if contract.scope else frozenset(),
    )
