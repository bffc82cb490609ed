"""What is judged for context recall: the claims of each reference, and the texts that a run retrieved for it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragcontract.built_in import BUILT_IN
from ragcontract.contract.golden_file import read_golden
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import count
from ragcontract.core.run import RunRow, lacks_results, row_type
from ragcontract.core.text import shorten
from ragcontract.files.events import located
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector
from ragcontract.runs.judged_texts import Case, Item
from ragcontract.runs.readers import RunFiles

ROW = row_type(frozenset({"retrieved_contexts", "results.text"}), results_required=False)


class Cases(Struct, frozen=True, kw_only=True):
    """The cases of a run, in the order of the golden queries, and what a person should know of them."""

    cases: tuple[Case, ...]
    warnings: tuple[str, ...] = ()


def attribution_case(query: GoldenQuery, row: RunRow, k: int) -> Case | str | None:
    """Return the case of a query; None if it has no claims, or why its texts are not known.

    The texts are ``retrieved_contexts``, or else those of the first ``k`` results.
    """
    claims = (query.answer and query.answer.reference_claims) or ()
    if not claims:
        return None
    contexts = _contexts(row, k)
    if isinstance(contexts, str):
        return contexts
    items = tuple(Item(name=f"claim:{number}", text=text) for number, text in enumerate(claims, 1))
    return Case(task="attribution", query_id=query.id, question=query.query, items=items, contexts=contexts)


def _contexts(row: RunRow, k: int) -> tuple[str, ...] | str:
    if row.retrieved_contexts is not None:
        return tuple(row.retrieved_contexts)
    if lacks_results(row):
        return "has neither retrieved_contexts nor results; a judge needs what was retrieved"
    texts = [result.text for result in row.results[:k]]
    if None in texts:
        return f"has no text in results[{texts.index(None)}]; a judge needs it, or retrieved_contexts"
    return tuple(text for text in texts if text is not None)


def read_cases(
    golden: Sequence[str], run: Sequence[str], k: int, *, tags: Sequence[str] = (), progress: Progress = no_progress
) -> Cases:
    """Read golden queries and a run, and return what to judge; raises InputError with all that is wrong with them."""
    problems = Collector()
    read = read_golden(golden, BUILT_IN, progress)
    problems.include(read.problems)
    queries = {
        query_id: query for query_id, query in read.queries.items() if not tags or not set(tags).isdisjoint(query.tags)
    }
    found: dict[str, Case] = {}
    rows: dict[str, str] = {}
    for location, row in located(RunFiles(paths=run, progress=progress).events(ROW), problems):
        query_id = as_id(row.query_id)
        if query_id in rows:
            problems.problem(f"{location}: query_id", f"{query_id!r} has a row already, at {rows[query_id]}")
            continue
        rows[query_id] = location
        case = attribution_case(queries[query_id], row, k) if query_id in queries else None
        if isinstance(case, str):
            problems.problem(location, case)
        elif case is not None:
            found[query_id] = case
    problems.found().raise_if_any()
    cases = tuple(found[query_id] for query_id in queries if query_id in found)
    return Cases(cases=cases, warnings=(*problems.found().warnings, *_warnings(queries, rows)))


def _warnings(queries: Mapping[str, GoldenQuery], rows: Mapping[str, str]) -> list[str]:
    answers = [(query, query.answer) for query in queries.values() if query.answer]
    absent = [query.id for query, answer in answers if answer.reference_claims and query.id not in rows]
    whole = [query.id for query, answer in answers if answer.reference and not answer.reference_claims]
    warnings = []
    if absent:
        warnings.append(f"not judged, because there is no row in the run: {_of(absent)}")
    if whole:
        split = "`rag-contract claims` splits each reference into them"
        warnings.append(f"not judged, because there are no reference_claims: {_of(whole)}; {split}")
    return warnings


def _of(ids: Sequence[str]) -> str:
    named = ", ".join(repr(shorten(one, bounds.NAME)) for one in ids[: bounds.NAMES])
    return f"{count(len(ids), 'golden query')} ({named}{', …' if len(ids) > bounds.NAMES else ''})"
