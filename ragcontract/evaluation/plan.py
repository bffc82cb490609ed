"""The plan: how to evaluate one row. Run and baseline use the same plan, locally and on a cluster.

A conversation of a thousand turns can violate each of a hundred rules in each turn. Nobody reads that, and reports of
it take minutes, so only the first violations of a row are listed. The others of a rule become one violation with all
their causes, so that the verdict, the waivers and the comparison with a baseline are the same.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.finding import unsaid
from ragcontract.core.golden import RELEVANT_GRADE, GoldenQuery
from ragcontract.core.metric import Family, Invalid, Metric, Missing
from ragcontract.core.phrase import parts_of
from ragcontract.core.rule import LEAKS, RankRule, RowContext, RowRule, RuleSettings, Turn, Violation, row_rules_of
from ragcontract.core.run import CONTEXT_FIELDS, SAID, QueryScore, RunRow, SourceFile, Values, row_type
from ragcontract.metrics.ranking import Families
from ragcontract.runs.baseline_contract import digest_with

if TYPE_CHECKING:
    from ragcontract.judgments.check import JudgeFiles
    from ragcontract.judgments.second_pass import Asked, Confirmed
    from ragcontract.runs.scores_files import GivenScores, Wanted

EXPECTED = ("the rule to hold everywhere",)


class BesideRanks(Struct, frozen=True, kw_only=True):
    """The outcome of a row as far as it does not depend on ranks."""

    values: tuple[Values, ...] = ()  # for each family except the ranking metrics
    violations: tuple[Violation, ...] = ()  # of rules that read the row
    # The metrics whose values are missing. A row of a run has their worst values; a row of a baseline has none.
    lacking: tuple[str, ...] = ()
    confirmed: "Confirmed | None" = None  # what a judge said of what rules flagged


class RowOutcome(Struct, frozen=True, kw_only=True, gc=False):
    """The whole outcome of a row, as the worker of a cluster sends it."""

    score: QueryScore
    overlap: Values = ()
    values: tuple[Values, ...] = ()  # as those of ``BesideRanks``
    violations: tuple[Violation, ...] = ()


class Plan(Families, frozen=True, kw_only=True):
    """The metrics, rules and options for the evaluation of rows.

    A run is scored as if nothing was retrieved for a golden query without a row; ``decision.input_problems`` decides
    whether that is allowed. A baseline may lack rows, because golden queries may be new.
    """

    golden: dict[str, GoldenQuery]
    golden_files: tuple[SourceFile, ...] = ()
    relevance_level: float = RELEVANT_GRADE
    row_rules: tuple[type[RowRule], ...] = ()  # the rules in use that read the row
    rank_rules: tuple[type[RankRule], ...] = ()  # the rules in use that read the ranks; the broken rows are listed
    pools: Mapping[str, bytes] = {}  # the judged pools that a baseline brings for a run, by query id
    first_ids: Mapping[str, bytes] = {}  # the first ids of a baseline's rows, by query id
    listed: frozenset[str] = frozenset()  # the queries whose results are read from a baseline a second time
    settings: RuleSettings
    turns: bool = False  # whether some queries are conversations
    results_required: bool = True  # otherwise rows may lack results
    repeats: bool = False  # whether a query may have several rows
    keep_ids: bool = False  # whether the document ids of all rows are stored
    texts: bool = True  # whether reports may show what the application said and saw
    is_baseline: bool = False
    scores_files: "GivenScores | None" = None  # of the run
    judge: "JudgeFiles | None" = None  # what a judge said, also in a second pass over what rules flagged
    tags: frozenset[str] = frozenset()  # the only tags for which means are computed; empty for all
    not_judged: frozenset[str] = frozenset()  # the golden queries outside the scope, whose rows are skipped
    wanted_elsewhere: frozenset[str] = frozenset()  # the documents that queries outside the scope want

    @property
    def k(self) -> int:
        return self.ranking.k

    def overlap_with_baseline(self, query: GoldenQuery, doc_ids: Sequence[str]) -> Values:
        """Return the overlap of a row with the baseline; empty if there is nothing to compare the row with."""
        before, family = self.first_ids.get(query.id), self.overlap
        return () if before is None or family is None else family.against(doc_ids, before)

    @property
    def needs(self) -> frozenset[str]:
        """The fields of a run row that metrics and rules read."""
        of_families = (family.needs for family in (self.ranking, *self.families))
        fields = frozenset[str]().union(*of_families, *(rule.needs for rule in self.row_rules))
        if self.judge and self.judge.second_pass and self.row_rules:
            fields |= CONTEXT_FIELDS
        if not self.turns:
            return fields
        from ragcontract.rules.turns import InTurns

        return fields | InTurns.needs

    @property
    def shows_texts(self) -> bool:
        """Whether reports show the texts of broken queries, which they do if metrics or rules read texts."""
        return self.texts and not SAID.isdisjoint(self.needs)

    @property
    def row_type(self) -> type[RunRow]:
        """The record type with which rows are decoded. Fields that only reports show stay unparsed."""
        needs = self.needs
        unparsed = SAID - needs - {"error"} if self.shows_texts else frozenset()
        return row_type(
            needs, unparsed=unparsed, results_required=self.results_required, is_judged=not self.is_baseline
        )

    def for_baseline(self, listed: Collection[str] = ()) -> "Plan":
        """Return the plan for a baseline, which needs not have every query.

        Its violations are only compared, so its rows may lack what rules need. The results of ``listed`` queries are
        read in a second pass, when it is known which queries the run breaks.
        """
        return replace(
            self,
            diagnostics=tuple(family for family in self.diagnostics if family is not self.overlap),
            rank_rules=(),
            keep_ids=False,
            is_baseline=True,
            listed=frozenset(listed),
            scores_files=None,
        )

    def against(self, pools: Mapping[str, bytes], first_ids: Mapping[str, bytes]) -> "Plan":
        return replace(self, pools=pools, first_ids=first_ids)

    @property
    def scores(self) -> dict[str, Metric]:
        """The metrics that are read from the scores of a row, by name."""
        of_scores = [family for family in self.families if "scores" in family.needs]
        return {metric.key: metric for family in of_scores for metric in family.metrics}

    @property
    def wanted_scores(self) -> "Wanted":
        from ragcontract.runs.scores_files import Wanted

        return Wanted(
            golden=self.golden,
            not_judged=self.not_judged,
            metrics=self.scores,
            checks="checks" in self.needs,
            checks_read=self._checks_read() if "checks" in self.needs else {},
            repeats=self.repeats,
            reasons=self.texts,
        )

    def _checks_read(self) -> dict[str, frozenset[str]]:
        from ragcontract.rules.custom import checks_read

        return {query_id: checks_read(query) for query_id, query in self.golden.items() if query.rules}

    def beside_ranks(self, query: GoldenQuery, row: RunRow) -> BesideRanks | list[Invalid]:
        """Return the outcome of a row but for its ranks, or what is wrong with the row.

        The message of a problem without a field completes "query 'q1' …". A baseline may lack what metrics need.
        """
        merged = self.scores_files.table.merged(query.id, row) if self.scores_files else row
        if isinstance(merged, list):
            return merged
        row, turns = with_turns(query, merged)
        if isinstance(turns, str):
            if not self.is_baseline:
                return [Invalid("", turns)]
            query, turns = replace(query, rules=()), ()  # its violations are not known
        outcomes = [valid_values(family, query, row) for family in self.families]
        missing = [outcome for outcome in outcomes if isinstance(outcome, Missing)]
        wrong = [outcome for outcome in outcomes if isinstance(outcome, Invalid)]
        if not self.is_baseline:
            wrong += [Invalid("", outcome.why) for outcome in missing if not outcome.metric]
        if wrong:
            return list(dict.fromkeys(wrong))
        lacking = self._lacking(outcomes) if self.is_baseline else tuple([outcome.metric for outcome in missing])
        values = tuple([self._values(outcome, family) for outcome, family in zip(outcomes, self.families, strict=True)])
        violations: tuple[Violation, ...] = ()
        confirmed = None
        if self.row_rules and query.rules:
            context = self._context(values, turns)
            rules = self._rules(query)
            unknown = [why for rule in rules if (why := rule.lacking(query, row, context))]
            if unknown and not self.is_baseline:
                once = {parts_of(why)[0]: why for why in unknown}  # several rules lack the same
                return [Invalid("", why) for why in once.values()]
            if not unknown:
                try:
                    violations, confirmed = self._violated(rules, query, row, context)
                except CannotScoreError as error:
                    if not self.is_baseline:
                        return [Invalid("", str(error))]
        return BesideRanks(values=values, violations=violations, lacking=lacking, confirmed=confirmed)

    def has_failed(self, query: GoldenQuery, row: RunRow, values: Sequence[Values] = ()) -> bool:
        """Return whether an error replaces what the contract reads of a row: its results, or its answer.

        ``values`` are those of all families except the ranking metrics.
        """
        if not row.error:
            return False
        of_answer = zip(self.families, values, strict=False)  # not strict: () if none applies
        return (
            not row.results
            or bool(self._rules(query))
            or any(value and "error" in family.needs for family, value in of_answer)
        )

    def _lacking(self, outcomes: Sequence[Values | Missing | Invalid]) -> tuple[str, ...]:
        pairs = zip(outcomes, self.families, strict=True)
        lacking = (family for values, family in pairs if isinstance(values, Missing))
        return tuple([metric.key for family in lacking for metric in family.metrics])

    def _values(self, outcome: Values | Missing | Invalid, family: Family) -> Values:
        if isinstance(outcome, Missing | Invalid):
            return () if self.is_baseline else worst_values(family.metrics)
        return outcome

    def missing(self, query: GoldenQuery) -> RowOutcome:
        """Return the outcome of a query without a row: no results, and the worst value of each metric that it has.

        A query to which a family's metrics do not apply has no values of that family.
        """
        unanswered = {"response": None} if "response" in self.needs else {}
        row = self.row_type(query_id=query.id, results=[], **unanswered)
        values = [() if family.values(query, row) == () else worst_values(family.metrics) for family in self.families]
        context = self._context(values, without_answers(query, row))
        violations = self._listed(_asked(self._rules(query), query, row, context))  # no judge is asked
        score, overlap = self.ranking.score(query, ()), self.overlap_with_baseline(query, ())
        score = replace(score, judged=(0.0,) * len(score.judged))  # a row that is missing is not an empty one
        return RowOutcome(score=score, values=tuple(values), violations=violations, overlap=overlap)

    def _rules(self, query: GoldenQuery) -> list[RowRule]:
        return row_rules_of(query, self.row_rules)

    def _context(self, values: Sequence[Values], turns: Sequence[Turn]) -> RowContext:
        """Return what the rules of a row see; ``values`` are those of all families except the ranking metrics."""
        flags = bool(self.judge and self.judge.second_pass)
        if not any(rule.needs_metrics for rule in self.row_rules):
            return RowContext(settings=self.settings, turns=tuple(turns), flags=flags)
        metrics = {
            metric.key: value
            for family, of_family in zip(self.families, values, strict=True)
            for metric, value in zip(family.metrics, of_family, strict=False)  # not strict: () if none applies
        }
        return RowContext(settings=self.settings, metrics=metrics, turns=tuple(turns), flags=flags)

    def _violated(
        self, rules: Sequence[RowRule], query: GoldenQuery, row: RunRow, context: RowContext
    ) -> "tuple[tuple[Violation, ...], Confirmed | None]":
        """Return the violations of the rules of a row, and what a judge said of them; raise CannotScoreError.

        In a second pass, a judge may clear violations. Rules on metrics see the scores of each row that a scores file
        repeats.
        """
        repeated = self.scores_files.table.repeated(query.id) if self.scores_files and context.metrics else []
        asked = _asked([rule for rule in rules if not (repeated and rule.needs_metrics)], query, row, context)
        confirmed = None
        if self.judge and (second := self.judge.second_pass):
            confirmed = second.confirmed(query, row, asked, context, strict=not self.is_baseline)
            asked = confirmed.asked
        violations = self._listed(asked)
        for scores in repeated:
            of_row = replace(context, metrics={**context.metrics, **scores})
            more = self._listed(_asked([rule for rule in rules if rule.needs_metrics], query, row, of_row))
            violations = tuple(dict.fromkeys([*violations, *more]))
        return violations, confirmed

    def _listed(self, asked: "Iterable[Asked]") -> tuple[Violation, ...]:
        """Return the violations of rules, the first ones if there are very many."""
        violated = [(rule, violation) for rule, violations in asked for violation in violations]
        leaks = any(violation.rule == LEAKS for _, violation in violated)
        return listed_first(self._with_digests(violated, leaks=leaks)) if violated else ()

    def _with_digests(self, violated: Iterable[tuple[RowRule, Violation]], *, leaks: bool) -> Iterator[Violation]:
        """Yield violations whose causes are digests of the rule and of each thing that is wrong.

        A query may have several rules of one class, and a stored baseline has no texts. Only a digest shows whether the
        baseline violates the same rule for the same reason.
        """
        for rule, of_rule in groupby(violated, key=itemgetter(0)):
            digest = digest_with(rule)
            for _, violation in of_rule:
                causes = tuple(map(digest, violation.causes or violation.doc_ids or ("",)))
                expected, actual = violation.expected, violation.actual
                if not self.texts or (leaks and violation.rule != LEAKS):
                    expected, actual = unsaid(expected), unsaid(actual)
                yield replace(violation, expected=expected, actual=actual, causes=causes, flag=None)


def _asked(rules: Iterable[RowRule], query: GoldenQuery, row: RunRow, context: RowContext) -> "Sequence[Asked]":
    return [(rule, rule.violations(query, row, context)) for rule in rules]


def plan_for(
    contract: Contract,
    *,
    repeats: bool = False,
    keep_ids: bool = False,
    texts: bool = True,
    judge: "JudgeFiles | None" = None,
) -> Plan:
    """Return the plan for scoring the rows of a run under a contract."""
    return Plan(
        golden=contract.queries,
        golden_files=contract.golden.files,
        relevance_level=contract.config.relevance_level,
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
        judge=judge,
        tags=frozenset(contract.scope.tags if contract.scope else ()),
        not_judged=frozenset(contract.scope.queries if contract.scope else ()),
        wanted_elsewhere=contract.scope.wanted if contract.scope else frozenset(),
    )


def valid_values(family: Family, query: GoldenQuery, row: RunRow) -> Values | Missing | Invalid:
    """Return the values of one row, or what is missing or wrong with it."""
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
    """Return the values of a query without a row."""
    return tuple([metric.worst for metric in metrics])


def with_turns(query: GoldenQuery, row: RunRow) -> tuple[RunRow, tuple[Turn, ...] | str]:
    """Return a row and its turns, or what is wrong with its messages. Only conversations have turns.

    The row of a conversation is returned with the last response and the calls of all turns, for metrics.
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
    """Return whether the questions of a row's conversation differ from those of the golden turns."""
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


def listed_first(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the first ``bounds.VIOLATIONS`` violations, and one per rule for the others, with their number and causes.

    Violations that only warn stay apart from those that fail.
    """
    listed: list[Violation] = []
    others: dict[tuple[str, bool], list[Violation]] = {}
    for violation in violations:
        if len(listed) < bounds.VIOLATIONS:
            listed.append(violation)
        else:
            others.setdefault((violation.rule, violation.warns), []).append(violation)
    return (*listed, *map(_as_one, others.values()))


def _as_one(violations: list[Violation]) -> Violation:
    if len(violations) == 1:
        return violations[0]
    causes = dict.fromkeys(cause for violation in violations for cause in violation.causes)
    number = (f"{len(violations):,} more violations, which are not listed",)
    return replace(violations[0], expected=EXPECTED, actual=number, doc_ids=(), limit=None, causes=tuple(causes))
