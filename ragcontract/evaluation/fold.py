"""The fold of one side: adds up rows while they are read, without holding the whole run in memory.

A side is a run, or a stored baseline. Of a stored baseline, the metrics that cannot be computed from document ids and
the broken rules are taken as they are stored.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import Id, as_id, as_ids
from ragcontract.core.metric import Family, Invalid, Metric, Missing
from ragcontract.core.phrase import Location, Message, Name, parts_of
from ragcontract.core.rule import Violation
from ragcontract.core.run import (
    VERSION_FIELDS,
    QueryScore,
    Result,
    RunRow,
    SourceFile,
    Values,
    has_failed,
    lacks_results,
    versions_in,
)
from ragcontract.evaluation.id_diagnostics import Diagnostics, ForbiddenForms, PatternIds
from ragcontract.evaluation.listed import ListedResults
from ragcontract.evaluation.observations import (
    ClassCounter,
    DepthCounter,
    DuplicateCounter,
    ScoreGaps,
    UnknownQueries,
    UnseenIdSearch,
)
from ragcontract.evaluation.plan import Plan, asks_otherwise, valid_values, worst_values
from ragcontract.evaluation.side import Column, Side
from ragcontract.files.problems import Batch, Collector, FileRead, MoreProblems, Problem, Warned
from ragcontract.files.rows import Places
from ragcontract.files.schema import Mismatch, shown
from ragcontract.runs.baseline_contract import REFERENCES, Expected, expected_of, has_other_turns
from ragcontract.runs.baseline_file import ComparedQuery, MeasuredQuery, StoredBatch, StoredHead
from ragcontract.runs.readers import OrderCheck, RunEvent, descending, falls
from ragcontract.statistics.means import averaged, summary

Retrieved = tuple[GoldenQuery, list[str]]


def fold(plan: Plan, events: Iterable[RunEvent]) -> Side:
    """Return the side that results from the events; its ``problems`` contain everything wrong with the rows."""
    builder = _Builder(plan)
    for event in events:
        match event:
            case Batch():
                builder.batch(event)
            case StoredBatch():
                builder.stored_batch(event)
            case StoredHead():
                builder.stored = event
            case FileRead(file=file):
                builder.files.append(file)
            case Warned(beside=text) if text and is_reference(plan, text):
                pass  # such a field has the wanted answer, not a second one
            case Problem() | MoreProblems() | Warned():
                builder.problems.add(event)
    return builder.finish()


def is_reference(plan: Plan, text: str) -> bool:
    """Return whether a text is the wanted answer of a golden query."""
    return any(query.answer is not None and query.answer.reference == text for query in plan.golden.values())


def location_of(batch: Batch[RunRow], index: int) -> Location:
    """Return the location of a row, such as ``run.jsonl:17``; of a run in memory, path and query."""
    if batch.line:
        return batch.location(index)
    return Location(f"{batch.path}: query {shown(batch.rows[index].query_id)}")


def stored_values(metrics: Iterable[Metric], stored: ComparedQuery) -> Values:
    """Return the stored metrics of a query; an empty tuple if any of them is missing."""
    known = stored.metrics if isinstance(stored, MeasuredQuery) else {}
    values = [known.get(metric.key) for metric in metrics]
    return tuple([value for value in values if value is not None]) if None not in values else ()


def stored_violations(stored: ComparedQuery) -> Iterator[Violation]:
    """Yield the violations of rules about the answer of a stored query. Only digests of their causes are known."""
    for rule, causes in stored.broken.items():
        yield Violation(rule=rule, expected=(), actual=(), causes=tuple(causes))


def references_of(family: Family) -> list[str]:
    """Return the golden fields that a family compares an answer with, or shows to a judge."""
    fields = {family.switch, *(field for metric in family.metrics for field in metric.references)}
    return [field for field in REFERENCES if field in fields]


def has_other_reference(family: Family, query: GoldenQuery, stored: ComparedQuery) -> bool:
    """Return whether a family compared the stored query's answer with a reference that is not today's."""
    if stored.expects is None:
        return False
    before, now = stored.expects.references, expected_of(query).references
    return any(before.get(field) != now.get(field) for field in references_of(family))


def had_no_results(query: GoldenQuery, stored: ComparedQuery) -> bool:
    """Return whether a query names documents, and was stored without results when it named none.

    Its row may have had no results at all, so nobody knows what would have been retrieved.
    """
    if stored.doc_ids or any(stored.repeats) or stored.expects is None:
        return False
    before, now = (
        (expected.relevant, expected.judged, expected.forbidden) for expected in (stored.expects, expected_of(query))
    )
    return not any(before) and any(now)


def unknown_ranks(query: GoldenQuery) -> QueryScore:
    """Return the score of a query of whose documents a baseline says nothing; it has no values to compare."""
    relevant, forbidden = len(query.relevant_doc_ids), len(query.forbidden_doc_ids)
    return QueryScore(ranks=(None,) * relevant, forbidden_ranks=(None,) * forbidden, values=())


class _Builder:
    """Adds up the events of one side."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.files: list[SourceFile] = []
        self.problems = Collector()
        self.stored: StoredHead | None = None
        self._scores: dict[str, QueryScore] = {}  # the ranks, and the values of ranking metrics
        self._repeats: dict[str, list[QueryScore]] = {}
        numbers = {query_id: number for number, query_id in enumerate(plan.golden)} if plan.families else {}
        self._columns = tuple(Column(len(family.metrics), numbers) for family in plan.families)
        self._classes = ClassCounter(plan.needs)
        self._violations: dict[str, tuple[Violation, ...]] = {}
        self._gaps = ScoreGaps(plan.scores)
        self._reads_scores = bool(plan.scores)
        self._reads_checks = "checks" in plan.needs
        self._unread_checks: dict[str, int] = {}
        self._unknown = UnknownQueries(plan)
        self._lines: dict[str, int] = {}  # the place of the first row of each query
        self._places = Places()
        self._latencies = array("d")
        self._unmeasured = 0
        self._failed: dict[str, None] = {}
        self._versions: dict[tuple[str | int | None, ...], None] = {}
        self._duplicates = DuplicateCounter(plan.k)
        self._order = OrderCheck()
        self._depths = DepthCounter()
        self._unseen_ids = UnseenIdSearch({} if plan.is_baseline else plan.golden)
        self._changed: dict[str, None] = {}  # queries for which a baseline has a different question
        self._asked_otherwise: dict[str, None] = {}
        self._without_results: dict[str, None] = {}  # queries of whose documents a baseline says nothing
        self._expected: dict[str, Expected] = {}
        self._doc_ids: dict[str, list[list[str]]] = {}
        self._listed = ListedResults(plan)
        self._diagnostics = Diagnostics(plan)
        self._forbidden_forms = ForbiddenForms.of(plan)
        self._pattern_ids = PatternIds(plan)
        self._judged = plan.judge.counter(plan.families, words=plan.texts) if plan.judge else None

    def batch(self, event: Batch[RunRow]) -> None:
        golden, lines, note_duplicates = self._plan.golden, self._lines, self._duplicates.note
        first = self._places.at(event.path, event.line)
        needs_row, has_turns = bool(self._plan.families or self._plan.row_rules), self._plan.turns
        results_optional = not self._plan.results_required
        order, forbidden_forms = self._order, self._forbidden_forms
        falling = order.falling
        known: list[RunRow] = []
        retrieved: list[Retrieved] = []
        for index, row in enumerate(event.rows):
            query_id = as_id(row.query_id)
            scores = [result.score for result in row.results]
            if not descending(scores):
                order.out_of_order(scores, location_of(event, index))
            elif not falling:
                order.falling = falling = falls(scores)
            query = golden.get(query_id)
            if query is None:
                self._unknown.note(query_id)
                continue
            is_repeat = query_id in lines
            if is_repeat and not self._plan.repeats:
                self._refuse_second_row(query_id, location_of(event, index))
                continue
            lines[query.id] = first + index  # the golden query's id, so that the row's copy can be freed
            if results_optional and lacks_results(row) and query.needs_results:
                self.problems.mismatch(location_of(event, index), without_results(query))
                continue
            if has_turns and self._has_other_question(query, row):
                continue
            known.append(row)
            doc_ids = row.doc_ids
            retrieved.append((query, doc_ids))
            note_duplicates(query.id, doc_ids)
            if forbidden_forms and query.forbidden_doc_ids:
                for fault in (*forbidden_forms.unknown(query, row), *forbidden_forms.faults(query, doc_ids)):
                    self.problems.mismatch(location_of(event, index), fault)
            values: Sequence[Values] = ()
            if needs_row:
                where = event.location(index) if event.line else Location(event.path)  # the message names the query
                values = self._note_row(query, row, where, is_repeat=is_repeat)
            if row.error and self._plan.has_failed(query, row, values):
                self._failed[query.id] = None
        self._listed.note(known, [query for query, _ in retrieved], self._score(retrieved))
        latencies = [row.latency_ms for row in known if row.latency_ms is not None]
        self._latencies.extend(latencies)
        self._unmeasured += len(known) - len(latencies)
        self._versions |= dict.fromkeys(map(versions_in, known))

    def _has_other_question(self, query: GoldenQuery, row: RunRow) -> bool:
        """Note a conversation with other questions; return whether it is a baseline's, which is not compared."""
        if not asks_otherwise(query, row):
            return False
        self._asked_otherwise[query.id] = None
        if self._plan.is_baseline:
            self._changed[query.id] = None
        return self._plan.is_baseline

    def stored_batch(self, event: StoredBatch) -> None:
        golden = self._plan.golden
        retrieved: list[Retrieved] = []
        plan, head = self._plan, self.stored
        may_differ = not (head and head.has_golden(plan.golden_files, plan.relevance_level))
        self._unmeasured += sum(1 + len(stored.repeats) for stored in event.queries)  # the head counts the measured
        for stored in event.queries:
            query_id = as_id(stored.id)
            query = golden.get(query_id)
            if query is None:
                self._unknown.note(query_id)
                continue
            has_changed = stored.query != query.query
            if may_differ and stored.expects is not None and stored.expects != (expected := expected_of(query)):
                self._expected[query.id] = stored.expects
                has_changed = has_changed or has_other_turns(stored.expects, expected)
            if has_changed:
                self._changed[query.id] = None
                continue
            if stored.broken:
                self._violations[query.id] = tuple(stored_violations(stored))
            if is_without_results := had_no_results(query, stored):
                self._without_results[query.id] = None
                self._scores[query.id] = unknown_ranks(query)
            else:
                retrieved.append((query, as_ids(stored.doc_ids)))
                retrieved += [(query, as_ids(doc_ids)) for doc_ids in stored.repeats]
                self._diagnostics.note_stored(query.id, stored, self.stored)
            for family, column in zip(self._plan.families, self._columns, strict=True):
                if family.from_ids:
                    if not is_without_results:
                        self._recompute(family, column, query, [stored.doc_ids, *stored.repeats])
                elif not has_other_reference(family, query, stored):
                    column.note(query.id, stored_values(family.metrics, stored))
        self._score(retrieved)

    def _score(self, retrieved: Sequence[Retrieved]) -> list[QueryScore]:
        """Store and return the scores of rows. Of a query with several rows, each score is stored."""
        score, scores, pools = self._plan.ranking.score, self._scores, self._diagnostics.note(retrieved)
        of_rows = [score(query, doc_ids, pool) for (query, doc_ids), pool in zip(retrieved, pools, strict=True)]
        for (query, doc_ids), of_row in zip(retrieved, of_rows, strict=True):
            if query.id in scores:
                self._repeats.setdefault(query.id, [scores[query.id]]).append(of_row)
            else:
                scores[query.id] = of_row
            if None in of_row.ranks:
                self._unseen_ids.hold(query, doc_ids)
        all_ids = [doc_ids for _, doc_ids in retrieved]
        self._depths.note(all_ids)
        self._unseen_ids.note(all_ids)
        if self._pattern_ids.never:
            self._pattern_ids.note(all_ids)
        if self._plan.keep_ids:
            for query, doc_ids in retrieved:
                self._doc_ids.setdefault(query.id, []).append(doc_ids)
        return of_rows

    def _note_row(self, query: GoldenQuery, row: RunRow, location: Location, *, is_repeat: bool) -> Sequence[Values]:
        """Store the values and violations that need the row itself; return the values, none for an invalid row."""
        outcome = self._plan.beside_ranks(query, row)
        if isinstance(outcome, list):
            for field, why in ((fault.field, fault.why) for fault in outcome):
                if field:
                    self.problems.problem(location.at(field), why)
                else:
                    self.problems.problem(location, Message.quoting(Name(f"query {shown(query.id)} "), *parts_of(why)))
            return ()
        self._gaps.note(query.id, outcome.lacking)
        if self._reads_scores:
            self._gaps.unread(row.scores)
        if self._reads_checks and row.checks:
            self._note_unread_checks(query, row.checks)
        for column, values in zip(self._columns, outcome.values, strict=True):
            (column.repeat if is_repeat else column.note)(query.id, values)
        self._classes.note(query, row)
        if self._judged:
            self._judged.note(query.id, outcome.values, outcome.confirmed)
        if outcome.violations:
            self._violations[query.id] = merged(self._violations.get(query.id, ()), outcome.violations)
            if not self._plan.is_baseline:
                self._listed.hold_row(query.id, row)
        return outcome.values

    def _note_unread_checks(self, query: GoldenQuery, checks: Mapping[str, object]) -> None:
        from ragcontract.rules.custom import checks_read

        for name in checks.keys() - checks_read(query):
            if has_failed(checks[name]) and (name in self._unread_checks or len(self._unread_checks) < bounds.NAMES):
                self._unread_checks[name] = self._unread_checks.get(name, 0) + 1

    def _recompute(self, family: Family, column: Column, query: GoldenQuery, rows: Iterable[Sequence[Id]]) -> None:
        for number, doc_ids in enumerate(rows):
            results = [Result(doc_id=doc_id) for doc_id in doc_ids]
            values = valid_values(family, query, RunRow(query_id=query.id, results=results))
            if not isinstance(values, Missing | Invalid):
                (column.repeat if number else column.note)(query.id, values)

    def _refuse_second_row(self, query_id: str, location: Location) -> None:
        self.problems.problem(
            location.at("query_id"),
            f"duplicate id {query_id!r}, first defined at {self._places.location(self._lines[query_id])} "
            "(several rows per query are averaged with --repeats)",
        )

    def finish(self) -> Side:
        plan, scores = self._plan, self._scores
        scores |= {query_id: averaged(rows) for query_id, rows in self._repeats.items()}
        missing = tuple([key for key in plan.golden if key not in scores and key not in self._changed])
        lacking = score_gaps(plan, self._columns, self._gaps.lacking())
        if not plan.is_baseline:
            self._score_missing(missing)
        if warning := self._order.warning():
            self.problems.warning(warning)
        if (stored := self.stored) and stored.latency:
            self._unmeasured = max(0, self._unmeasured - stored.latency.rows)
        first_ids = self._diagnostics.first_ids()
        return Side(
            scores=scores,
            columns=(*self._columns, *self._diagnostics.columns(scores)),
            violations=self._violations,
            of_ranks={key: broken for key, broken in self._listed.of_ranks.items() if key not in self._repeats},
            files=tuple(self.files),
            versions=stored.versions if stored else versions_of(self._versions),
            runs=stored.runs if stored else 1,
            missing=missing,
            lacking=lacking,
            undeclared=self._gaps.undeclared(),
            unread_checks=dict(sorted(self._unread_checks.items())),
            unknown=self._unknown.listed,
            more_unknown=self._unknown.more,
            latency=stored.latency if stored else summary(self._latencies),
            unmeasured=self._unmeasured,
            failed=tuple(self._failed),
            asked_otherwise=tuple(self._asked_otherwise),
            modes=self._classes.modes,
            labels=self._classes.labels,
            duplicates=self._duplicates.result(),
            depth=self._depths.result(),
            distances=self._order.distances,
            unseen_ids=self._unseen_ids.result(missing),
            pattern_ids=self._pattern_ids.never,
            changed=tuple(self._changed),
            without_results=self._without_results,
            expected=self._expected,
            stored=stored,
            incomparable=self._incomparable(),
            doc_ids=self._doc_ids,
            pools=self._diagnostics.pools(first_ids),
            first_ids=first_ids,
            retrieved=self._listed.held,
            said=self._listed.said,
            judged=self._judged.result() if self._judged else None,
            problems=self.problems.collected(),
        )

    def _score_missing(self, missing: Iterable[str]) -> None:
        """Score golden queries without a row as if nothing was retrieved. Other metrics have their worst value."""
        for query_id in missing:
            outcome = self._plan.missing(self._plan.golden[query_id])
            self._classes.note_missing(self._plan.golden[query_id])
            self._scores[query_id] = outcome.score
            self._diagnostics.note([(self._plan.golden[query_id], ())])
            for column, values in zip(self._columns, outcome.values, strict=True):
                column.note(query_id, values)
            if self._judged:
                self._judged.note(query_id, outcome.values)
            if outcome.violations:
                self._violations[query_id] = outcome.violations
            if outcome.violations or self._listed.breaks(self._plan.golden[query_id], outcome.score):
                self._listed.hold(query_id, ())

    def _incomparable(self) -> frozenset[str]:
        """Return the metrics that a stored baseline computed in another way."""
        prints = self.stored.fingerprints if self.stored else {}
        families: Iterable[Family] = self._plan.families if self.stored else ()
        metrics = [metric for family in families if not family.from_ids for metric in family.metrics]
        return frozenset(metric.key for metric in metrics if prints.get(metric.key, "") != metric.fingerprint)


def score_gaps(
    plan: Plan, columns: Sequence[Column], lacking: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Give queries that lack a score in any row the worst value, or none in a baseline; return these queries.

    Otherwise, the mean of their other rows would pass for the score. Of a baseline, only metrics that need
    judgments are returned, because a limit on their change leaves no query out.
    """
    for family, column in zip(plan.families, columns, strict=True):
        values = () if plan.is_baseline else worst_values(family.metrics)
        for query_id in {query_id for metric in family.metrics for query_id in lacking.get(metric.key, ())}:
            column.replace(query_id, values)
    if not plan.is_baseline:
        return lacking
    judged = {metric.key for family in plan.families for metric in family.metrics if metric.task}
    return {key: query_ids for key, query_ids in lacking.items() if key in judged}


def without_results(query: GoldenQuery) -> Mismatch:
    """Return the fault of a row that lacks results although its query names documents."""
    what = f"is missing, and query {shown(query.id)} names documents"
    return Mismatch(("results",), f"{what}; export what was retrieved, [] where nothing was")


def merged(first: Iterable[Violation], others: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the violations of several rows of a query, without duplicates."""
    return tuple(dict.fromkeys([*first, *others]))


def versions_of(rows: Iterable[tuple[str | int | None, ...]]) -> dict[str, list[str]]:
    """Return the distinct values of each version field."""
    columns = zip(VERSION_FIELDS, zip(*rows, strict=True), strict=False)  # not strict, because there may be no rows
    distinct = {name: dict.fromkeys(as_id(value) for value in column if value is not None) for name, column in columns}
    return {name: list(values) for name, values in distinct.items() if values}
