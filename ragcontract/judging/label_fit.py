"""Whether the golden labels suit the rule that every relevant document must be found, judged by known-good runs."""

from collections.abc import Iterator, Sequence

from ragcontract.contract.config import enforced
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten, visible
from ragcontract.judging.evaluated import Evaluation
from ragcontract.rules.ranks import MustInclude


def label_advice(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield advice where known-good runs find some, but not all, relevant documents of a query in the top k."""
    contract = evaluations[0].contract
    if not enforced(contract.config, MustInclude):
        return
    several = [one for one in contract.queries.values() if len(one.relevant_doc_ids) > 1 and not one.must_include_any]
    partly = [query for query in several if all(_finds_some(query, evaluation) for evaluation in evaluations)]
    if not partly:
        return
    ids = [shorten(visible(query.id), bounds.TERMINAL_QUESTION) for query in partly[: bounds.LISTED]]
    more = f" and {len(partly) - len(ids):,} more" if len(partly) > len(ids) else ""
    runs = "this run" if len(evaluations) == 1 else "each of these runs"
    yield (
        f"must_include: of {count(len(several), 'query')} with several relevant documents, {runs} finds only some of "
        f"them for {len(partly):,}: {', '.join(ids)}{more}"
    )
    yield 'If one of them is enough for an answer, write "must_include_any": true into these golden rows.'
    if 2 * len(partly) > len(several):
        yield (
            "If the labels list all that is relevant, rather than what must be found, turn the rule off "
            "(per_query: enforce_must_include: false) and limit Recall instead."
        )


def _finds_some(query: GoldenQuery, evaluation: Evaluation) -> bool:
    """Return whether some, but not all, relevant documents are in the top k."""
    in_top = [rank is not None and rank <= evaluation.contract.k for rank in evaluation.run.scores[query.id].ranks]
    return any(in_top) and not all(in_top)
