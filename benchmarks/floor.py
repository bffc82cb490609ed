"""The floor: decode golden queries and two runs line by line as typed records, and do nothing with them.

``python floor.py golden.jsonl current_run.jsonl good_run.jsonl``. The records have the fields that a contract needs;
msgspec reads past all others.
"""

import sys
from pathlib import Path

import msgspec


class Golden(msgspec.Struct, gc=False):
    """A golden query."""

    id: str
    query: str
    relevant_doc_ids: list[str]
    must_rank_at_most: int | None = None
    forbidden_doc_ids: list[str] | None = None
    weight: float = 1
    tags: list[str] | None = None


class Result(msgspec.Struct, gc=False):
    """A result of a run row."""

    doc_id: str


class Row(msgspec.Struct, gc=False):
    """A run row."""

    query_id: str
    results: list[Result]


def main(golden: str, *runs: str) -> None:
    """Decode the files."""
    for path, record in ((golden, Golden), *((run, Row) for run in runs)):
        decode = msgspec.json.Decoder(record).decode
        with Path(path).open("rb") as lines:
            for line in lines:
                decode(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
