"""How expectations and findings are put into words, the same in every report.

``quote`` renders a document id for the place the words go to; the words themselves need no escaping anywhere.
"""

from collections.abc import Callable, Mapping, Sequence

from ragcontract.model import GateReport

Quote = Callable[[str], str]
Where = Mapping[str, int | None]  # the rank of each document, None where it was not retrieved
NAMED = 5
MISSING, NOT_THERE = "missing", "not there"  # of a document that is wanted, and of one that is not


def listed(doc_ids: Sequence[str], word: str, quote: Quote = str) -> str:
    """As ``a, b and c``; of a long list the first five and a count."""
    names = [quote(doc_id) for doc_id in doc_ids[:NAMED]]
    if len(doc_ids) > NAMED:
        names.append(f"{len(doc_ids) - NAMED} more")
    return f" {word} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def within(top: int | None) -> str:
    """As ``in top 5``, or ``in the results`` where no rank is too low."""
    return "in the results" if top is None else f"in top {top}"


def whereabouts(
    doc_ids: Sequence[str],
    ranks: Where,
    depth: int,
    *,
    before: Where | None = None,
    absent: str = MISSING,
    quote: Quote = str,
) -> str:
    """Say where documents are and were: ``missing from top 5 (was rank 1)``; by name where they are several.

    ``absent`` is the word for a document that was not retrieved before.
    """

    def one(doc_id: str) -> str:
        rank = ranks.get(doc_id)
        text = f"missing from top {depth}" if rank is None else f"rank {rank}"
        if before is None:
            return text
        if old := before.get(doc_id):
            return f"{text} (was rank {old})"
        return f"{text} (was {absent}{' too' if rank is None else ''})"

    if len(doc_ids) == 1:
        return one(doc_ids[0])
    if before is None and not any(map(ranks.get, doc_ids)):
        return f"all missing from top {depth}"
    shown = [f"{quote(doc_id)} {one(doc_id)}" for doc_id in doc_ids[:NAMED]]
    if len(doc_ids) > NAMED:
        shown.append(f"{len(doc_ids) - NAMED} more")
    return ", ".join(shown)


def told(gate: GateReport, quote: Quote = str) -> str:
    """Say what a gate found, and for which tag."""
    return gate.message if gate.tag is None else f"{quote(gate.tag)}: {gate.message}"
