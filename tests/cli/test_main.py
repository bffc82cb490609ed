import json
from pathlib import Path

import pytest

from ragcontract import __version__
from tests.builders import as_jsonl, golden, good_workspace, run, write_jsonl
from tests.process import files_in, rag_contract, shell, spawn


def test_a_passing_check_writes_its_reports_and_exits_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    ended = rag_contract("check", "--report-md", "out/a.md", "--report-json", "out/b.json", "--junit", "out/c.xml")
    assert (ended.code, ended.err) == (0, "")
    assert "PASS" in ended.out
    assert sorted(files_in(tmp_path / "out")) == ["a.md", "b.json", "c.xml"]
    assert json.loads(Path("out/b.json").read_bytes())["verdict"] == "pass"


def test_a_broken_contract_exits_1_with_its_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1", "doc1"), run("q2", "x")))
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (1, "")
    assert json.loads(Path("report.json").read_bytes())["verdict"] == "fail"
    assert Path("report.md").read_text().startswith("### ❌")
    assert b"<failure" in Path("junit.xml").read_bytes()


def test_a_contract_with_a_name_has_it_in_every_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check", "--name", "docs-en", "--report-html", "report.html").code == 0
    assert Path("report.md").read_text().startswith("### ✅ docs-en — 2 queries")
    assert "<h1>Retrieval contract docs-en holds</h1>" in Path("report.html").read_text()
    assert 'name="rag-contract docs-en queries"' in Path("junit.xml").read_text()
    assert json.loads(Path("report.json").read_bytes())["source"]["contract"] == "docs-en"


def test_the_option_k_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert "MRR@2" in rag_contract("check", "--k", "2").out
    assert "MRR@2" in rag_contract("score", "--k", "2").out
    assert "MRR@2" in rag_contract("diff", "--k", "2").out
    assert rag_contract("baseline", "--k", "2", "--force").code == 0
    assert json.loads(Path("baseline.json").read_bytes())["k"] == [2]


@pytest.mark.parametrize("k", ["0", "-1", "1.5", "five", "", "99999999999"])
def test_a_k_that_is_none_is_refused(k: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    before = files_in(tmp_path)
    for command in ("check", "score", "baseline", "diff", "suggest"):
        ended = rag_contract(command, "--k", k)
        assert (ended.code, ended.out) == (2, "")
        assert "Invalid value for '--k'" in ended.err
    assert files_in(tmp_path) == before


SHARDS = {
    "an unquoted glob": ("--golden", "g1.jsonl", "g2.jsonl", "--run", "r1.jsonl", "r2.jsonl"),
    "a quoted glob": ("--golden", "g?.jsonl", "--run", "r*.jsonl"),
    "repeated options": ("--golden", "g1.jsonl", "--golden", "g2.jsonl", "--run", "r1.jsonl", "--run", "r2.jsonl"),
    "an equals sign": ("--golden=g1.jsonl", "g2.jsonl", "--run=r1.jsonl", "r2.jsonl"),
    "options behind": ("--run", "r1.jsonl", "r2.jsonl", "--golden", "g1.jsonl", "g2.jsonl", "--k", "3"),
}


@pytest.mark.parametrize("options", SHARDS.values(), ids=SHARDS.keys())
def test_several_files_are_one_input(options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for n in "12":
        Path(f"g{n}.jsonl").write_text(as_jsonl(golden(f"q{n}")))
        Path(f"r{n}.jsonl").write_text(as_jsonl(run(f"q{n}")))
    assert rag_contract("check", *options).code == 0
    files = json.loads(Path("report.json").read_bytes())["inputs"]
    assert [file["path"] for file in files["golden"]["files"]] == ["g1.jsonl", "g2.jsonl"]
    assert [file["path"] for file in files["run"]["files"]] == ["r1.jsonl", "r2.jsonl"]


def test_an_option_that_takes_one_file_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    ended = rag_contract("check", "--config", "ragcontract.yml", "other.yml")
    assert ended.code == 2
    assert "unexpected extra argument (other.yml)" in ended.err


def test_validate_says_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    before = files_in(tmp_path)
    with Path("golden.jsonl").open("a") as file:
        file.write(as_jsonl(golden("q3") | {"relevant_doc_ids": []}))
    with Path("current_run.jsonl").open("a") as file:
        file.write(as_jsonl(run("q3")))
    assert rag_contract("validate") == (
        0,
        "valid: 3 golden queries (2 with relevant documents), 3 run rows, a baseline of 2 queries, a config\n",
        "",
    )
    assert files_in(tmp_path).keys() == before.keys()


def test_validate_leaves_the_verdict_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1", "x"), run("q2", "x")))
    assert (rag_contract("validate").code, rag_contract("check").code) == (0, 1)


def test_validate_refuses_what_check_could_not_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("ragcontract.yml").write_text("tags: {ghost: {minimums: {mrr_at_k: 1}, fail_on: {mrr_drop_gt: 0}}}")
    assert rag_contract("validate") == rag_contract("check")
    assert rag_contract("validate").code == 2
    Path("baseline.json").unlink()
    without = rag_contract("validate")
    assert (without.code, without.out) == (2, "")
    assert without.err.count("no golden query has the tag 'ghost'") == 2
    assert "baseline" not in without.err


def test_validate_without_a_baseline_notes_the_limits_that_need_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.json").unlink()
    note = "note: fail_on.mrr_drop_gt{} with `rag-contract baseline` before `check`\n"
    for config, noted in {
        "minimums: {mrr_at_k: 0.5}\n": "",
        "fail_on: {mrr_drop_gt: 0.1}\n": note.format(" needs a baseline: store one"),
        "fail_on: {mrr_drop_gt: 0.1, recall_drop_gt: '5%'}\nminimums: {mrr_at_k: 0.5}\n": note.format(
            " and fail_on.recall_drop_gt need a baseline: store one"
        ),
    }.items():
        Path("ragcontract.yml").write_text(config)
        said = "valid: 2 golden queries (2 with relevant documents), 2 run rows, no baseline, a config\n"
        assert rag_contract("validate") == (0, said + noted, "")
        assert rag_contract("check").code == (2 if noted else 0), "a check needs the baseline"
    assert rag_contract("baseline").code == 0
    assert "note" not in rag_contract("validate").out


def test_validate_refuses_a_baseline_that_is_named_and_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("validate", "--baseline", "none.json").code == 2


def test_score_prints_metrics_by_tag_and_needs_no_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").write_text(as_jsonl(golden("q1", "doc1", tags=["##[x]"]), golden("q2", "other")))
    Path("baseline.json").write_text("{")
    table = rag_contract("score")
    assert (table.code, table.err) == (0, "")
    assert table.out.splitlines()[1].split()[:3] == ["all", "2", "0.5000"]
    as_json = rag_contract("score", "--format", "json")
    assert "##[" not in as_json.out
    score = json.loads(as_json.out)
    assert (score["k"], score["queries"], score["metrics"]["mrr_at_5"]) == ([5], 2, 0.5)
    assert score["tags"]["##[x]"]["queries"] == 1


def test_a_baseline_is_written_and_good_for_the_next_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    ended = rag_contract("baseline", "--out", "new/base.json")
    assert ended == (0, "baseline of 2 queries in new/base.json\n", "")
    assert rag_contract("check", "--baseline", "new/base.json").code == 0


def test_diff_prints_what_changed_and_judges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1", "x", "doc1"), run("q2", "doc2")))
    before = files_in(tmp_path)
    ended = rag_contract("diff")
    assert ended.code == 0
    assert "doc1: 1 -> 2" in ended.out
    assert files_in(tmp_path) == before


def test_diff_without_a_baseline_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.json").unlink()
    ended = rag_contract("diff")
    assert (ended.code, ended.out) == (2, "")
    assert "give --baseline, or have baseline.json here" in ended.err


def test_warnings_go_to_standard_error_and_change_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    with Path("current_run.jsonl").open("a") as file:
        file.write(as_jsonl(run("more")))
    for command in (["check"], ["validate"], ["score"], ["diff"], ["baseline", "--force"]):
        ended = rag_contract(*command)
        assert (ended.code, ended.err) == (
            0,
            "warning: current_run.jsonl: 1 row for no golden query, left out: 'more'\n",
        ), command


@pytest.mark.parametrize(
    "command", ["check", "validate", "score", "compare", "baseline", "diff", "schema", "init", "lint"]
)
def test_every_command_has_help(command: str) -> None:
    for option in ("--help", "-h"):
        ended = rag_contract(command, option)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith(f"Usage: rag-contract {command} ")
    assert f"\n  {command} " in rag_contract("--help").out


def test_the_list_of_commands_says_whole_sentences() -> None:
    assert "..." not in rag_contract("--help").out.partition("Commands:")[2]


def test_the_version_is_printed() -> None:
    assert rag_contract("--version") == (0, f"rag-contract, version {__version__}\n", "")


@pytest.mark.parametrize(
    "argv", [(), ("chekc",), ("check", "--golde", "x"), ("schema",), ("schema", "goldn"), ("check", "x")]
)
def test_wrong_usage_exits_2_and_says_how_it_is_used(argv: tuple[str, ...]) -> None:
    ended = rag_contract(*argv)
    assert (ended.code, ended.out) == (2, "")
    assert "Usage: rag-contract" in ended.err


def test_wrong_usage_cannot_act_on_a_terminal_or_a_runner(tmp_path: Path) -> None:
    ended = shell("rag-contract check $'--x\\e[31m\\n::error::y ##[error]'", cwd=tmp_path)
    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert "##[" not in ended.err
    assert not any(line.strip().startswith("::") for line in ended.err.splitlines())


def test_verbose_logs_to_standard_error_and_changes_nothing_that_is_printed(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    quiet = spawn("check", cwd=tmp_path)
    verbose = spawn("--verbose", "check", cwd=tmp_path)
    assert (quiet.code, quiet.err) == (0, "")
    assert (verbose.code, verbose.out) == (0, quiet.out)
    assert verbose.err.splitlines() == [
        "ragcontract.pipeline: loaded: 2 golden queries, 1 gates",
        "ragcontract.pipeline: evaluated: 2 queries of the run",
        "ragcontract.pipeline: decided: pass, 0 findings",
    ]


def test_verbose_stands_before_the_command() -> None:
    ended = rag_contract("check", "--verbose")
    assert ended.code == 2
    assert "No such option" in ended.err
    assert "--verbose" in rag_contract("--help").out


def test_verbose_logs_nothing_where_the_shell_closed_standard_error(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    ended = shell("rag-contract --verbose check 2>&-", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, shell("rag-contract check", cwd=tmp_path).out)


NEED_CONTRACT = (
    "check",
    "check --run exported.jsonl --baseline good.jsonl",
    "baseline",
    "baseline --update",
    "score",
    "diff",
    "compare a.jsonl b.jsonl",
    "suggest",
    "unjudged",
    "validate",
    "validate --without-run",
    "lint",
    "label",
    "label --ticked candidates.txt",
    "record app.py:answer",
    "claims",
    "judge",
    "judge label",
    "waive q1 --reason slow --owner ana --until 2030-01-01",
)
START = "there is no contract in this folder: start with `rag-contract init`\n"


@pytest.mark.parametrize("command", NEED_CONTRACT)
def test_in_an_empty_folder_one_line_says_how_to_start(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("def answer(question):\n    return []\n")
    assert rag_contract(*command.split()) == (2, "", f"error: {START}")


MISUSED_IN_EMPTY_FOLDER = {
    "record": "Missing argument 'TARGET'.",
    "waive q1": "Missing option '--reason'.",
    "compare": "Missing argument 'RUN…'.",
    "judge calibrate --model m": "labels.jsonl: no such file",
    "convert": "there is nothing to convert from rag-contract to rag-contract: give --from or --to",
}


@pytest.mark.parametrize(("command", "error"), MISUSED_IN_EMPTY_FOLDER.items(), ids=MISUSED_IN_EMPTY_FOLDER.keys())
def test_in_an_empty_folder_what_else_is_wrong_with_a_command_ends_with_how_to_start(
    command: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = rag_contract(*command.split())
    assert (ended.code, ended.out) == (2, "")
    assert f"rror: {error}\n" in ended.err
    assert ended.err.endswith(f"rror: {START}")
    assert ended.err.count("rag-contract init") == 1


def test_a_file_that_is_nearly_called_like_golden_queries_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("goldn.jsonl").write_text("")
    assert "golden.jsonl: no such file; did you mean goldn.jsonl?" in rag_contract("check").err


def test_where_a_contract_is_gone_the_report_of_an_earlier_check_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report.md").write_text("all green")
    rag_contract("check")
    assert "there is no contract in this folder" in Path("report.md").read_text()


def test_a_run_with_its_questions_is_enough_to_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("current_run.jsonl"), [run("q1", "a", query="How?")])
    assert rag_contract("check") == (2, "", f"error: {START}")
    assert spawn("label", cwd=tmp_path, stdin="y\n").code == 0
    assert rag_contract("check").code == 0


ELSEWHERE = {
    "a contract that is named": (".", "check --golden eval/golden.jsonl"),
    "a configuration that is named": (".", "check --config=eval/ragcontract.yml"),
    "what a contract is made from": (".", "convert --from csv --csv q.csv --golden-out golden.jsonl"),
    "a contract further up in the repository": ("src", "check"),
    "the command that starts": (".", "init --from-run r.jsonl"),
    "a command that needs no contract": (".", "schema nonsense"),
}


@pytest.mark.parametrize(("folder", "command"), ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_where_a_contract_is_elsewhere_or_not_needed_no_start_is_proposed(
    folder: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folder != ".":
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / "golden.jsonl").write_text(as_jsonl(golden("q1")))
    (tmp_path / folder).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / folder)
    ended = rag_contract(*command.split())
    assert ended.code == 2
    assert START not in ended.err


@pytest.mark.parametrize("name", ["golden.jsonl", "ragcontract.yml", "ragcontract.yaml", "baseline.json"])
def test_a_folder_with_any_file_of_a_contract_has_started(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("")
    ended = rag_contract("check")
    assert ended.code == 2
    assert START not in ended.err


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("rag-contract che", ["check"]),
        ("rag-contract check --gol", ["--golden"]),
        ("rag-contract suggest --run a.jsonl --wr", ["--write"]),
        ("rag-contract render --format ht", ["html"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(typed: str, words: list[str], tmp_path: Path) -> None:
    environ = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_RAG_CONTRACT_COMPLETE": "bash_complete"}
    ended = spawn(cwd=tmp_path, environ=environ)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.split() == [f"plain,{word}" for word in words]


def test_the_script_for_completion_is_printed(tmp_path: Path) -> None:
    ended = spawn(cwd=tmp_path, environ={"_RAG_CONTRACT_COMPLETE": "zsh_source"})
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("#compdef rag-contract")
