"""Run files read as a check reads them: their rows, and the side that they are folded into."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ragcontract.contract.config_file import ConfigFile, config_of
from ragcontract.contract.resolve import resolve
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.run import RunRow, row_type
from ragcontract.evaluation.plan import Plan, plan_for
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Local
from ragcontract.files.problems import Collector, Event, Problems, located
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.runs.readers import Reader, open_run
from tests.records import golden_of, query

Pairs = list[tuple[str, list[str]]]


def plan_of(
    queries: Iterable[GoldenQuery], config: dict[str, Any] | None = None, registry: Registry = BUILT_IN, **options: Any
) -> Plan:
    """Return the plan of a check of these golden queries."""
    golden = golden_of([*queries])
    config_file = ConfigFile(config=config_of(config or {}, registry).config)
    return plan_for(resolve(golden, config_file, registry, has_baseline=False), **options)


def side_of(run: Path | Reader, *query_ids: str, **options: Any) -> Side:
    """Read a run for these golden queries, each of which wants the document ``doc1``, and fold it."""
    reader = open_run([str(run)]) if isinstance(run, Path) else run
    return Local(reader).evaluate(plan_of([query(one, "doc1") for one in query_ids], **options))


def problems_in(run: Path | Reader, *query_ids: str) -> list[str]:
    """Return what is wrong with a run, the name of its folder taken off."""
    folder = f"{run.parent}/" if isinstance(run, Path) else ""
    return lines_of(side_of(run, *query_ids).problems, folder)


def lines_of(problems: Problems, without: str = "") -> list[str]:
    """Return problems as they are shown, some text taken out of them; none if there is none."""
    try:
        problems.raise_if_any()
    except InputError as error:
        return [line.replace(without, "") if without else line for line in error.lines()]
    return []


def pairs_of(events: Iterable[Event[Any]]) -> tuple[Pairs, Problems]:
    """Return the query id and the document ids of each good row, and what is wrong with others."""
    problems = Collector()
    pairs = [(as_id(row.query_id), row.doc_ids) for _, row in located(events, problems)]
    return pairs, problems.collected()


def read_run(path: Path, row: type[RunRow] | None = None) -> tuple[Pairs, Problems]:
    """Read a run without a contract."""
    return pairs_of(open_run([str(path)]).events(row or row_type()))  # type: ignore[arg-type]
