"""The cases of a query that are made of its golden row and its run row alone: claims, and criteria.

Whoever asks a judge makes them, and so does whoever replays its judgments: equal texts make equal cases.
"""

from msgspec import UNSET

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.run import RunRow, lacks_results
from ragcontract.runs.judged_texts import Case, Item


def attribution_case(query: GoldenQuery, row: RunRow, k: int) -> Case | str | None:
    """Return the claims of a query; None if it has none, or why its texts are not known.

    The texts are ``retrieved_contexts``, or else those of the first ``k`` results.
    """
    claims = (query.answer and query.answer.reference_claims) or ()
    if not claims:
        return None
    if row.retrieved_contexts is None and lacks_results(row):
        return "has neither retrieved_contexts nor results; a judge needs what was retrieved"
    contexts = contexts_of(row, k)
    if isinstance(contexts, str):
        return contexts
    items = tuple(Item(name=f"claim:{number}", text=text) for number, text in enumerate(claims, 1))
    return Case(task="attribution", query_id=query.id, question=query.query, items=items, contexts=contexts)


def criteria_case(query: GoldenQuery, row: RunRow, k: int) -> Case | str | None:
    """Return the criteria of a query; None if it has none, or why its answer is not known.

    The retrieved texts are part of the case where they are known; a criterion need not be about them.
    """
    criteria = (query.answer and query.answer.criteria) or ()
    if query.answer is None or not criteria:
        return None
    if row.response is UNSET and row.error is None:
        return "has no response, which its criteria need; export it, as null if there was none"
    contexts = contexts_of(row, k)
    return Case(
        task="criteria",
        query_id=query.id,
        question=query.query,
        items=tuple(Item(name=f"criterion:{one.id}", text=one.text) for one in criteria),
        contexts=() if isinstance(contexts, str) else contexts,
        response=row.response if isinstance(row.response, str) else "",
        reference=query.answer.reference,
    )


def contexts_of(row: RunRow, k: int) -> tuple[str, ...] | str:
    """Return what was retrieved: ``retrieved_contexts``, or else the texts of the first ``k`` results, if all have one.

    Returns why not otherwise; nothing was retrieved where a row has neither.
    """
    if row.retrieved_contexts is not None:
        return tuple(row.retrieved_contexts)
    texts = [result.text for result in row.results[:k]]
    if None in texts:
        return f"has no text in results[{texts.index(None)}]; a judge needs it, or retrieved_contexts"
    return tuple(text for text in texts if text is not None)
