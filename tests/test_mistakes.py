"""The commonest mistakes of new users: each is one message, which names the mistake and the way out."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import Row, as_jsonl, golden, write_jsonl
from tests.five_queries import CONFIG, GOLDEN, RUN, five_queries
from tests.process import Ended, rag_contract

Setup = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    five_queries(tmp_path, monkeypatch)


def given(*args: str) -> Setup:
    """Give these arguments."""
    return lambda: list(args)


def text(name: str, content: str | bytes, *args: str) -> Setup:
    """Write a file, and give these arguments."""

    def setup() -> list[str]:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(args)

    return setup


def rows(name: str, *content: Row) -> Setup:
    """Write rows to a file."""
    return text(name, as_jsonl(*content))


def queries(**changed: object) -> Setup:
    """Write golden rows in which fields are renamed (``query="question"``) or removed (None)."""
    return rows(
        "golden.jsonl", *({str(changed.get(name, name)): value for name, value in row.items()} for row in GOLDEN)
    )


def results(change: Callable[[Row], Row]) -> Setup:
    """Write the run with each row changed."""
    return rows("current_run.jsonl", *map(change, RUN))


def copied(name: str, copy: str, *args: str) -> Setup:
    """Copy a file, and give these arguments."""

    def setup() -> list[str]:
        Path(copy).write_bytes(Path(name).read_bytes())
        return list(args)

    return setup


def folder() -> list[str]:
    Path("runs").mkdir()
    return ["--run", "runs"]


def archive() -> list[str]:
    with zipfile.ZipFile("golden.zip", "w") as file:
        file.write("golden.jsonl")
    return ["--golden", "golden.zip"]


GOLDEN_ROW = '{"id": "q1", "query": "How do I log in?", "relevant_doc_ids": ["doc_a"]}'
RUN_ROW = '{"query_id": "q1", "results": [{"doc_id": "doc_a"}]}'
HERE = "give what the retriever returned here, and this file as the"
ALL = "(and 4 more like this, in lines 1 to 5)"
RUN_IS = "current_run.jsonl: has no row for any of the 5 golden queries"
AS_WRITTEN = "write query_id as the golden row's id is written"
FRACTION = "expected a fraction from 0 to 1, as 0.10"
INDENT = "mapping values are not allowed here"
ZERO = "export it again, or have such queries scored 0 with `missing_queries: zero` in the config"

# Each cannot be judged: exit code 2, and this one line.
REFUSED: dict[str, tuple[Setup, str]] = {
    "a misspelled path": (given("--golden", "goldn.jsonl"), "goldn.jsonl: no such file; did you mean golden.jsonl?"),
    "a path that is not there": (given("--run", "out/run.jsonl"), "out/run.jsonl: no such file"),
    "a folder": (folder, "runs: is a folder; name the files in it, as in 'folder/*.jsonl'"),
    "golden and run swapped": (
        given("--golden", "current_run.jsonl", "--run", "golden.jsonl"),
        (
            "golden.jsonl:1: golden and run are swapped: this is the golden file, and current_run.jsonl is the run; "
            "exchange the paths"
        ),
    ),
    "the golden file as the run": (
        given("--run", "golden.jsonl"),
        f"golden.jsonl:1: is a golden file, not a run; {HERE} golden file",
    ),
    "the run as the golden file": (
        given("--golden", "current_run.jsonl"),
        "current_run.jsonl:1: is a run, not a golden file; give the golden queries here, and this file as the run",
    ),
    "the run as its own baseline": (
        given("--baseline", "./current_run.jsonl"),
        (
            "current_run.jsonl: the baseline is the run itself, so that nothing could ever have got worse; name a run "
            "that is known to be good"
        ),
    ),
    "the baseline as the run": (
        given("--run", "baseline.json"),
        f"baseline.json:1: is a baseline, not a run; {HERE} baseline",
    ),
    "the baseline as the golden file": (
        given("--golden", "baseline.json"),
        (
            "baseline.json:1: is a baseline, not a golden file; give the golden queries here, "
            "and this file as the baseline"
        ),
    ),
    "the golden file as the baseline": (
        given("--baseline", "golden.jsonl"),
        f"golden.jsonl:1: is a golden file, not a run; {HERE} golden file",
    ),
    "a run named .json as the baseline": (
        copied("current_run.jsonl", "good.json", "--baseline", "good.json"),
        (
            "good.json: is a run, not a baseline; give what `rag-contract baseline` writes here, "
            "and this file as the run; a run can serve as one if its name ends in .jsonl"
        ),
    ),
    "the config as the golden file": (
        given("--golden", "ragcontract.yml"),
        f"ragcontract.yml:1: is YAML, not JSON lines; expected one JSON object a line, as {GOLDEN_ROW}",
    ),
    "the golden file as the config": (
        given("--config", "golden.jsonl"),
        (
            "golden.jsonl: is a golden file, not a configuration; give ragcontract.yml here, "
            "and this file as the golden file"
        ),
    ),
    "the baseline as the config": (
        given("--config", "baseline.json"),
        "baseline.json: is a baseline, not a configuration; give ragcontract.yml here, and this file as the baseline",
    ),
    "CSV for the golden file": (
        text("golden.csv", "id,query,docs\n" + "q0,What?,doc_0\n" * 5, "--golden", "golden.csv"),
        "golden.csv:1: is CSV, not JSON lines; convert it with `rag-contract convert --from csv`",
    ),
    "CSV with semicolons": (
        text("golden.jsonl", "id;query;docs\n" + "q0;What?;doc_0\n" * 5),
        "golden.jsonl:1: is CSV, not JSON lines; convert it with `rag-contract convert --from csv`",
    ),
    "CSV for the run": (
        text("current_run.jsonl", '"query_id","doc_id"\n' + "q0,doc_0\n" * 5),
        f"current_run.jsonl:1: is CSV, not JSON lines; expected one JSON object a line, as {RUN_ROW}",
    ),
    "tabs": (
        text("golden.jsonl", "query-id\tcorpus-id\tscore\n" + "q0\tdoc_0\t1\n" * 5),
        f"golden.jsonl:1: is tab-separated (TSV), not JSON lines; expected one JSON object a line, as {GOLDEN_ROW}",
    ),
    "a run in the format of TREC": (
        text("current_run.jsonl", "q0 Q0 doc_0 1 0.9 bm25\n" * 5),
        "current_run.jsonl:1: is a run in the format of TREC; convert it with `rag-contract convert --from trec`",
    ),
    "a JSON array": (
        text("golden.jsonl", json.dumps(GOLDEN)),
        "golden.jsonl:1: is a JSON array; expected one object a line, as `jq -c '.[]' FILE` writes them",
    ),
    "indented JSON": (
        text("current_run.jsonl", "\n".join(json.dumps(row, indent=2) for row in RUN)),
        (
            "current_run.jsonl:1: is one JSON document over several lines; expected one object a line, "
            "as `jq -c . FILE` writes it"
        ),
    ),
    "one object with all queries": (
        text("current_run.jsonl", json.dumps({row["query_id"]: row["results"] for row in RUN})),
        (
            "current_run.jsonl:1: is one JSON object with the keys 'q0', 'q1', 'q2', …; "
            f"expected one JSON object a line, as {RUN_ROW}"
        ),
    ),
    "commas between the lines": (
        text("golden.jsonl", ",\n".join(map(json.dumps, GOLDEN)) + ",\n"),
        f"golden.jsonl:1: goes on after the end of its JSON object: ',' at column 71; lines do not end in commas {ALL}",
    ),
    "Python's quotes": (
        text("golden.jsonl", "".join(f"{row}\n" for row in GOLDEN)),
        (
            "golden.jsonl:1: is not JSON: object keys must be strings at column 2, before "
            f"\"'id': 'q0', 'query':\"; JSON wants double quotes {ALL}"
        ),
    ),
    "an empty golden file": (text("golden.jsonl", ""), "golden.jsonl: is empty; expected one JSON object a line"),
    "an empty config": (
        text("ragcontract.yml", ""),
        "ragcontract.yml:1: is empty; write at least `k: 5`, or remove the file to use the defaults",
    ),
    "an empty baseline": (
        text("baseline.json", ""),
        "baseline.json: is empty; make it with `rag-contract baseline --force`",
    ),
    "CSV as the baseline": (
        text("baseline.json", "query_id,doc_id\nq0,doc_0\n"),
        "baseline.json: is CSV, not a baseline; give what `rag-contract baseline` writes here",
    ),
    "a Git LFS pointer as the baseline": (
        text("baseline.json", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
        (
            "baseline.json: is a Git LFS pointer, not the file itself; fetch that with `git lfs pull`, "
            "or `lfs: true` in the workflow"
        ),
    ),
    "UTF-16": (
        text("golden.jsonl", as_jsonl(*GOLDEN).encode("utf-16")),
        "golden.jsonl:1: is UTF-16 or UTF-32; save the file as UTF-8",
    ),
    "UTF-16 without a mark": (
        text("golden.jsonl", as_jsonl(*GOLDEN).encode("utf-16-le")),
        "golden.jsonl:1: is UTF-16 or UTF-32; save the file as UTF-8",
    ),
    "Latin-1": (
        text("golden.jsonl", as_jsonl(*GOLDEN).replace("What", "Straße").encode("latin-1")),
        f"golden.jsonl:1: is not UTF-8 (byte 0xdf at column 28); save the file as UTF-8 {ALL}",
    ),
    "a ZIP archive": (
        archive,
        "golden.zip:1: is a ZIP archive, as Excel files are too; expected JSON lines, or gzip of them",
    ),
    "a Git LFS pointer": (
        text("current_run.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
        (
            "current_run.jsonl:1: is a Git LFS pointer, not the file itself; fetch that with `git lfs pull`, "
            "or `lfs: true` in the workflow"
        ),
    ),
    "an error page": (
        text("current_run.jsonl", "<!DOCTYPE html>\n<html><body>404</body></html>\n"),
        "current_run.jsonl:1: is HTML or XML, not JSON lines; was an error page downloaded?",
    ),
    "an unresolved merge": (
        text("golden.jsonl", as_jsonl(*GOLDEN[:2]) + "<<<<<<< HEAD\n" + as_jsonl(*GOLDEN[2:]) + "=======\n>>>>>>> b\n"),
        "golden.jsonl:3: is a conflict marker of git; resolve the merge, the rest of the file was not read",
    ),
    "relevant_docs": (
        queries(relevant_doc_ids="relevant_docs"),
        f"golden.jsonl:1: relevant_doc_ids: is missing; is 'relevant_docs' a misspelling of it? {ALL}",
    ),
    "question": (
        queries(query="question"),
        f"golden.jsonl:1: query: is missing; found instead: 'question' {ALL}",
    ),
    "query for query_id": (
        results(lambda row: {"query": row["query_id"], "results": row["results"]}),
        f"current_run.jsonl:1: query_id: is missing; is 'query' a misspelling of it? {ALL}",
    ),
    "results that are ids": (
        results(lambda row: row | {"results": ["doc_0"]}),
        'current_run.jsonl:1: results[0]: expected an object, found "doc_0"; write {"doc_id": "doc_0"} ' + ALL,
    ),
    "one id instead of a list": (
        rows("golden.jsonl", *(row | {"relevant_doc_ids": "doc_0"} for row in GOLDEN)),
        'golden.jsonl:1: relevant_doc_ids: expected a list, found "doc_0" (text); write ["doc_0"] for a list of one '
        + ALL,
    ),
    "ids that are fractions": (
        rows("golden.jsonl", *(row | {"relevant_doc_ids": [1.0]} for row in GOLDEN)),
        "golden.jsonl:1: relevant_doc_ids[0]: expected text of 1 to 2,000 characters, or a whole number, found 1.0 "
        + ALL,
    ),
    "scores that are text": (
        results(lambda row: row | {"results": [{"doc_id": "a", "score": "0.9"}]}),
        'current_run.jsonl:1: results[0].score: expected a number, found "0.9" (text); leave the quotes out ' + ALL,
    ),
    "scores that are NaN": (
        results(lambda row: row | {"results": [{"doc_id": "a", "score": float("nan")}]}),
        (
            "current_run.jsonl:1: is not JSON: invalid character at column 57, before 'NaN}]}'; "
            f"JSON has no NaN or Infinity: write null or leave the field out {ALL}"
        ),
    ),
    "a query twice in the golden file": (
        rows("golden.jsonl", *GOLDEN, GOLDEN[0]),
        "golden.jsonl:6: id: duplicate id 'q0', first defined at golden.jsonl:1",
    ),
    "all queries twice in the run": (
        rows("current_run.jsonl", *RUN, *RUN),
        (
            "current_run.jsonl:6: query_id: duplicate id 'q0', first defined at current_run.jsonl:1 "
            "(several rows per query are averaged with --repeats) (and 4 more like this, in lines 6 to 10)"
        ),
    ),
    "an export that stopped": (
        text("current_run.jsonl", as_jsonl(*RUN)[:-30]),
        "current_run.jsonl:5: is cut off in the middle; was the export stopped before it had finished?",
    ),
    "missing rows": (
        rows("current_run.jsonl", *RUN[:3]),
        (
            "current_run.jsonl: has no row for 2 of 5 golden queries: 'q3' (golden.jsonl:4), 'q4' (golden.jsonl:5); "
            f"{ZERO}"
        ),
    ),
    "the run of another contract": (
        results(lambda row: row | {"query_id": f"z{row['query_id']}"}),
        f"{RUN_IS}; its query ids are 'zq0', 'zq1', 'zq2' and 2 more; is it the run of another golden file?",
    ),
    "blanks at the end of query ids": (
        results(lambda row: row | {"query_id": f"{row['query_id']} "}),
        f"{RUN_IS}; it has 5 of them without the blanks of the run's ids ('q0␣' for 'q0'): {AS_WRITTEN}",
    ),
    "query ids in other case": (
        results(lambda row: row | {"query_id": row["query_id"].upper()}),
        f"{RUN_IS}; it has 5 of them in other case ('Q0' for 'q0'): {AS_WRITTEN}",
    ),
    "the question as the query id": (
        results(lambda row: row | {"query_id": f"What about {row['query_id']}?"}),
        f"{RUN_IS}; its query_id is the question; write the golden row's id",
    ),
    "80 for 0.80": (
        text("ragcontract.yml", CONFIG.replace("0.5", "80")),
        f"ragcontract.yml:5: minimums.recall_at_k: {FRACTION}, found 80; write 0.8",
    ),
    "80 percent": (
        text("ragcontract.yml", CONFIG.replace("0.5", "80%")),
        f'ragcontract.yml:5: minimums.recall_at_k: {FRACTION}, found "80%"; write 0.8',
    ),
    "a decimal comma": (
        text("ragcontract.yml", CONFIG.replace("0.5", "0,5")),
        f'ragcontract.yml:5: minimums.recall_at_k: {FRACTION}, found "0,5"; write 0.5',
    ),
    "a misspelled key": (
        text("ragcontract.yml", CONFIG.replace("fail_on", "failon")),
        "ragcontract.yml:2: failon: unknown key; did you mean 'fail_on'?",
    ),
    "yes for true": (
        text("ragcontract.yml", CONFIG + "per_query:\n  enforce_must_include: yes\n"),
        'ragcontract.yml:7: per_query.enforce_must_include: expected true, false or new, found "yes"; write true',
    ),
    "a tab": (
        text("ragcontract.yml", CONFIG.replace("  recall_drop", "\trecall_drop")),
        (
            "ragcontract.yml:3: is not YAML: while scanning for the next token, "
            "found character '\\t' that cannot start any token; indent with spaces, not tabs"
        ),
    ),
    "no blank after a colon": (
        text("ragcontract.yml", CONFIG.replace("k: 3", "k:3")),
        f"ragcontract.yml:2: is not YAML: {INDENT}; write a blank after the colon of 'k' in line 1",
    ),
    "a key too far to the right": (
        text("ragcontract.yml", CONFIG + "   map_at_k: 0.5\n"),
        f"ragcontract.yml:6: is not YAML: {INDENT}; indent all keys of one level by as many blanks",
    ),
    "a key that is not indented": (
        text("ragcontract.yml", "k: 3\nfail_on:\nrecall_drop_gt: 0.5\n"),
        "ragcontract.yml:3: recall_drop_gt: unknown key; write it under 'fail_on', indented",
    ),
}


@pytest.mark.parametrize(("setup", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_is_one_message_with_the_way_out(setup: Setup, expected: str) -> None:
    assert rag_contract("check", *setup()) == Ended(2, "", f"error: {expected}\n")


@pytest.mark.parametrize(
    "setup",
    [
        text("golden.jsonl", b"\xef\xbb\xbf" + as_jsonl(*GOLDEN).encode()),
        text("ragcontract.yml", b"\xef\xbb\xbf" + CONFIG.encode()),
        text("golden.jsonl", gzip.compress(as_jsonl(*GOLDEN).encode())),
        copied("golden.jsonl", "golden.jsonl.gz", "--golden", "golden.jsonl.gz"),
    ],
    ids=["a byte order mark", "one in the config", "gzip named .jsonl", "text named .gz"],
)
def test_what_is_no_mistake_passes_without_a_word(setup: Setup) -> None:
    ended = rag_contract("check", *setup())
    assert (ended.code, ended.err) == (0, "")


def test_whole_numbers_and_their_digits_are_the_same_ids() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("1", "7"), golden("2", "8")])
    write_jsonl(Path("current_run.jsonl"), [{"query_id": n, "results": [{"doc_id": n + 6}] * 3} for n in (1, 2)])
    Path("baseline.json").unlink()
    Path("ragcontract.yml").write_text("k: 1\n")
    assert rag_contract("check").code == 0
