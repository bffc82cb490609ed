"""``rag-contract compare``: several runs over one golden set, side by side."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.process import Ended, rag_contract
from tests.report.markdown.test_gfm import NASTY
from tests.report.page import Page

# Surrogates that stand alone are no JSON, and a blank id is refused.
WRITTEN = [value for value in NASTY if value.strip() and value == value.encode(errors="replace").decode()]
IDS = [f"q{number}" for number in range(8)]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs: one finds all, one puts two documents second, one loses six."""
    monkeypatch.chdir(tmp_path)
    rows = [golden(name, "A", tags=["even" if number % 2 == 0 else "odd"]) for number, name in enumerate(IDS)]
    write_jsonl(tmp_path / "golden.jsonl", rows)
    write_run("first", each(IDS, "A"))
    write_run("second", each(IDS, "A") | each(IDS[:2], "x", "A"))
    write_run("third", each(IDS, "x") | each(IDS[6:], "A"))
    return tmp_path


def each(query_ids: list[str], *doc_ids: str) -> dict[str, list[str]]:
    """Return a run that retrieved the same documents for each query."""
    return {query_id: list(doc_ids) for query_id in query_ids}


def write_run(name: str, docs: dict[str, list[str]]) -> None:
    write_jsonl(Path(f"{name}.jsonl"), [run(query_id, *doc_ids) for query_id, doc_ids in docs.items()])


def compare(*argv: str) -> Ended:
    ended = rag_contract("compare", *argv)
    assert ended.code == 0, ended.err
    return ended


def compared(*argv: str) -> Any:
    return json.loads(compare(*argv, "--format", "json").out)


ALL = ("first.jsonl", "second.jsonl", "third.jsonl")


def test_every_run_has_its_mean_with_an_interval_and_the_change_since_the_first() -> None:
    found = compared(*ALL)
    first, second, third = (one["metrics"]["mrr_at_5"] for one in found["runs"])
    assert (first["mean"], second["mean"], third["mean"]) == (1.0, 0.875, 0.25)
    assert first["against_first"] is None
    assert first["interval"][0] < first["interval"][1] == 1.0
    assert third["interval"][0] < 0.25 < third["interval"][1]
    change = second["against_first"]
    assert [change[key] for key in ("delta", "wins", "ties", "losses")] == [-0.125, 0, 6, 2]
    assert change["interval"][0] < -0.125 < 0 < change["interval"][1]
    assert third["against_first"]["delta"] == -0.75
    low, high = third["against_first"]["interval"]
    assert low < -0.75 < high < 0
    assert found["runs"][1]["metrics"]["recall_at_5"]["against_first"]["ties"] == 8


def test_the_numbers_are_the_same_each_time() -> None:
    first, second = (compared(*ALL) | {"created_at": ""} for _ in range(2))
    assert first == second


def test_the_queries_that_the_runs_disagree_about_are_listed_with_the_largest_difference_first() -> None:
    found = compared(*ALL)["disagreements"]
    assert [one["id"] for one in found] == ["q0", "q1", "q2", "q3", "q4", "q5"]
    assert found[0]["ranks"] == [{"A": 1}, {"A": 2}, {"A": None}]
    assert found[0]["metrics"]["mrr_at_5"] == [1.0, 0.5, 0.0]
    write_run("fourth", each(IDS, "A") | {"q1": ["x", "A"], "q7": ["x"], "q3": ["x", "y", "A"]})
    two = compared("first.jsonl", "fourth.jsonl")["disagreements"]
    assert [one["id"] for one in two] == ["q7", "q3", "q1"]


def test_the_terminal_shows_all_of_it() -> None:
    text = compare(*ALL).out
    assert text.startswith("3 runs over 8 queries, k = 5; changes are since first\n\n")
    (second,) = [line.split("  ") for line in text.splitlines() if line.startswith("  ") and " second  " in line][:1]
    assert [cell.strip() for cell in second if cell] == [
        "second",
        "0.8750",
        "0.5944 to 1.0000",
        "-0.1250",
        "-0.3032 to +0.0725",
        "0 / 6 / 2",
    ]
    assert "\n6 queries that the runs disagree about, largest difference first; the ranks of their" in text
    assert "\n  q0  1      2       –      What about q0?\n" in text
    assert "95 % intervals. The mean of other queries of the same kind" in text


def test_runs_that_agree_are_said_to() -> None:
    text = compare("first.jsonl", "first.jsonl").out
    assert text.endswith("\n\nThe runs agree about every query\n")
    assert text.count("nothing changed  0 / 8 / 0") == 6


def test_markdown_has_a_table_for_each_metric() -> None:
    page = Page(compare(*ALL, "--format", "md").out)
    assert [table[0][0] for table in page.tables[:2]] == ["MRR@5", "Recall@5"]
    assert page.tables[0][2][0] == "second"
    assert page.tables[0][2][2] == "-0.1250-0.3032 to +0.07250 / 6 / 2"
    assert page.tables[-1][:2] == [["Query", "first", "second", "third"], ["q0What about q0?", "1", "2", "–"]]


def test_what_explains_the_metrics_of_a_run_is_said_once_in_every_format() -> None:
    """Chunk ids for document ids in one run, fewer results than k in both."""
    write_run("chunks", each(IDS, "A#1", "B#2"))
    runs = ("first.jsonl", "chunks.jsonl")
    chunk_ids = (
        "1 of 1 relevant id never occurs in the run; 1 would match without the suffix #n of the run's ids (A#1 for A)"
    )
    short = "The run has at most 2 results a query, so Recall@5 is Recall@2; export at least 5, or lower k."
    compare(*runs, "--format", "html", "--out", "page.html")
    for shown in (compare(*runs).out, unescape(Path("page.html").read_text())):
        assert [shown.count(f"chunks: {chunk_ids}"), shown.count(f"chunks: {short}")] == [1, 1]
    items = Page(compare(*runs, "--format", "md").out).items
    assert [item.replace("\u200b", "").partition(":")[0] for item in items] == ["first", "chunks", "chunks"]
    first, chunks = compared(*runs)["runs"]
    assert [len(first["notes"]), len(chunks["notes"])] == [1, 2]


def test_json_fits_its_schema() -> None:
    schema = json.loads(rag_contract("schema", "comparison").out)
    jsonschema.Draft202012Validator(schema).validate(compared(*ALL))


def test_html_is_one_file_that_loads_nothing() -> None:
    assert "runs over 8 queries" in compare(*ALL, "--format", "html", "--out", "page.html").out
    page = Path("page.html").read_text()
    assert "<h1>3 runs over 8 queries, k = 5</h1>" in page
    assert not [one for one in ("<script", "http://", "https://", "src=", "url(") if one in page]


def test_html_needs_a_file() -> None:
    ended = rag_contract("compare", *ALL, "--format", "html")
    assert (ended.code, ended.out) == (2, "")
    assert "--format html needs --out FILE" in ended.err


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_out_writes_the_file_and_the_terminal_still_shows_the_comparison(form: str) -> None:
    assert compare(*ALL, "--format", form, "--out", "out").out.startswith("3 runs over 8 queries")
    assert Path("out").read_text().strip()


def test_the_output_is_never_one_of_the_runs() -> None:
    ended = rag_contract("compare", *ALL, "--out", "third.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert "third.jsonl: is an input" in ended.err


def test_a_stored_baseline_is_compared_like_a_run(workspace: Path) -> None:
    write_baseline(workspace / "baseline.json", *(stored_query(name, "A") for name in IDS))
    found = compared("baseline.json", "second.jsonl")
    assert [one["label"] for one in found["runs"]] == ["baseline", "second"]
    assert found["runs"][0]["metrics"]["mrr_at_5"]["mean"] == 1.0


def test_a_stored_baseline_with_another_question_cannot_be_compared(workspace: Path) -> None:
    queries = [stored_query(name, "A", query="What else?" if name == "q3" else f"What about {name}?") for name in IDS]
    write_baseline(workspace / "baseline.json", *queries)
    ended = rag_contract("compare", "baseline.json", "second.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert "baseline.json: has another question for 'q3'; recreate it" in ended.err


def test_missing_queries_are_problems_of_all_runs_at_once_as_in_score() -> None:
    write_run("second", each(IDS[1:], "A"))
    write_run("third", each(IDS[:-1], "A"))
    ended = rag_contract("compare", *ALL)
    assert (ended.code, ended.out) == (2, "")
    assert "second.jsonl: has no row for golden query 'q0'" in ended.err
    assert "third.jsonl: has no row for golden query 'q7'" in ended.err


def test_missing_queries_score_zero_where_the_config_says_so(workspace: Path) -> None:
    (workspace / "ragcontract.yml").write_text("missing_queries: zero\n")
    write_run("second", each(IDS[1:], "A"))
    found = compared("first.jsonl", "second.jsonl")
    assert found["runs"][1]["missing"] == ["q0"]
    assert found["runs"][1]["metrics"]["mrr_at_5"]["mean"] == 0.875
    assert any("second.jsonl: no row for 1 golden query, scored 0" in warning for warning in found["warnings"])


def test_a_tag_compares_only_its_queries() -> None:
    found = compared(*ALL, "--tag", "odd")
    assert (found["tag"], found["queries"]) == ("odd", 4)
    assert found["runs"][2]["metrics"]["mrr_at_5"]["against_first"]["losses"] == 3
    assert [one["id"] for one in found["disagreements"]] == ["q1", "q3", "q5"]
    assert ", tag odd; changes" in compare(*ALL, "--tag", "odd").out


def test_with_a_tag_runs_need_only_the_queries_that_have_it_as_in_a_check() -> None:
    for name in ("first", "second"):
        write_run(name, each(IDS[1::2], "A"))
    assert rag_contract("check", "--run", "first.jsonl", "--tag", "odd").code == 0
    assert rag_contract("compare", *ALL[:2]).code == 2
    assert [one["missing"] for one in compared(*ALL[:2], "--tag", "odd")["runs"]] == [[], []]


def test_a_tag_that_no_query_has_is_refused_with_the_nearest_one() -> None:
    ended = rag_contract("compare", *ALL, "--tag", "evne")
    assert ended.code == 2
    assert "tag 'evne': no golden query has it; did you mean 'even'?" in ended.err


def test_the_configs_k_and_an_option_decide_how_many_results_count(workspace: Path) -> None:
    (workspace / "ragcontract.yml").write_text("k: [1, 3]\nminimums: {mrr_at_k: 0.9}\n")
    assert compared(*ALL)["k"] == [1, 3]
    assert next(iter(compared(*ALL, "--k", "2")["metrics"])) == "mrr_at_2"


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (("a/run.jsonl", "b/run.jsonl"), ["a/run.jsonl", "b/run.jsonl"]),
        (("first.jsonl", "a/first.ndjson"), ["first.jsonl", "first.ndjson"]),
        (("first.jsonl", "first.jsonl"), ["first.jsonl (1)", "first.jsonl (2)"]),
    ],
)
def test_runs_with_the_same_name_get_distinct_labels(paths: tuple[str, ...], labels: list[str]) -> None:
    for path in paths:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(Path("first.jsonl").read_bytes())
    assert [one["label"] for one in compared(*paths)["runs"]] == labels


def test_runs_may_follow_an_option_with_files() -> None:
    assert len(compared("--golden", "golden.jsonl", *ALL)["runs"]) == 3


def test_a_glob_in_quotes_is_one_run(workspace: Path) -> None:
    write_run("shard-1", each(IDS[:4], "A"))
    write_run("shard-2", each(IDS[4:], "A"))
    assert len(compared("first.jsonl", "shard-*.jsonl")["runs"][1]["files"]) == 2
    assert workspace.exists()


def test_one_run_is_refused() -> None:
    ended = rag_contract("compare", "first.jsonl")
    assert ended.code == 2
    assert "name from 2 to 20 runs, found 1; `rag-contract score` is for one" in ended.err


def test_several_rows_a_query_are_averaged_on_request() -> None:
    write_jsonl(Path("second.jsonl"), [run(name, *docs) for name in IDS for docs in (["A"], ["x", "A"])])
    assert rag_contract("compare", *ALL).code == 2
    assert compared(*ALL, "--repeats")["runs"][1]["metrics"]["mrr_at_5"]["mean"] == 0.75


@pytest.mark.parametrize("value", WRITTEN)
def test_nothing_from_a_file_changes_what_the_outputs_are(workspace: Path, value: str) -> None:
    def outputs(name: str) -> tuple[list[str], str, str]:
        write_jsonl(workspace / "golden.jsonl", [golden(name, "A", query=name, tags=[name[:200]])])
        write_run("first", {name: ["A"]})
        write_run("second", {name: ["x"]})
        tag = f"--tag={name[:200]}"
        page = Page(compare(*ALL[:2], tag, "--format", "md").out)
        assert page.links() == []
        compare(*ALL[:2], tag, "--format", "html", "--out", "page.html")
        return page.tags, Path("page.html").read_text(), compare(*ALL[:2], tag).out

    tags, html, text = outputs(value)
    plain, plain_html, _ = outputs("plain")
    assert tags == plain
    assert html.count("<") == plain_html.count("<")
    assert "\x1b" not in html + text
