"""However a baseline file is laid out, it says the same; line by line is a way of reading, not another format."""

import gzip
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.files.lines import BLOCK
from ragcontract.files.opening import InputFile
from ragcontract.files.problems import Diagnostics
from ragcontract.runs.stored import read_baseline
from ragcontract.runs.stored_source import _head, _lists
from tests.builders import baseline, stored_query

QUERIES = [stored_query(f"q{number}", f"doc{number}") for number in range(4)]
EXPECTED = [(f"q{number}", [f"doc{number}"]) for number in range(4)]
HEAD = json.dumps(baseline() | {"queries": []}, indent=2).removesuffix("[]\n}")


def lines(rows: list[str], *, between: str = ",\n    ", end: str = "\n  ]\n}\n") -> str:
    return f"{HEAD}[\n    {between.join(rows)}{end}"


ROWS = [json.dumps(query) for query in QUERIES]
PRETTY = json.dumps(QUERIES[2], indent=2)
LAYOUTS = {
    "as it is made": lines(ROWS),
    "without a line break at the end": lines(ROWS).rstrip(),
    "with the line breaks of another system": lines(ROWS).replace("\n", "\r\n"),
    "one query over several lines": lines([*ROWS[:2], PRETTY, ROWS[3]]),
    "two queries in a line": lines([ROWS[0], f"{ROWS[1]}, {ROWS[2]}", ROWS[3]]),
    "with empty lines": lines(ROWS, between=",\n\n    "),
    "with a field behind the queries": lines(ROWS, end='\n  ],\n  "more": 1\n}'),
    "sorted by name": json.dumps(json.loads(lines(ROWS)), indent=2, sort_keys=True),
    "another field of that name": lines(ROWS).replace("{\n", '{\n "x": {\n  "queries": [\n  ]\n },\n', 1),
    "in one line": json.dumps(baseline(*QUERIES)),
    "all indented": json.dumps(baseline(*QUERIES), indent=2),
}
BROKEN = {
    "no comma between two": (lines(ROWS, between="\n    "), 17),
    "a comma behind the last": (lines(ROWS, end=",\n  ]\n}\n"), 20),
    "a comma and an empty line behind the last": (lines(ROWS, end=",\n\n  ]\n}\n"), 21),
    "cut off between queries": (lines(ROWS[:2], end=",\n"), 17),
    "cut off in a query": (lines(ROWS)[: -len(ROWS[-1])], 19),
    "a conflict of git": (lines([ROWS[0], f"<<<<<<< HEAD\n    {ROWS[1]}"]), 17),
    "two commas": (lines([*ROWS[:2], "", *ROWS[2:]]), 18),
    "something behind the end": (lines(ROWS) + "{}", 22),
    "not a query": (lines([*ROWS[:3], '{"id": "q3"}']), 19),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows_and_the_digest_of_the_file(
    layout: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(pack(LAYOUTS[layout].encode()))
    diagnostics = Diagnostics()
    found = read_baseline([str(path)], diagnostics)
    assert found is not None
    assert list(found) == EXPECTED
    assert [file.sha256 for file in found.files] == [hashlib.sha256(path.read_bytes()).hexdigest()]
    diagnostics.raise_problems()


@pytest.mark.parametrize("layout", BROKEN)
def test_what_is_wrong_is_reported_with_its_line(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    text, line = BROKEN[layout]
    path.write_text(text)
    diagnostics = Diagnostics()
    if (found := read_baseline([str(path)], diagnostics)) is not None:
        list(found)
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert {problem.partition(": ")[0] for problem in caught.value.problems} == {f"{path}:{line}"}


def test_a_file_that_was_mended_while_it_was_read_is_not_taken_for_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines([*ROWS, ROWS[0]]))
    diagnostics = Diagnostics()
    found = read_baseline([str(path)], diagnostics)
    assert found is not None
    for _ in found:
        path.write_text(lines(ROWS))
    with pytest.raises(InputError, match="it changed while it was read; run again"):
        diagnostics.raise_problems()


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(LAYOUTS["as it is made"],))
    writer.start()
    found = read_baseline([str(path)], Diagnostics())
    writer.join()
    assert found is not None
    assert list(found) == EXPECTED


LONG = stored_query("q2", *(f"doc{number}" for number in range(40_000)))


@pytest.mark.parametrize(("indent", "at_once"), [(None, True), (2, False)])
def test_what_is_laid_out_as_it_is_made_is_decoded_block_by_block(
    indent: int | None, at_once: bool, tmp_path: Path
) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines([*ROWS[:2], json.dumps(LONG, indent=indent), ROWS[3]]))
    reported: list[int] = []
    found = read_baseline([str(path)], Diagnostics(), reported.append)
    assert found is not None
    assert list(found) == [*EXPECTED[:2], ("q2", LONG["doc_ids"]), EXPECTED[3]]
    assert sum(reported) == path.stat().st_size
    with InputFile(str(path)) as file:
        _head(file)
        assert all(map(is_json, _lists(file))) == at_once


def is_json(part: bytes) -> bool:
    try:
        json.loads(part)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("shift", range(-3, 4))
def test_queries_are_whole_wherever_a_block_ends(shift: int, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    before = len(lines([""]).partition("\n  ]")[0])
    padded = stored_query("q0", query="")
    padded["query"] = "x" * (BLOCK - before - len(json.dumps(padded)) + shift)
    path.write_text(lines([json.dumps(padded), *ROWS[1:]]))
    diagnostics = Diagnostics()
    found = read_baseline([str(path)], diagnostics)
    assert found is not None
    assert [query_id for query_id, _ in found] == ["q0", "q1", "q2", "q3"]
    diagnostics.raise_problems()
