"""A bare evaluation: what a check cannot do without, in plain Python, to compare a check with.

``python bare_evaluation.py golden.jsonl current_run.jsonl good_run.jsonl``. Decodes the files as typed records, finds
the ranks of relevant documents, computes reciprocal ranks and recalls once for each list of ranks, and looks for second
rows, scores that do not descend, repeated documents and forbidden ones. It checks nothing else and reports nothing.

Like a check, it spends its time in the interpreter. So machines agree on the ratio of the two better than on the ratio
of a check to decoding, which is the work of C code.
"""

import sys
from pathlib import Path

import msgspec

K = 5


class Golden(msgspec.Struct, gc=False):
    """A golden query."""

    id: str
    query: str
    relevant_doc_ids: list[str]
    forbidden_doc_ids: list[str] = []
    weight: float = 1
    tags: list[str] = []


class Result(msgspec.Struct, gc=False):
    """A result of a run row."""

    doc_id: str
    score: float = 0


class Row(msgspec.Struct, gc=False):
    """A run row."""

    query_id: str
    results: list[Result]


def means(golden: dict[str, Golden], path: str) -> tuple[float, float, int]:
    """Return the mean reciprocal rank and recall of a run, and how many of its rows are unusual."""
    decode = msgspec.json.Decoder(Row).decode
    values: dict[tuple[int, ...], tuple[float, float]] = {}
    scores: dict[str, tuple[float, float]] = {}
    unusual = 0
    with Path(path).open("rb") as lines:
        for line in lines:
            row = decode(line)
            doc_ids = [result.doc_id for result in row.results]
            of_results = [result.score for result in row.results]
            query = golden[row.query_id]
            unusual += row.query_id in scores
            unusual += of_results != sorted(of_results, reverse=True)
            unusual += len(set(doc_ids)) < len(doc_ids)
            unusual += not set(query.forbidden_doc_ids).isdisjoint(doc_ids)
            ranks = tuple([doc_ids.index(doc_id) + 1 if doc_id in doc_ids else 0 for doc_id in query.relevant_doc_ids])
            if ranks not in values:
                top = [rank for rank in ranks if 0 < rank <= K]
                values[ranks] = (1 / min(top) if top else 0.0, len(top) / max(1, len(ranks)))
            scores[row.query_id] = values[ranks]
    total = sum([query.weight for query in golden.values()])
    first, second = (
        sum([query.weight * scores[query_id][column] for query_id, query in golden.items()]) for column in (0, 1)
    )
    return first / total, second / total, unusual


def main(golden: str, *runs: str) -> None:
    """Evaluate the runs."""
    with Path(golden).open("rb") as lines:
        queries = {query.id: query for query in map(msgspec.json.Decoder(Golden).decode, lines)}
    for run in runs:
        print(*means(queries, run))


if __name__ == "__main__":
    main(*sys.argv[1:])
