"""Golden files and runs that cannot be read: each is reported by file and line, and costs nothing that was there."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.contract.golden_file import OF_ANSWERS, OWN_FIELD
from tests.builders import OLD_FILES, as_jsonl, golden, good_workspace, run, write_jsonl
from tests.process import Ended, files_in, rag_contract

GOLDEN = as_jsonl(golden("q1", "doc1")).encode()
NAN_HINT = "JSON has no NaN or Infinity: write null or leave the field out"
ID = "expected text of 1 to 2,000 characters, or a whole number"
RANK = "expected a whole number of at least 1, at most a billion"
WEIGHT = "expected a number from 1e-9 to a billion"


def refused(folder: Path, *options: str) -> Ended:
    """Run a check that must be refused without a traceback, and without touching a single file but old reports."""
    before = inputs_in(folder)
    ended = rag_contract("check", *options)
    assert ended.code == 2
    assert ended.out == ""
    assert inputs_in(folder) == before
    return ended


def inputs_in(folder: Path) -> dict[str, bytes]:
    """Return the files in a folder; of the reports of an older check, only that they are there."""
    return {name: b"" if name in OLD_FILES else data for name, data in files_in(folder).items()}


def errors(ended: Ended) -> list[str]:
    """Return what is said to be wrong; nothing else may be said."""
    lines = ended.err.splitlines()
    assert all(line.startswith("error: ") for line in lines), ended.err
    return [line.removeprefix("error: ") for line in lines]


FILES = {
    "an empty file": (b"", "golden.jsonl: is empty; expected one JSON object a line"),
    "only blank lines": (b"\n  \n\r\n", "golden.jsonl: is empty; expected one JSON object a line"),
    "only a byte order mark": (b"\xef\xbb\xbf", "golden.jsonl: is empty; expected one JSON object a line"),
    "binary data": (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)),
        "golden.jsonl:1: is binary data; expected JSON lines as UTF-8 text, or gzip of them",
    ),
    "UTF-16": (
        '{"id": "q1"}'.encode("utf-16"),
        "golden.jsonl:1: is UTF-16 or UTF-32; save the file as UTF-8",
    ),
    "UTF-16 without a mark": (
        '{"id": "q1"}'.encode("utf-16-le"),
        "golden.jsonl:1: is UTF-16 or UTF-32; save the file as UTF-8",
    ),
    "Latin-1 in the question": (
        GOLDEN + '{"id": "q2", "query": "Größe?", "relevant_doc_ids": ["a"]}'.encode("latin-1"),
        "golden.jsonl:2: is not UTF-8 (byte 0xf6 at column 26); save the file as UTF-8",
    ),
    "Latin-1 in a field that nobody reads": (
        GOLDEN + '{"id": "q2", "query": "x", "relevant_doc_ids": ["a"], "note": "ö"}'.encode("latin-1"),
        "golden.jsonl:2: is not UTF-8 (byte 0xf6 at column 64); save the file as UTF-8",
    ),
    "a bare array": (
        b"[" + GOLDEN.strip() + b"]",
        "golden.jsonl:1: is a JSON array; expected one object a line, as `jq -c '.[]' FILE` writes them",
    ),
    "a bare array over several lines": (
        b"[\n" + GOLDEN.strip() + b",\n" + GOLDEN + b"]\n",
        "golden.jsonl:1: is a JSON array; expected one object a line, as `jq -c '.[]' FILE` writes them",
    ),
    "one indented document": (
        json.dumps(golden(), indent=2).encode(),
        (
            "golden.jsonl:1: is one JSON document over several lines; expected one object a line, "
            "as `jq -c . FILE` writes it"
        ),
    ),
    "a truncated last line": (
        GOLDEN + GOLDEN[:20],
        "golden.jsonl:2: is cut off in the middle; was the export stopped before it had finished?",
    ),
    "a last line truncated within a character": (
        GOLDEN + '{"id": "q2", "query": "ö'.encode()[:-1],
        "golden.jsonl:2: is cut off in the middle; was the export stopped before it had finished?",
    ),
    "100,000 nested brackets": (
        GOLDEN + b'{"id": ' + b"[" * 100_000 + b"\n",
        "golden.jsonl:2: is not what was expected: Expected `int | str`, got `array` - at `$.id`",
    ),
    "100,000 nested brackets where nobody reads": (
        GOLDEN + b'{"id": "q2", "query": "x", "note": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        "golden.jsonl:2: is nested too deeply",
    ),
    "gzip that is damaged": (
        gzip.compress(GOLDEN)[:10] + b"\xff" * 30,
        "golden.jsonl:1: the gzip data is damaged or cut off (Error -3 while decompressing data: invalid block type)",
    ),
    "gzip that is cut off": (
        gzip.compress(GOLDEN)[:-10],
        (
            "golden.jsonl:1: the gzip data is damaged or cut off "
            "(Compressed file ended before the end-of-stream marker was reached)"
        ),
    ),
    "gzip with something behind it": (
        gzip.compress(GOLDEN) + b"more",
        "golden.jsonl:1: the gzip data is damaged or cut off (Not a gzipped file (b'mo'))",
    ),
    "gzip of nothing": (gzip.compress(b""), "golden.jsonl: is empty; expected one JSON object a line"),
}


@pytest.mark.parametrize(("data", "expected"), FILES.values(), ids=FILES.keys())
def test_a_golden_file_that_is_no_json_lines_is_refused(
    data: bytes, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_bytes(data)
    assert errors(refused(tmp_path)) == [expected]


@pytest.mark.parametrize(
    ("before", "filler", "line"),
    [(GOLDEN + b'{"id": "', b"x", 2), (b"\xef\xbb\xbf", b" ", 1)],
    ids=["the second line", "the first behind a byte order mark"],
)
def test_a_line_over_64_mib_is_refused(
    before: bytes, filler: bytes, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    with Path("golden.jsonl").open("wb") as file:  # made here: a parameter is held as long as the tests run
        file.writelines([before, *[filler * (1 << 20)] * 64, b'"}\n'])
    assert errors(refused(tmp_path)) == [f"golden.jsonl:{line}: the line is longer than 64 MiB"]


def test_a_repeated_query_is_reported_with_the_file_and_the_line_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    for name, ids in {"a": ["q1"], "b": ["x", "y", "z", "q2"], "c": ["q2", "y"]}.items():
        write_jsonl(Path(f"{name}.jsonl"), [run(query_id) for query_id in ids])
    ended = rag_contract("check", "--run", "a.jsonl", "b.jsonl", "c.jsonl")
    again = "first defined at"
    assert (ended.code, [line.split(" (")[0] for line in ended.err.splitlines() if again in line]) == (
        2,
        [f"error: c.jsonl:1: query_id: duplicate id 'q2', {again} b.jsonl:4"],
    )


LINES = {
    "text": ("hello", "is not JSON: invalid character at column 1, before 'hello'"),
    "a number": ("3", "expected an object, found 3"),
    "NaN": (
        '{"query_id": "q1", "results": [{"doc_id": "a", "score": NaN}]}',
        f"is not JSON: invalid character at column 57, before 'NaN}}]}}'; {NAN_HINT}",
    ),
    "infinity": (
        '{"query_id": "q1", "results": [{"doc_id": "a", "score": -Infinity}]}',
        f"is not JSON: invalid character at column 58, before 'Infinity}}]}}'; {NAN_HINT}",
    ),
    "infinity by size": (
        '{"query_id": "q1", "results": [{"doc_id": "a", "score": 1e999}]}',
        "has a number that is too large to read",
    ),
    "NaN where nobody reads": (
        '{"query_id": "q1", "results": [], "note": {"x": NaN}}',
        f"is not JSON: invalid character at column 49, before 'NaN}}}}'; {NAN_HINT}",
    ),
    "Python's None": (
        '{"query_id": "q1", "results": None}',
        "is not JSON: invalid character at column 31, before 'None}'; JSON writes null, true and false",
    ),
    "Python's quotes": (
        "{'query_id': 'q1', 'results': []}",
        (
            "is not JSON: object keys must be strings at column 2, before \"'query_id': 'q1', 'r\"; "
            "JSON wants double quotes"
        ),
    ),
    "a comma too many": (
        '{"query_id": "q1", "results": [],}',
        "is not JSON: trailing comma in object at column 34, before '}'",
    ),
    "two objects on a line": (
        '{"query_id": "q1", "results": []} {"query_id": "q2", "results": []}',
        'goes on after the end of its JSON object: \'{"query_id": "q2", "\' at column 35',
    ),
    "a tab within text": (
        '{"query_id": "q\t1", "results": []}',
        (
            'is not JSON: invalid character at column 16, before \'\\t1", "results": []}\'; '
            "JSON wants control characters in text escaped, as \\n or \\t"
        ),
    ),
    "half of a character": (
        '{"query_id": "\\ud83d", "results": []}',
        'is not JSON: unexpected end of escaped utf-16 surrogate pair at column 21, before \'", "results": []}\'',
    ),
    "half of a character at the end": (
        '{"query_id": "\\ud83d"}',
        "is not JSON: a \\u escape is only half of a character",
    ),
}


@pytest.mark.parametrize(("line", "expected"), LINES.values(), ids=LINES.keys())
def test_a_run_row_that_is_no_json_object_is_refused(
    line: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q2", "doc2")) + line + "\n")
    assert errors(refused(tmp_path)) == [f"current_run.jsonl:2: {expected}"]


AGREE = "leave relevant_doc_ids out, or name the same documents in both"
GOLDEN_FIELDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an id that is null": ({"id": None}, [f"id: {ID}, found null"]),
    "an empty id": ({"id": ""}, [f'id: {ID}, found "" (text)']),
    "an id that is a fraction": ({"id": 1.5}, [f"id: {ID}, found 1.5"]),
    "an id that is true": ({"id": True}, [f"id: {ID}, found true"]),
    "a question that is null": ({"query": None}, ["query: expected text of 1 to 20,000 characters, found null"]),
    "a question that is a number": (
        {"query": 5},
        ['query: expected text of 1 to 20,000 characters, found 5; write "5"'],
    ),
    "relevant documents that are text": (
        {"relevant_doc_ids": 'say "doc1"'},
        [
            (
                'relevant_doc_ids: expected a list, found "say \\"doc1\\"" (text); '
                'write ["say \\"doc1\\""] for a list of one'
            )
        ],
    ),
    "relevant documents that are null": (
        {"relevant_doc_ids": None},
        ["relevant_doc_ids: is missing; give the documents to be found, [] if nothing answers it, or " + OF_ANSWERS],
    ),
    "no documents, and no rules in the list of rules": (
        {"relevant_doc_ids": None, "rules": []},
        ["relevant_doc_ids: is missing; give the documents to be found, [] if nothing answers it, or " + OF_ANSWERS],
    ),
    "no claims in the list of claims": (
        {"reference_claims": []},
        ["reference_claims: is empty; give the claims of the reference, or leave it out"],
    ),
    "no criteria in the list of criteria": (
        {"criteria": []},
        ["criteria: is empty; give at least one criterion, or leave it out"],
    ),
    "criteria that cannot be told apart": (
        {"criteria": ["Is polite.", " ", {"id": "1", "text": "Is short."}, {"id": "x", "text": "Is polite."}]},
        [
            "criteria[1]: has no letter, digit or symbol that a reader sees; write what the answer must be",
            "criteria[2].id: has the id '1' of criteria[0]; without an id, a criterion has its number",
            "criteria[3]: repeats criteria[0]; leave one of them out",
        ],
    ),
    "relevant documents in nested lists": (
        {"relevant_doc_ids": ["a", ["b", ["c", ["d"]]]]},
        [f'relevant_doc_ids[1]: {ID}, found ["b", ["c", […]]]'],
    ),
    "several things that are wrong, in their order": (
        {"relevant_doc_ids": [*"abcdefghij", None], "query": "", "forbidden_doc_ids": [None, "x", 0.5]},
        [
            f"forbidden_doc_ids[0]: {ID}, found null",
            f"forbidden_doc_ids[2]: {ID}, found 0.5",
            'query: expected text of 1 to 20,000 characters, found "" (text)',
            f"relevant_doc_ids[10]: {ID}, found null",
        ],
    ),
    "rank 0": ({"must_rank_at_most": 0}, [f"must_rank_at_most: {RANK}, found 0"]),
    "a negative rank": ({"must_rank_at_most": -3}, [f"must_rank_at_most: {RANK}, found -3"]),
    "a rank with a point": ({"must_rank_at_most": 3.0}, [f"must_rank_at_most: {RANK}, found 3.0"]),
    "a rank in quotes": (
        {"must_rank_at_most": "3"},
        [f'must_rank_at_most: {RANK}, found "3" (text); leave the quotes out'],
    ),
    "a rank beyond all numbers": (
        {"must_rank_at_most": 10**20},
        [f"must_rank_at_most: {RANK}, found 100000000000000000000"],
    ),
    "a rank for nothing": (
        {"must_rank_at_most": 1, "relevant_doc_ids": []},
        ["must_rank_at_most: needs at least one relevant document to rank"],
    ),
    "any document of none": (
        {"must_include_any": True, "relevant_doc_ids": []},
        ["must_include_any: needs at least one relevant document to include; name them, or leave it out"],
    ),
    "weight 0": ({"weight": 0}, [f"weight: {WEIGHT}, found 0"]),
    "a negative weight": ({"weight": -1.5}, [f"weight: {WEIGHT}, found -1.5"]),
    "a weight that overflows sums": ({"weight": 1e308}, [f"weight: {WEIGHT}, found 1e+308"]),
    "a weight that vanishes in products": ({"weight": 1e-320}, [f"weight: {WEIGHT}, found 1e-320"]),
    "a weight in quotes": ({"weight": "2"}, [f'weight: {WEIGHT}, found "2" (text); leave the quotes out']),
    "yes for true": (
        {"must_include_any": "yes"},
        ['must_include_any: expected true or false, found "yes"; write true'],
    ),
    "1 for true": ({"must_include_any": 1}, ["must_include_any: expected true or false, found 1"]),
    "tags that are text": (
        {"tags": "policy"},
        ['tags: expected a list, found "policy" (text); write ["policy"] for a list of one'],
    ),
    "a mode that is nearly one": (
        {"expected_mode": "abstained"},
        [
            (
                'expected_mode: expected "abstain" or "disputed" or "trustworthy", found "abstained"; '
                'did you mean "abstain"?'
            )
        ],
    ),
    "a rule by its name alone": (
        {"rules": ["must_refuse"]},
        ['rules[0]: expected an object, found "must_refuse"; write {"type": "must_refuse", …}'],
    ),
    "a rule that is a sentence": ({"rules": ["be polite"]}, ['rules[0]: expected an object, found "be polite" (text)']),
    "tags that are an empty text": ({"tags": ""}, ['tags: expected a list, found "" (text)']),
    "tags in a nested list": ({"tags": [["a"]]}, ['tags[0]: expected text of 1 to 200 characters, found ["a"]']),
    "metadata that is a list": ({"metadata": []}, ["metadata: expected an object, found []"]),
    "a negative grade": (
        {"relevance": {"a": -1}},
        ["relevance.a: expected a number of at least 0, at most a billion, found -1"],
    ),
    "a grade for an empty id": ({"relevance": {"": 1}}, ["relevance: has an empty key"]),
    "grades that disagree": (
        {"relevance": {"doc1": 0}},
        [f"relevance: disagrees with relevant_doc_ids: 'doc1' is only in relevant_doc_ids; {AGREE}"],
    ),
    "grades that disagree the other way": (
        {"relevance": {"doc1": 1, "doc2": 2}},
        [f"relevance: disagrees with relevant_doc_ids: 'doc2' is of grade 1 or more only in relevance; {AGREE}"],
    ),
}


@pytest.mark.parametrize(("fields", "expected"), GOLDEN_FIELDS.values(), ids=GOLDEN_FIELDS.keys())
def test_a_golden_row_with_a_bad_field_is_refused(
    fields: dict[str, Any], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(as_jsonl(golden("q1"), golden("q2", "doc1") | fields))
    assert errors(refused(tmp_path)) == [f"golden.jsonl:2: {message}" for message in expected]


RUN_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "results that are null": ({"results": None}, "results: expected a list, found null"),
    "results that are an object": ({"results": {"doc_id": "a"}}, 'results: expected a list, found {"doc_id": "a"}'),
    "results that are bare ids": (
        {"results": ["a"]},
        'results[0]: expected an object, found "a"; write {"doc_id": "a"}',
    ),
    "results in nested lists": (
        {"results": [[{"doc_id": "a"}]]},
        'results[0]: expected an object, found [{"doc_id": "a"}]',
    ),
    "a document without an id": ({"results": [{"score": 1}]}, "results[0].doc_id: is missing"),
    "a document with another field for the id": (
        {"results": [{"id": "a", "text": "x"}]},
        "results[0].doc_id: is missing; found instead: 'id', 'text'",
    ),
    "a document with a misspelled id": (
        {"results": [{"docId": "a"}]},
        "results[0].doc_id: is missing; is 'docId' a misspelling of it?",
    ),
    "a score in quotes": (
        {"results": [{"doc_id": "a", "score": "0.5"}]},
        'results[0].score: expected a number, found "0.5" (text); leave the quotes out',
    ),
    "a negative latency": ({"latency_ms": -1}, "latency_ms: expected a number from 0 to a billion, found -1"),
    "an empty version": ({"embedding_model": ""}, f'embedding_model: {ID}, found "" (text)'),
}


@pytest.mark.parametrize(("fields", "expected"), RUN_FIELDS.values(), ids=RUN_FIELDS.keys())
def test_a_run_row_with_a_bad_field_is_refused(
    fields: dict[str, Any], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1"), run("q2") | fields))
    assert errors(refused(tmp_path)) == [f"current_run.jsonl:2: {expected}"]


def test_missing_fields_are_named_with_what_was_probably_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text('{}\n{"ID": "a", "question": "b", "relevant_doc_id": ["c"]}\n')
    assert errors(refused(tmp_path)) == [
        "golden.jsonl:1: id: is missing",
        "golden.jsonl:1: query: is missing",
        "golden.jsonl:2: id: is missing; is 'ID' a misspelling of it?",
        "golden.jsonl:2: query: is missing; found instead: 'ID', 'question', 'relevant_doc_id'",
        f"golden.jsonl:2: relevant_doc_id: unknown field; did you mean 'relevant_doc_ids'? ({OWN_FIELD})",
    ]


def test_a_misspelled_field_explains_why_the_right_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text('{"id": "q1", "query": "b", "relevant_docs_ids": ["c"]}\n')
    assert refused(tmp_path).err == (
        "error: golden.jsonl:1: relevant_doc_ids: is missing; is 'relevant_docs_ids' a misspelling of it?\n"
    )


@pytest.mark.parametrize(
    ("field", "advice"),
    [
        ("must_contain", 'write {"type": "must_contain", …} into rules'),
        ("rule", "did you mean 'rules'?"),
        ("expected_mod", "did you mean 'expected_mode'?"),
    ],
)
def test_a_row_that_expects_nothing_but_has_a_field_that_is_not_read_says_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, advice: str
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(json.dumps({"id": "q1", "query": "b", field: "c"}) + "\n")
    assert refused(tmp_path).err == (
        f"error: golden.jsonl:1: relevant_doc_ids: is missing, and {field!r} is not read; {advice}\n"
    )


REPEATS = "(several rows per query are averaged with --repeats)"


def test_duplicate_ids_are_reported_with_both_locations_also_over_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("g1.jsonl").write_text(as_jsonl(golden("7"), golden("q2"), golden("q2")))
    Path("g2.jsonl").write_text("\n" + as_jsonl(golden("x") | {"id": 7}))
    Path("r.jsonl").write_text(as_jsonl(run("7"), run("q2"), run("7"), run("x") | {"query_id": 7}))
    assert errors(refused(tmp_path, "--golden", "g1.jsonl", "g2.jsonl", "--run", "r.jsonl")) == [
        "g1.jsonl:3: id: duplicate id 'q2', first defined at g1.jsonl:2",
        "g2.jsonl:2: id: duplicate id '7', first defined at g1.jsonl:1",
        f"r.jsonl:3: query_id: duplicate id '7', first defined at r.jsonl:1 {REPEATS}",
        f"r.jsonl:4: query_id: duplicate id '7', first defined at r.jsonl:1 {REPEATS}",
    ]


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(as_jsonl(golden("q1"), golden("q1")))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1", latency_ms=-1)))
    Path("baseline.json").write_text("{}")
    Path("ragcontract.yml").write_text("kk: 5\n")
    said = errors(refused(tmp_path))
    assert [line.split(":")[0] for line in said] == [
        "ragcontract.yml",
        "golden.jsonl",
        "current_run.jsonl",
        "baseline.json",
    ]


def test_a_problem_of_every_row_is_reported_once_with_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(as_jsonl(*(golden(f"q{n}", weight=0) for n in range(30))))
    rows = [run(f"q{n}", **({} if n == 7 else {"latency_ms": -1})) for n in range(30)]
    Path("current_run.jsonl").write_text(as_jsonl(*rows, run("q31", mode=3)))
    latency = "current_run.jsonl:1: latency_ms: expected a number from 0 to a billion, found -1"
    assert errors(refused(tmp_path)) == [
        f"golden.jsonl:1: weight: {WEIGHT}, found 0 (and 29 more like this, in lines 1 to 30)",
        f"{latency} (and 28 more like this, in lines 1 to 7, 9 to 30)",
    ]


def test_up_to_three_problems_are_each_reported_with_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(as_jsonl(*(golden(f"q{n}", weight=-n) for n in (1, 2, 3))))
    assert errors(refused(tmp_path)) == [f"golden.jsonl:{n}: weight: {WEIGHT}, found -{n}" for n in (1, 2, 3)]


def test_50_problems_are_reported_and_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text("{}\n" * 60)
    assert errors(refused(tmp_path)) == [
        "golden.jsonl:1: id: is missing (and 24 more like this, in lines 1 to 25)",
        "golden.jsonl:1: query: is missing (and 24 more like this, in lines 1 to 25)",
        "… and 35 more like these",
    ]


def test_a_line_of_megabytes_is_not_repeated_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    long = "x" * 3_000_000
    Path("golden.jsonl").write_text(as_jsonl(golden(long), golden(long), golden("q3", tags=long)))
    said = errors(refused(tmp_path))
    assert [len(line) < 1_100 for line in said] == [True, True, True]
    assert said[2].startswith('golden.jsonl:3: tags: expected a list, found "xxxx')


def test_control_characters_and_commands_in_bad_input_are_made_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    hostile = "\x1b[31m\n::error::pwned\r\u202e##[error]"
    Path("golden.jsonl").write_text(as_jsonl(golden(hostile), golden(hostile)))
    assert errors(refused(tmp_path)) == [
        (
            "golden.jsonl:2: id: duplicate id '\\x1b[31m\\n::error::pwned\\r\\u202e##\\x5berror]', "
            "first defined at golden.jsonl:1"
        ),
        (
            "current_run.jsonl: has no row for golden query '\\x1b[31m\\n::error::pwned\\r\\u202e##\\x5berror]' "
            "(golden.jsonl:1); its query ids are 'q1', 'q2'; is it the run of another golden file?"
        ),
    ]


ACCEPTED = {
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "files with byte order marks, put together": lambda data: b"".join(
        b"\xef\xbb\xbf" + line for line in data.splitlines(True)
    ),
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "no newline at the end": lambda data: data.rstrip(b"\n"),
    "blank lines": lambda data: b"\n" + data.replace(b"\n", b"\n \t\n"),
    "gzip under any name": gzip.compress,
    "gzip in two members": lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]),
    "gzip of a byte order mark": lambda data: gzip.compress(b"\xef\xbb\xbf" + data),
}


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED.keys())
@pytest.mark.parametrize("name", ["golden.jsonl", "current_run.jsonl", "baseline.jsonl"])
def test_other_ways_to_store_the_same_rows_are_read_as_they_are(
    change: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.jsonl").write_bytes(Path("current_run.jsonl").read_bytes())
    options = ("check", "--baseline", "baseline.jsonl", "--k", "7")
    expected = rag_contract(*options)
    Path(name).write_bytes(change(Path(name).read_bytes()))
    assert rag_contract(*options) == expected
    assert expected.code == 0
    assert "MRR@7        1.00 -> 1.00" in expected.out
