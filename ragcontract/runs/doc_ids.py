"""Reads only the document ids of runs, without a contract, for commands that do not evaluate them."""

from collections.abc import Iterator, Sequence

from ragcontract.core.ids import as_id
from ragcontract.core.run import row_type
from ragcontract.files.events import located
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, Problems
from ragcontract.runs.order import OrderCheck
from ragcontract.runs.readers import RunFiles


def read_doc_ids(paths: Sequence[str]) -> tuple[dict[str, list[str]], Problems]:
    """Return the document ids of each query, best first, and the problems found; a second row of a query is one.

    A row without ``results``, which is one about an answer only, has no ids.
    """
    problems = Collector()
    rows: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for query_id, doc_ids, location in doc_id_rows(paths, problems, results_required=False):
        if query_id in rows:
            problems.problem(f"{location}: query_id", f"duplicate id {query_id!r}, first defined at {first[query_id]}")
        else:
            rows[query_id], first[query_id] = doc_ids, location
    return rows, problems.found()


def doc_id_rows(
    paths: Sequence[str], problems: Collector, progress: Progress = no_progress, *, results_required: bool = True
) -> Iterator[tuple[str, list[str], str]]:
    """Yield ``(query_id, doc_ids, location)`` of each valid row; ``problems`` collects problems and warnings."""
    events = RunFiles(paths=paths, progress=progress).events(row_type(results_required=results_required))
    order = OrderCheck()
    for location, row in located(events, problems):
        order.note([result.score for result in row.results], location)
        yield as_id(row.query_id), row.doc_ids, location
    if warning := order.warning():
        problems.warning(warning)
