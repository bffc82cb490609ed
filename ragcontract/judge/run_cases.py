"""The cases to judge of a run: claims of references, texts that rules about answers flagged, and criteria."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import get_args

from msgspec import Struct

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.contract.config import enforced
from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.config_sections import Task
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id, some
from ragcontract.core.phrase import Location
from ragcontract.core.rule import RowContext, RowRule, RuleSettings, row_rules_of
from ragcontract.core.run import CONTEXT_FIELDS, RESPONSE_FIELDS, RunRow, row_type
from ragcontract.evaluation.plan import with_turns
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, located
from ragcontract.judgments.items import JudgeCase, attribution_case, contexts_of, criteria_case
from ragcontract.judgments.second_pass import confirmations
from ragcontract.registry import BUILT_IN
from ragcontract.rules.answered import Flagging
from ragcontract.rules.turns import InTurns
from ragcontract.runs.readers import RunFiles

TASKS: tuple[Task, ...] = get_args(Task)


class Cases(Struct, frozen=True, kw_only=True):
    """The cases of a run."""

    cases: tuple[JudgeCase, ...]  # in the order of the golden queries
    can_be_flagged: bool = False  # whether there are rules whose flags are judged, even if they flagged nothing
    warnings: tuple[str, ...] = ()


class CaseMaker:
    """Makes the cases of a query and its row. Rules that the configuration turns off flag nothing."""

    def __init__(self, config: ConfigFile, tasks: Collection[Task] = TASKS) -> None:
        self._k = max(config.cutoffs)
        self._tasks = tasks
        self._settings = RuleSettings(k=self._k, answers=config.config.answers)
        rules = (line.load() for line in BUILT_IN.rules)
        self._rules = tuple(rule for rule in rules if issubclass(rule, Flagging) and enforced(config.config, rule))

    def row_type(self, queries: Mapping[str, GoldenQuery]) -> type[RunRow]:
        """Return the record type of rows with the fields that are judged of these queries."""
        needs = CONTEXT_FIELDS if "attribution" in self._tasks else frozenset[str]()
        if any(self.flagging(query) or self._criteria(query) for query in queries.values()):
            needs |= CONTEXT_FIELDS | RESPONSE_FIELDS | Flagging.needs
        if any(query.turns for query in queries.values()):
            needs |= InTurns.needs | RESPONSE_FIELDS
        return row_type(needs, results_required=False)

    def wants(self, query: GoldenQuery) -> bool:
        """Return whether anything of a query can be judged."""
        claims = "attribution" in self._tasks and query.answer and query.answer.reference_claims
        return bool(claims or self._criteria(query) or self.flagging(query))

    def flagging(self, query: GoldenQuery) -> list[RowRule]:
        """Return the rules of a query whose flags are judged."""
        if "confirmation" not in self._tasks:
            return []
        return row_rules_of(query, self._rules)

    def _criteria(self, query: GoldenQuery) -> bool:
        return "criteria" in self._tasks and bool(query.answer and query.answer.criteria)

    def cases(self, query: GoldenQuery, row: RunRow) -> Iterator[JudgeCase | str]:
        """Yield the cases of a query, and messages about what its row lacks."""
        row, turns = with_turns(query, row)
        if isinstance(turns, str):
            yield turns
            return
        if "attribution" in self._tasks and (attribution := attribution_case(query, row, self._k)):
            yield attribution
        if rules := self.flagging(query):
            yield from self._flagged(query, row, rules, RowContext(settings=self._settings, turns=turns, flags=True))
        if "criteria" in self._tasks and (criteria := criteria_case(query, row, self._k)):
            yield criteria

    def _flagged(
        self, query: GoldenQuery, row: RunRow, rules: Sequence[RowRule], context: RowContext
    ) -> Iterator[JudgeCase | str]:
        if lacking := next((why for rule in rules if (why := rule.lacking(query, row, context))), None):
            yield lacking
            return
        contexts = contexts_of(row, self._k)
        try:
            violated = [(rule, rule.violations(query, row, context)) for rule in rules]
            asked = confirmations(query, row, violated, context, () if isinstance(contexts, str) else contexts)
        except CannotScoreError as error:
            yield str(error)
            return
        if isinstance(contexts, str) and asked:
            yield contexts
            return
        yield from (confirmation.case for confirmation in asked if confirmation.case.items)


def read_cases(
    golden: Sequence[str],
    run: Sequence[str],
    config: ConfigFile,
    *,
    tags: Sequence[str] = (),
    tasks: Collection[Task] = TASKS,
    repeats: bool = False,
    progress: Progress = no_progress,
) -> Cases:
    """Read golden queries and a run, and return the cases; raise InputError with all that is wrong with them.

    With ``repeats``, a query may have several rows; equal cases of them are judged once.
    """
    problems = Collector()
    problems.include(config.problems)
    level, own = config.config.relevance_level, config.config.allow_fields
    read = read_golden(golden, BUILT_IN, progress, level=level, allow_fields=own)
    problems.include(read.problems)
    maker = CaseMaker(config, tasks)
    queries = {
        query_id: query for query_id, query in read.queries.items() if not tags or not set(tags).isdisjoint(query.tags)
    }
    cases: dict[str, dict[JudgeCase, None]] = {}
    rows: dict[str, Location] = {}
    for location, row in located(RunFiles(paths=run, progress=progress).events(maker.row_type(queries)), problems):
        query_id = as_id(row.query_id)
        if query_id in rows and not repeats:
            problems.problem(
                location.at("query_id"),
                f"{query_id!r} has a row already, at {rows[query_id]} (with --repeats, all are judged)",
            )
            continue
        rows[query_id] = location
        if query_id not in queries or not maker.wants(queries[query_id]):
            continue
        for case in dict.fromkeys(maker.cases(queries[query_id], row)):
            if isinstance(case, str):
                problems.problem(location, case)
            else:
                cases.setdefault(query_id, {})[case] = None
    problems.collected().raise_if_any()
    return Cases(
        cases=tuple(case for query_id in queries for case in cases.get(query_id, ())),
        can_be_flagged=any(maker.flagging(query) for query in queries.values()),
        warnings=(*problems.collected().warnings, *_warnings(queries, rows, maker, tasks)),
    )


def _warnings(
    queries: Mapping[str, GoldenQuery], rows: Collection[str], maker: CaseMaker, tasks: Collection[Task]
) -> list[str]:
    answers = [(query, query.answer) for query in queries.values() if query.answer]
    absent = [query.id for query in queries.values() if query.id not in rows and maker.wants(query)]
    whole = [query.id for query, answer in answers if answer.reference and not answer.reference_claims]
    warnings = []
    if absent:
        warnings.append(f"not judged, because there is no row in the run: {some(absent, 'golden query')}")
    if whole and "attribution" in tasks:
        of, split = some(whole, "golden query"), "`rag-contract claims` splits each reference into them"
        warnings.append(f"not judged, because there are no reference_claims: {of}; {split}")
    return warnings
