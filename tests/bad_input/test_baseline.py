"""Baselines that cannot be read or compared with."""

import gzip
import json
from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.files.problems import Problem
from ragcontract.runs.baseline_file import read_stored, stored_events
from tests.bad_input.test_rows import ID, NAN_HINT, RANK, errors, refused
from tests.builders import as_jsonl, baseline, golden, good_workspace, run, stored_query

GOOD = json.dumps(baseline(), indent=2).encode()
MAKE = "recreate it with `rag-contract baseline --force`"
NO_BASELINE = (
    "baseline.json: is not a baseline: it has no format_version; make one with `rag-contract baseline`. "
    "A run can serve as one if its name ends in .jsonl"
)

BASELINES: dict[str, tuple[bytes, list[str]]] = {
    "an empty file": (b"", ["baseline.json: is empty; make it with `rag-contract baseline --force`"]),
    "an object of something else": (b'{"a": 1}', [NO_BASELINE]),
    "a golden file": (
        as_jsonl(golden()).encode(),
        [
            (
                "baseline.json: is a golden file, not a baseline; give what `rag-contract baseline` writes here, "
                "and this file as the golden file"
            )
        ],
    ),
    "a list": (b"[1]", ["baseline.json:1: expected an object, found [1]"]),
    "null": (b"null", ["baseline.json:1: expected an object, found null"]),
    "version 2": (
        json.dumps(baseline(format_version=2)).encode(),
        [
            (
                "baseline.json: has format version 2, and this rag-contract reads version 1; "
                f"{MAKE}, or use the version that made it"
            )
        ],
    ),
    "no cut-off": (
        json.dumps(baseline(k=[]), indent=1).encode(),
        ["baseline.json:9: k: expected a list that is not empty, found []"],
    ),
    "a version in quotes": (
        json.dumps(baseline(format_version="1"), indent=1).encode(),
        ['baseline.json:2: format_version: expected a whole number, found "1" (text); leave the quotes out'],
    ),
    "one of rag-contract 0.1.0": (
        b'{"k": 5, "aggregate": {}, "per_query": {"q1": {}}}',
        [f"baseline.json: is a baseline of rag-contract 0.1.0; {MAKE} from the good run"],
    ),
    "no query in common": (
        json.dumps(baseline(stored_query("other"))).encode(),
        [f"baseline.json: has no query in common with the golden file; {MAKE}"],
    ),
    "no query at all": (
        json.dumps(baseline() | {"queries": []}).encode(),
        [f"baseline.json: has no query in common with the golden file; {MAKE}"],
    ),
    "no question in common": (
        json.dumps(baseline(stored_query("q1", query="And now?"))).encode(),
        [f"baseline.json: has ids in common with the golden file, but no question; {MAKE}"],
    ),
    "cut off": (
        GOOD[:-30],
        ["baseline.json:22: is cut off in the middle; was the export stopped before it had finished?"],
    ),
    "NaN": (
        GOOD.replace(b'"1.0.0"', b"NaN"),
        [f"baseline.json:6: is not JSON: invalid character at column 16, before 'NaN'; {NAN_HINT}"],
    ),
    "Latin-1": (
        GOOD.replace(b"What", b"Wh\xe4t"),
        ["baseline.json:18: is not UTF-8 (byte 0xe4 at column 19); save the file as UTF-8"],
    ),
    "100,000 nested brackets": (b"[" * 100_000, ["baseline.json:1: is nested too deeply: more than 100 levels"]),
    "100,000 nested brackets where nobody reads": (
        b'{"format_version": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ["baseline.json:1: is nested too deeply: more than 100 levels"],
    ),
    "damaged gzip": (
        gzip.compress(GOOD)[:10] + b"\xff" * 30,
        ["baseline.json: the gzip data is damaged or cut off (Error -3 while decompressing data: invalid block type)"],
    ),
    "the same query twice": (
        json.dumps(baseline(stored_query("7"), stored_query("q2"), stored_query("7", id=7)), indent=1).encode(),
        ["baseline.json:35: queries[2].id: duplicate id '7', first defined at queries[0]"],
    ),
    "wrong types, each with its line": (
        json.dumps(
            baseline(stored_query("q1", doc_ids=[None], ranks={"a": 0}), {"id": "q2"}, k=[0], created_at=None), indent=1
        ).encode(),
        [
            "baseline.json:3: created_at: expected text, found null",
            f"baseline.json:10: k[0]: {RANK}, found 0",
            f"baseline.json:20: queries[0].doc_ids[0]: {ID}, found null",
            f"baseline.json:23: queries[0].ranks.a: {RANK}, found 0",
            "baseline.json:27: queries[1].doc_ids: is missing",
            "baseline.json:27: queries[1].metrics: is missing",
            "baseline.json:27: queries[1].query: is missing",
            "baseline.json:27: queries[1].ranks: is missing",
        ],
    ),
}


@pytest.mark.parametrize(("data", "expected"), BASELINES.values(), ids=BASELINES.keys())
def test_a_baseline_that_cannot_be_compared_with_is_refused(
    data: bytes, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.json").write_bytes(data)
    assert errors(refused(tmp_path)) == expected


TOO_DEEP = ["baseline.json:1: is nested too deeply: more than 100 levels"]


def nested(name: str, levels: int) -> bytes:
    """Return a baseline with lists as deep as that, itself included, in one field."""
    lists = "[" * (levels - 1) + "]" * (levels - 1)
    return f'{json.dumps(baseline()).removesuffix("}")}, "{name}": {lists}}}'.encode()


@pytest.mark.parametrize("name", ["accepted", "nobody reads it"])
@pytest.mark.parametrize("levels", [101, *range(940, 1_000)])
def test_a_baseline_nested_past_the_limit_is_refused_at_the_borders_of_all_decoders_too(
    tmp_path: Path, levels: int, name: str
) -> None:
    problems = [event for event in stored_events(written(tmp_path, nested(name, levels))) if isinstance(event, Problem)]
    assert [str(one).rpartition("/")[2] for one in problems] == TOO_DEEP
    with pytest.raises(InputError, match="is nested too deeply: more than 100 levels"):
        read_stored(str(tmp_path / "baseline.json"))


def test_a_baseline_nested_up_to_the_limit_is_read_and_explained(tmp_path: Path) -> None:
    unread, read = (
        [event for event in stored_events(written(tmp_path, nested(name, 100))) if isinstance(event, Problem)]
        for name in ("nobody reads it", "accepted")
    )
    assert unread == []
    assert [str(one).partition("accepted[0]: ")[2] for one in read] == ["expected an object, found [[[…]]]"]


def written(folder: Path, data: bytes) -> str:
    (folder / "baseline.json").write_bytes(data)
    return str(folder / "baseline.json")


def test_a_problem_of_every_query_of_a_baseline_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    for fields, said_of_it in (({"doc_ids": None}, 1_200), ({"id": "q"}, 1_199)):
        queries = [stored_query(f"q{n}") | fields for n in range(1_200)]
        Path("baseline.json").write_text(json.dumps(baseline(*queries)))
        said = errors(refused(tmp_path))
        assert len(said) == 1
        assert f"(and {said_of_it - 1:,} more like this, in this line)" in said[0]


REPEATS = "(several rows per query are averaged with --repeats)"


def test_a_run_that_serves_as_a_baseline_is_read_as_strictly_as_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("base.jsonl").write_text(as_jsonl(run("q1"), run("q1")) + "{")
    assert errors(refused(tmp_path, "--baseline", "base.jsonl")) == [
        f"base.jsonl:2: query_id: duplicate id 'q1', first defined at base.jsonl:1 {REPEATS}",
        "base.jsonl:3: is cut off in the middle; was the export stopped before it had finished?",
    ]


def test_several_stored_baselines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert errors(refused(tmp_path, "--baseline", "baseline.json", "current_run.jsonl")) == [
        "baseline.json: is one of several baselines; give one baseline.json, or run files (.jsonl)"
    ]
