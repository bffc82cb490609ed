import gzip
from pathlib import Path

import pytest

from tests.builders import as_jsonl, golden, good_workspace, run, write_jsonl
from tests.process import files_in, rag_contract

NOTHING = (0, "no findings\n", "")


def test_a_good_contract_has_no_findings_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    before = files_in(tmp_path)
    assert rag_contract("lint") == NOTHING
    assert rag_contract("lint", "--strict") == NOTHING
    assert files_in(tmp_path) == before


def test_findings_name_their_lines_and_fail_only_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    rows = [golden("q1", "doc1"), golden("q2", "policy_refnd"), golden("q3", "doc1", query="what about Q1", tags=["t"])]
    write_jsonl(Path("golden.jsonl"), rows)
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", "policy_refund")])
    ended = rag_contract("lint")
    assert (ended.code, ended.err) == (0, "")
    first, second, third, last = ended.out.splitlines()
    never = "golden.jsonl:2: [never-retrieved] 'q2' wants policy_refnd, which no run returns for any question"
    assert first == f"{never}; did you mean 'policy_refund'?"
    assert second.startswith("golden.jsonl:3: [duplicate-question] 'q3' asks the same as 'q1' (golden.jsonl:1)")
    assert third.startswith("golden.jsonl:3: [small-tag] ")
    assert last == "2 findings, 1 note"
    assert rag_contract("lint", "--strict") == (1, ended.out, "")


def test_a_json_schema_without_a_type_accepts_what_is_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    schema = {"properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", rules=[{"type": "json_schema", "schema": schema}])])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", response='"I cannot"')])
    assert rag_contract("check").code == 0
    ended = rag_contract("lint", "--strict")
    assert ended.code == 1
    assert "golden.jsonl:1: [schema-without-type] 'q1' has a json_schema that accepts null, texts" in ended.out


def test_notes_alone_do_not_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", tags=["t"])])
    ended = rag_contract("lint", "--strict")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "1 note")


def test_no_run_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").unlink()
    Path("baseline.json").write_text("{")
    ended = rag_contract("lint")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "no findings (without a run: use --run to compare ids and ranks with the results)\n"


def test_rows_that_repeat_are_read_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q1", "doc2")])
    assert rag_contract("lint") == NOTHING


def test_each_file_is_a_run_and_what_any_of_them_returns_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", must_rank_at_most=2), golden("q2", "doc2")])
    write_jsonl(Path("r1.jsonl"), [run("q1", "doc1"), run("q2", "x")])
    Path("r2.jsonl").write_bytes(gzip.compress(as_jsonl(run("q1", "x", "y"), run("q2", "doc2")).encode()))
    assert rag_contract("lint", "--run", "r1.jsonl", "r2.jsonl") == NOTHING
    assert rag_contract("lint", "--run", "r?.jsonl") == NOTHING
    alone = rag_contract("lint", "--run", "r1.jsonl")
    assert [line.split()[1] for line in alone.out.splitlines()[:2]] == ["[rank-beyond-depth]", "[never-retrieved]"]


def test_the_config_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", "doc2")])
    assert rag_contract("lint") == NOTHING
    Path("ragcontract.yml").write_text("k: 1\n")
    assert "[more-than-k]" in rag_contract("lint").out
    Path("other.yml").write_text("k: 2\n")
    assert rag_contract("lint", "--config", "other.yml") == NOTHING


def test_what_readers_warn_of_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    rows = [golden("q1", "doc1", forbidden_doc_ids=["doc1"]), golden("q2", "TODO", weigth=2)]
    write_jsonl(Path("golden.jsonl"), rows)
    ended = rag_contract("lint")
    assert ended.err == "warning: golden.jsonl:2: unknown field 'weigth' is not read; did you mean 'weight'?\n"
    assert [line.split()[1] for line in ended.out.splitlines()[:2]] == [
        "[forbidden-and-relevant]",
        "[todo-placeholder]",
    ]
    check = rag_contract("check", "--config", "none.yml")
    assert "golden.jsonl:1: 'q1' wants and forbids doc1, so it can never pass; take one out" in check.err
    assert "golden.jsonl:2: relevant_doc_ids still holds the placeholder 'TODO'; run `rag-contract label`" in check.err


def test_a_placeholder_is_named_with_the_field_that_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text('{"id": "q1", "query": "How?", "relevance": {"TODO": 1, "doc9": 0}}\n')
    assert "golden.jsonl:1: relevance still holds the placeholder 'TODO'; run" in rag_contract("check").err


def test_input_that_cannot_be_read_exits_2_with_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(as_jsonl(golden("q1", weight=0)))
    Path("current_run.jsonl").write_text("{}\n")
    Path("ragcontract.yml").write_text("K: 1\n")
    ended = rag_contract("lint")
    assert (ended.code, ended.out) == (2, "")
    for location in ("golden.jsonl:1: weight", "current_run.jsonl:1: query_id", "ragcontract.yml:1: K"):
        assert f"error: {location}" in ended.err


@pytest.mark.parametrize("option", ["--golden", "--run", "--config"])
def test_a_path_that_is_given_must_be_there(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    for path, message in (("none.jsonl", "none.jsonl: no such file"), ("", f"{option}: is given an empty path")):
        ended = rag_contract("lint", option, path)
        assert (ended.code, ended.out) == (2, "")
        assert message in ended.err


def test_findings_cannot_act_on_a_terminal_or_a_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = "\x1b[31m\n::error::x ##[error]"
    write_jsonl(Path("golden.jsonl"), [golden("q", hostile, tags=[hostile])])
    write_jsonl(Path("current_run.jsonl"), [run("q")])
    ended = rag_contract("lint")
    assert len(ended.out.splitlines()) == 3
    assert "\x1b" not in ended.out
    assert "##[" not in ended.out
