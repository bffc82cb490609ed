"""The commonest mistakes of new users: each is one message, which names the mistake and the way out."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import Row, as_jsonl, golden, run, write_jsonl
from tests.github.standin import GitHub
from tests.process import Ended, rag_contract
from tests.runner import InProcess

QUERIES = 5
GOLDEN = [golden(f"q{n}", f"doc_{n}") for n in range(QUERIES)]
RUN = [run(f"q{n}", f"doc_{n}", f"doc_{n + 1}", f"doc_{n + 2}") for n in range(QUERIES)]
CONFIG = "k: 3\nfail_on:\n  recall_drop_gt: 0.1\nminimums:\n  recall_at_k: 0.5\n"
Setup = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract that holds, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), GOLDEN)
    write_jsonl(Path("current_run.jsonl"), RUN)
    Path("ragcontract.yml").write_text(CONFIG)
    assert rag_contract("baseline").code == 0


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


def chunked(row: Row, form: str) -> Row:
    """Return a run row with its ids in another form, such as ``{}#3``."""
    return row | {"results": [{"doc_id": form.format(result["doc_id"])} for result in row["results"]]}


NEVER = "5 of 5 relevant ids never occur in the run; 5 do"
CHUNKS = "are these chunk ids? A result has the document's id as doc_id and the chunk's as chunk_id"
SAME = "write ids the same way in the contract and in the run"
# What the run's ids are instead of those of the contract, and what is said of it.
IDS = {
    "chunk ids": ("{}#3", f"{NEVER} without the suffix #n of the run's ids (doc_0#3 for doc_0): {CHUNKS}"),
    "chunk ids with a colon": ("{}:3", f"{NEVER} without the suffix :n of the run's ids (doc_0:3 for doc_0): {CHUNKS}"),
    "numbered chunks": (
        "{}_chunk_12",
        f"{NEVER} without the suffix _chunk_n of the run's ids (doc_0_chunk_12 for doc_0): {CHUNKS}",
    ),
    "an extension": ("{}.md", f"{NEVER} without the extension .md of the run's ids (doc_0.md for doc_0): {SAME}"),
    "paths": ("kb/{}.md", f"{NEVER} without the folder and extension of the run's ids (kb/doc_0.md for doc_0): {SAME}"),
    "trailing blanks": ("{} ", f"{NEVER} without the blanks of the run's ids (doc_0␣ for doc_0): {SAME}"),
    "other ids": (
        "a{}",
        (
            "5 of 5 relevant ids never occur in the run, which has adoc_0, adoc_1, adoc_2: "
            "does it name documents by other ids than the contract?"
        ),
    ),
}


def said_once(sentence: str, ended: Ended) -> None:
    """Assert that a sentence is once in each output: terminal, JSON warnings, Markdown, HTML."""
    assert ended.out.count(sentence) + ended.err.count(sentence) == 1
    assert [sentence] == [one for one in json.loads(Path("report.json").read_text())["warnings"] if one == sentence]
    start, end = sentence.partition(";")[0].partition(",")[0], sentence.rpartition(": ")[2].partition("?")[0]
    for name in ("report.md", "report.html"):
        page = Path(name).read_text().replace("\\_", "_").replace("&#39;", "'")
        assert (page.count(start), page.count(end)) == (1, 1), name


@pytest.mark.parametrize(("form", "expected"), IDS.values(), ids=IDS.keys())
def test_ids_in_another_form_are_said_once_in_every_output(form: str, expected: str) -> None:
    write_jsonl(Path("current_run.jsonl"), [chunked(row, form) for row in RUN])
    ended = rag_contract("check", "--report-html", "report.html")
    assert ended.code == 1
    said_once(expected, ended)


def test_ids_in_other_case_are_said_once() -> None:
    write_jsonl(Path("current_run.jsonl"), [json.loads(json.dumps(row).replace("doc_", "DOC_")) for row in RUN])
    for row in (rows_now := [json.loads(line) for line in Path("current_run.jsonl").read_text().splitlines()]):
        row["results"] = [{"doc_id": result["DOC_id"]} for result in row["results"]]
    write_jsonl(Path("current_run.jsonl"), rows_now)
    ended = rag_contract("check", "--report-html", "report.html")
    said_once(f"{NEVER} in other case (DOC_0 for doc_0): {SAME}", ended)


def test_chunk_ids_in_the_contract_are_said_once() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"doc_{n}#1") for n in range(QUERIES)])
    ended = rag_contract("check", "--report-html", "report.html")
    said_once(f"{NEVER} without their suffix #n (doc_0 for doc_0#1): {CHUNKS}", ended)


def test_it_is_said_under_the_verdict_of_report_md_and_above_the_table_of_the_terminal() -> None:
    write_jsonl(Path("current_run.jsonl"), [chunked(row, "{}#3") for row in RUN])
    ended = rag_contract("check")
    assert Path("report.md").read_text().split("\n\n")[1].startswith("- 5 of 5 relevant ids never occur in the run")
    lines = ended.out.splitlines()
    assert lines[next(n for n, line in enumerate(lines) if line.startswith("MRR@3")) - 1].startswith("5 of 5 relevant")


def test_a_run_that_lost_documents_is_not_taken_for_a_mistake() -> None:
    others = [run(f"q{n}", f"doc_{n}" if n < 3 else "x", "y", "z") for n in range(QUERIES)]
    write_jsonl(Path("current_run.jsonl"), others)
    ended = rag_contract("check")
    assert (ended.code, json.loads(Path("report.json").read_text())["likely_mistakes"]) == (1, [])
    assert "never occur" not in ended.out + ended.err


def test_one_document_with_a_numbered_sibling_is_not_taken_for_a_chunk() -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q0", "doc_0#2", "y", "z"), *RUN[1:]])
    assert rag_contract("check").code == 1
    assert json.loads(Path("report.json").read_text())["likely_mistakes"] == []


def test_a_document_that_another_query_returns_is_not_missing_from_the_run() -> None:
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{(n + 1) % QUERIES}", "DOC_0", "z") for n in range(5)])
    rag_contract("check")
    assert json.loads(Path("report.json").read_text())["likely_mistakes"] == []


def test_a_run_without_any_result_is_said_to_be_one() -> None:
    write_jsonl(Path("current_run.jsonl"), [{"query_id": f"q{n}", "results": []} for n in range(QUERIES)])
    ended = rag_contract("check", "--report-html", "report.html")
    said_once("No row of the run has any result: did the export go wrong, or is the index empty?", ended)


def test_the_terminal_shows_20_broken_queries_and_says_where_the_others_are() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"doc_{n}") for n in range(500)])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}#1", "x", "y") for n in range(500)])
    Path("baseline.json").unlink()
    Path("ragcontract.yml").write_text("k: 3\n")
    ended = rag_contract("check")
    assert ended.out.count("FAIL q") == 20
    assert "\n\n… and 480 more broken, see report.md\n\n" in ended.out
    assert len(ended.out.splitlines()) < 100
    assert "see other.html" in rag_contract("check", "--report-md", "", "--report-html", "other.html", *NOWHERE).out
    assert "… and 480 more broken\n" in rag_contract("check", "--report-md", "", *NOWHERE).out


NOWHERE = ("--report-json", "", "--junit", "")
DISTANCES = (
    "The scores look like distances: they rise in every row where they differ. "
    "Ranks are the order of the results, as always."
)


def scored(*scores: float) -> list[Row]:
    """Return the run with these scores in every row."""
    return [
        row | {"results": [one | {"score": score} for one, score in zip(row["results"], scores, strict=True)]}
        for row in RUN
    ]


def test_distances_are_said_once_instead_of_a_warning_about_order() -> None:
    write_jsonl(Path("current_run.jsonl"), scored(0.1, 0.2, 0.3))
    ended = rag_contract("check", "--report-html", "report.html")
    assert (ended.code, ended.err, ended.out.count(DISTANCES)) == (0, "", 1)
    report = json.loads(Path("report.json").read_text())
    assert (report["warnings"], report["run_notes"]) == ([], [DISTANCES])
    for name in ("report.md", "report.html"):
        assert Path(name).read_text().count(DISTANCES) == 1


def test_scores_that_rise_in_some_rows_only_are_warned_about() -> None:
    write_jsonl(Path("current_run.jsonl"), [*scored(0.1, 0.2, 0.3)[:4], scored(0.3, 0.2, 0.1)[4]])
    ended = rag_contract("check")
    assert "warning: current_run.jsonl:1: the scores are not in descending order (4 such rows)" in ended.err
    assert DISTANCES not in ended.out


def test_a_run_shorter_than_k_is_said_beside_its_metrics() -> None:
    Path("ragcontract.yml").write_text(CONFIG.replace("k: 3", "k: 10"))
    note = "The run has at most 3 results a query, so Recall@10 is Recall@3; export at least 10, or lower k."
    ended = rag_contract("check", "--report-html", "report.html")
    lines = ended.out.splitlines()
    assert lines[lines.index(note) - 1].startswith("MAP@10")
    for name in ("report.md", "report.html"):
        assert Path(name).read_text().count(note) == 1
    assert note in rag_contract("score").out


def test_a_run_shorter_than_the_baseline_is_said_beside_its_metrics() -> None:
    Path("ragcontract.yml").write_text(CONFIG.replace("k: 3", "k: 1"))
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}") for n in range(QUERIES)])
    note = (
        "The run has at most 1 result a query and the baseline up to 3: "
        "a document that fell below rank 1 reads as missing."
    )
    assert note in rag_contract("check").out.splitlines()


def test_a_run_of_mostly_shorter_rows_than_the_baselines_is_said_beside_its_metrics() -> None:
    rows = [run(f"q{n}", f"doc_{n}", *("bc" if n == 0 else "")) for n in range(QUERIES)]
    write_jsonl(Path("current_run.jsonl"), rows)
    note = (
        "Half of the run's rows have at most 1 result, where the baseline's typically have 3: a document that fell "
        "below the end of its row reads as missing."
    )
    assert note in rag_contract("check").out.splitlines()


def test_a_baseline_shorter_than_k_is_said_beside_the_metrics() -> None:
    Path("ragcontract.yml").write_text(CONFIG.replace("k: 3", "k: 5"))
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}", *"abcd") for n in range(QUERIES)])
    note = (
        "The baseline has at most 3 results a query and the run up to 5: what the run finds below rank 3 counts as a "
        "gain. Recreate the baseline from a longer export."
    )
    assert note in rag_contract("check").out.splitlines()


def test_whoever_decided_on_rank_by_is_not_asked_again() -> None:
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}", f"doc_{n}", "x") for n in range(QUERIES)])
    for choice in ("results", "documents"):
        Path("ragcontract.yml").write_text(f"{CONFIG}rank_by: {choice}\n")
        assert "as chunks do" not in rag_contract("check").out


def test_many_chunks_of_a_document_point_at_rank_by() -> None:
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}", f"doc_{n}", "x") for n in range(QUERIES)])
    note = (
        "33% of the results in the top 3 repeat a document of the same row, as chunks do; "
        "set rank_by in the config: documents gives each document one rank, results each chunk."
    )
    assert note in rag_contract("check").out.splitlines()
    Path("ragcontract.yml").write_text(CONFIG + "rank_by: documents\n")
    assert "repeat a document" not in rag_contract("check").out


def test_lint_says_once_that_ids_are_in_another_form() -> None:
    write_jsonl(Path("current_run.jsonl"), [chunked(row, "{}#3") for row in RUN])
    assert rag_contract("lint").out.splitlines() == [
        (
            "golden.jsonl:1: [never-retrieved] 5 relevant ids never occur in a run; 5 do without the suffix '#n' "
            "of the run's ids ('doc_0#3' for 'doc_0'): write ids the same way in the contract and in the run"
        ),
        "1 finding",
    ]


def test_lint_does_not_guess_a_document_that_differs_in_a_number_or_a_short_part() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "policy_2024"), golden("q2", "policy_eu"), golden("q3", "refnd")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "policy_2023", "policy_us", "refund")])
    first, second, third, _ = rag_contract("lint").out.splitlines()
    assert first.endswith("is the id right, and the document in the index?")
    assert second.endswith("is the id right, and the document in the index?")
    assert third.endswith("did you mean 'refund'?")


def test_lint_folds_findings_that_repeat() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"lost_{n}") for n in range(500)])
    lines = rag_contract("lint").out.splitlines()
    assert len(lines) == 12
    assert lines[-2:] == ["… and 490 more [never-retrieved]", "500 findings"]


def test_ids_in_another_form_are_one_annotation_and_at_the_top_of_the_comment(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path / "action", github)
    write_jsonl(runner.workspace / "golden.jsonl", GOLDEN)
    write_jsonl(runner.workspace / "current_run.jsonl", [chunked(row, "{}#3") for row in RUN])
    said = [one.message for one in runner.run().annotations if "never occur" in one.message]
    assert said == [f"{NEVER} without the suffix #n of the run's ids (doc_0#3 for doc_0): {CHUNKS}"]
    assert "\n\n- 5 of 5 relevant ids never occur in the run; 5 do without the suffix `#n`" in github.bodies()[0]


def test_a_pull_request_from_behind_a_link_shows_no_ids(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path / "action", github)
    write_jsonl(runner.workspace / "golden.jsonl", GOLDEN)
    write_jsonl(runner.workspace / "real.jsonl", [chunked(row, "{}#secret") for row in RUN])
    (runner.workspace / "run.jsonl").symlink_to("real.jsonl")
    result = runner.run({"run": "run.jsonl"})
    assert result.exit_code == 1
    assert "secret" not in result.log
