import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ragcontract import RunWriter
from ragcontract.cli.commands.init import WORKFLOW
from ragcontract.contract.config import config_record
from ragcontract.contract.config_file import ConfigFile, read_config
from ragcontract.contract.defaults import CONFIG_SCHEMA
from ragcontract.contract.limits import AT_K, limit_keys
from ragcontract.core.phrase import dotted
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.statistics.quantities import LATENCY
from scripts import docs
from tests.builders import golden, run, write_jsonl
from tests.process import files_in, rag_contract, spawn
from tests.runner import TEMPLATES

FOR_EDITORS = f"# yaml-language-server: $schema={CONFIG_SCHEMA}\n"
WRITTEN = ["golden.jsonl", "ragcontract.yml", WORKFLOW]


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("golden.jsonl").read_text().splitlines()]


def ask(text: str) -> list[dict[str, Any]]:
    """Start a contract anew from the text of a file of questions; returns the golden rows."""
    Path("questions.txt").write_text(text)
    Path("golden.jsonl").unlink(missing_ok=True)
    ended = rag_contract("init", "--questions", "questions.txt")
    assert ended.code == 0, ended.err
    return rows()


def test_three_files_are_written_and_the_next_steps_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = rag_contract("init")
    assert (ended.code, ended.err) == (0, "")
    assert sorted(files_in(tmp_path)) == sorted(WRITTEN)
    first, *others = ended.out.partition("\n\n")[0].splitlines()
    assert first == "wrote golden.jsonl (1 question)"
    assert others == [f"wrote {name}" for name in WRITTEN[1:]]
    for step in ('in place of "TODO"', "current_run.jsonl", "rag-contract lint", "rag-contract check", "baseline.json"):
        assert step in ended.out
    assert [row["relevant_doc_ids"] for row in rows()] == [["TODO"]]


def test_questions_become_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ask("\ufeffHow do I reset it?\r\n\r\n  Was heißt „SSO“?  \n") == [
        {"id": "how-do-i-reset-it", "query": "How do I reset it?", "relevant_doc_ids": ["TODO"]},
        {"id": "was-heisst-sso", "query": "Was heißt „SSO“?", "relevant_doc_ids": ["TODO"]},
    ]
    assert "„SSO“" in Path("golden.jsonl").read_text(), "for people to edit"


def test_ids_are_unique_readable_and_of_a_length_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    long = "word " * 30
    questions = ["C?", "C++?", "C 2", "数据库", "Où?", "???", f"{long}a", f"{long}b", "x" * 90]
    ids = [row["id"] for row in ask("\n".join(questions))]
    words = "-".join(["word"] * 9)
    assert ids == ["c", "c-2", "c-2-2", "question-4", "ou", "question-6", words, f"{words}-2", "x" * 48]


def test_a_question_that_repeats_another_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("What is SSO?\nHow?\nwhat is  sso\nWHAT IS SSO?\n")
    ended = rag_contract("init", "--questions", "q.txt")
    assert ended.err == "warning: q.txt: 2 questions left out, the same as another but for case, space or a stop\n"
    assert "wrote golden.jsonl (2 questions)" in ended.out
    assert [row["query"] for row in rows()] == ["What is SSO?", "How?"]


@pytest.mark.parametrize("existing", [*WRITTEN, "ragcontract.yaml"])
def test_what_exists_is_left_and_the_rest_written(
    existing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(existing).parent.mkdir(parents=True, exist_ok=True)
    Path(existing).write_text("mine")
    ended = rag_contract("init")
    assert ended.code == 0
    assert f"kept {existing}\n" in ended.out
    written = [name for name in WRITTEN if Path(name).stem != Path(existing).stem or name == WORKFLOW != existing]
    assert ended.out.count("wrote ") == len(written) == 2
    assert files_in(tmp_path).keys() == {existing, *written}
    assert Path(existing).read_text() == "mine"


def test_the_workflow_names_the_config_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ragcontract.yaml").write_text("k: 5\n")
    rag_contract("init")
    assert "config: ragcontract.yaml\n" in Path(WORKFLOW).read_text()


@pytest.mark.parametrize("options", [(), ("--force",), ("--answers",)])
@pytest.mark.parametrize("name", ["golden.jsonl", "ragcontract.yml", "ragcontract.yaml", WORKFLOW])
def test_a_link_that_leads_nowhere_is_no_file_to_keep(
    name: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).symlink_to("nowhere")
    ended = rag_contract("init", *options)
    refused = f"error: {name}: is a symbolic link, which nobody named; remove it\n"
    assert (ended.code, ended.out, ended.err) == (2, "", refused)
    assert [path for path in Path().rglob("*") if path.is_file()] == []


def test_a_link_to_a_file_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shared.jsonl").write_text('{"id": "q1", "query": "?", "relevant_doc_ids": ["a"]}\n')
    Path("golden.jsonl").symlink_to("shared.jsonl")
    assert "kept golden.jsonl" in rag_contract("init").out


def test_where_all_exist_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rag_contract("init")
    for name in WRITTEN:
        Path(name).write_text("mine")
    before = files_in(tmp_path)
    said = "".join(f"error: {name}: exists already; use --force to overwrite it\n" for name in WRITTEN)
    assert rag_contract("init") == (2, "", said)
    assert files_in(tmp_path) == before


def test_questions_for_a_golden_file_that_exists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("How?")
    Path("golden.jsonl").write_text("mine")
    before = files_in(tmp_path)
    said = "error: golden.jsonl: exists already; use --force to overwrite it\n"
    assert rag_contract("init", "--questions", "q.txt") == (2, "", said)
    assert files_in(tmp_path) == before


def test_force_overwrites_what_is_asked_for_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rag_contract("init")
    for name in WRITTEN:
        Path(name).write_text("mine")
    Path("q.txt").write_text("How?")
    ended = rag_contract("init", "--questions", "q.txt", "--force")
    assert ended.code == 0
    assert ended.out.startswith(f"wrote golden.jsonl (1 question)\nkept ragcontract.yml\nkept {WORKFLOW}\n")
    assert [row["query"] for row in rows()] == ["How?"]
    assert Path("ragcontract.yml").read_text() == "mine"
    assert rag_contract("init", "--force").out.count("wrote ") == 3
    assert Path("ragcontract.yml").read_text() == FOR_EDITORS + (TEMPLATES / "ragcontract.yml").read_text()


@pytest.mark.parametrize("options", [[], ["--answers"]])
def test_an_editor_finds_the_schema_by_the_first_line_which_stays_when_the_config_is_edited(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rag_contract("init", *options)
    schema = json.loads(rag_contract("schema", "config").out)
    written = Path("ragcontract.yml").read_text()
    assert written.startswith(f"{FOR_EDITORS}# The contract's limits.")
    jsonschema.validate(yaml.safe_load(written), schema)
    Path("golden.jsonl").write_text(Path("golden.jsonl").read_text().replace("TODO", "30"))
    waived = ("waive", rows()[0]["id"], "--reason", "later", "--owner", "ann", "--until", "2999-12-31")
    assert rag_contract(*waived).code == 0
    edited = Path("ragcontract.yml").read_text()
    assert edited.startswith(written)
    jsonschema.validate(yaml.safe_load(edited), schema)


def test_from_a_run_and_questions_to_candidates_to_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("How?\nWhy?\n")
    write_jsonl(Path("r.jsonl"), [run("how", "a", "b", "c")])
    ended = rag_contract("init", "--questions", "q.txt", "--from-run", "r.jsonl", "--top", "2")
    assert (ended.code, ended.err) == (0, "warning: 1 query ('why') without a result in the run: left out\n")
    assert "wrote golden.jsonl (2 questions)\n" in ended.out
    assert "wrote candidates.txt\n" in ended.out
    steps = ("label --ticked candidates.txt", "lint", "suggest", "baseline", 'marked "Replace"', "Commit these files")
    assert all(step in ended.out for step in steps)
    candidates = Path("candidates.txt").read_text()
    assert candidates.endswith("\n## how\nQ: How?\n- [ ] a\n- [ ] b\n- [ ] (nothing answers it)\n")
    Path("candidates.txt").write_text(candidates.replace("[ ] b", "[x] b"))
    assert rag_contract("label", "--ticked", "candidates.txt").code == 0
    assert [row.get("relevance") for row in rows()] == [{"a": 0, "b": 1}, None]


def test_candidates_of_an_existing_golden_file_are_those_without_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "a"), golden("q2", "b")])
    write_jsonl(Path("r.jsonl"), [run("q1", "a", "x"), run("q2", "b"), run("q3", "c", query="Three?")])
    before = Path("golden.jsonl").read_bytes()
    ended = rag_contract("init", "--from-run", "r.jsonl")
    assert ended.code == 0
    assert "kept golden.jsonl\n" in ended.out
    assert "('q3') in the run, and no question known for it: left out" in ended.err
    assert Path("candidates.txt").read_text().split("\n\n", 1)[1] == "## q1\nQ: What about q1?\n- [ ] x\n"
    ended = rag_contract("init", "--from-run", "r.jsonl")
    assert (ended.code, ended.err) == (
        2,
        "error: "
        + "".join(
            f"{name}: exists already; use --force to overwrite it\nerror: " for name in [*WRITTEN, "candidates.txt"]
        ).removesuffix("error: "),
    )
    assert rag_contract("init", "--from-run", "r.jsonl", "--force").code == 0
    assert Path("golden.jsonl").read_bytes() == before, "it is where the questions come from"
    Path("golden.jsonl").write_bytes(before.replace(b'["a"]', b'["a", "x"]'))
    assert "nothing to tick" in rag_contract("init", "--from-run", "r.jsonl", "--force").err


def test_a_run_with_its_questions_needs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("r.jsonl"), [run("q1", "a", query="How?")])
    assert rag_contract("init", "--from-run", "r.jsonl").code == 0
    assert rows() == [{"id": "q1", "query": "How?", "relevant_doc_ids": ["TODO"]}]
    for name in (*WRITTEN, "candidates.txt"):
        Path(name).unlink()
    write_jsonl(Path("r.jsonl"), [run("q1", "a")])
    ended = rag_contract("init", "--from-run", "r.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert "r.jsonl: no question is known for its rows; give --questions FILE" in ended.err
    assert list(files_in(tmp_path)) == ["r.jsonl"]


def test_a_question_with_a_comma_is_not_taken_for_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [row["query"] for row in ask("Query, or prompt?\nrefund, delay\n")] == ["Query, or prompt?", "refund, delay"]


NO_QUESTIONS = {
    "nothing": (b" \n\n", "q.txt: is empty; expected one question per line"),
    "JSON lines": (b'How?\n{"id": 1}\n', "q.txt:2: is JSON; expected plain text, one question per line"),
    "CSV": (
        b'id,Question,Expected\n1,"How, and why?",doc1\n',
        "q.txt: is CSV, not a list of questions; convert it with `rag-contract convert --from csv`",
    ),
    "CSV of Excel": (b"\xef\xbb\xbfUser-Input;Owner\nHow?;Ana\n", "q.txt: is CSV, not a list of questions"),
    "binary data": (b"\0\1", "q.txt:1: is binary data"),
    "another encoding": ("How?\nÜber?\n".encode("latin-1"), "q.txt:2: is not UTF-8"),
    "a long question": (b"?" * 20_001, "q.txt:1: has more than 20,000 characters, the limit for a question"),
    "a damaged archive": (b"\x1f\x8b\x08", "q.txt: the gzip data is damaged"),
}


@pytest.mark.parametrize(("data", "message"), NO_QUESTIONS.values(), ids=NO_QUESTIONS.keys())
def test_what_is_no_list_of_questions_is_refused(
    data: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refuses(data, message)


def test_a_flood_of_questions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refuses(b"?" * ((16 << 20) + 10), "q.txt: is larger than 16 MiB")


def refuses(data: bytes, message: str) -> None:
    Path("q.txt").write_bytes(data)
    ended = rag_contract("init", "--questions", "q.txt")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert list(files_in(Path())) == ["q.txt"]


@pytest.mark.parametrize("path", ["", "none.txt", "."])
def test_questions_must_be_there(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rag_contract("init", "--questions", path).code == 2
    assert files_in(tmp_path) == {}


def test_where_the_workflow_cannot_be_written_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".github").write_text("")
    ended = rag_contract("init")
    assert (ended.code, ended.out) == (2, "")
    assert f"{WORKFLOW}: cannot be written" in ended.err
    assert [str(path) for path in Path().iterdir()] == [".github"]


NEED_LABELS = {
    "check": ("check",),
    "check of a tag": ("check", "--tag", "t"),
    "baseline": ("baseline",),
    "score": ("score",),
    "check of a tag that no query has": ("check", "--tag", "other"),
    "diff": ("diff", "--baseline", "good.jsonl"),
    "diff without a baseline": ("diff",),
    "compare": ("compare", "good.jsonl", "current_run.jsonl"),
    "suggest": ("suggest",),
    "unjudged": ("unjudged",),
    "validate": ("validate",),
    "validate without a run": ("validate", "--without-run"),
    "lint": ("lint",),
    "waive": ("waive", "q1", "--reason", "slow", "--owner", "ana", "--until", "2030-01-01"),
}
NOT_LABELLED = (2, "", "error: golden.jsonl: nothing is labelled yet: run rag-contract label\n")


@pytest.mark.parametrize("argv", NEED_LABELS.values(), ids=NEED_LABELS.keys())
@pytest.mark.parametrize(
    "expected", [{"relevant_doc_ids": ["TODO"]}, {"relevance": {"TODO": 1}}], ids=["ids", "grades"]
)
def test_while_nothing_is_labelled_one_line_says_so(
    expected: dict[str, Any], argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [{"id": f"q{number}", "query": f"Why {number}?", "tags": ["t"], **expected} for number in range(5)]
    write_jsonl(Path("golden.jsonl"), asked)
    Path("ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.1}\nwaivers: [{query: gone}]\n")
    assert rag_contract(*argv) == NOT_LABELLED, "without a run, and whatever else is wrong"
    Path("ragcontract.yml").unlink()
    for name in ("current_run.jsonl", "good.jsonl"):
        write_jsonl(Path(name), [run(row["id"], f"of-{name}") for row in asked])
    assert rag_contract(*argv) == NOT_LABELLED


ABOUT_ANSWERS = {"id": "q2", "query": "What about q2?", "tags": ["said"], "answer_must_include": ["30 days"]}


def test_queries_about_answers_alone_have_no_label_and_are_checked_by_their_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [ABOUT_ANSWERS, golden("q1", "TODO"), golden("q3", "TODO")])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", "doc1", response="In 30 days.") for n in (1, 2, 3)])
    assert rag_contract("check") == NOT_LABELLED
    assert rag_contract("check", "--tag", "said").code == 0


@pytest.mark.parametrize(
    "labelled",
    [
        golden("q2", "doc1"),
        golden("q2", relevant_doc_ids=[]),
        {"id": "q2", "query": "What about q2?", "relevance": {"doc9": 0, "TODO": 1}},
        golden("q2", relevant_doc_ids=[], forbidden_doc_ids=["doc9"]),
    ],
    ids=["relevant", "nothing answers it", "not relevant", "only forbids"],
)
def test_once_any_query_is_labelled_the_others_fail_and_say_why(
    labelled: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "TODO"), labelled, golden("q3", "TODO")])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", "doc1", response="In 30 days.") for n in (1, 2, 3)])
    ended = rag_contract("check")
    assert ended.code == 1
    assert "golden.jsonl:1: relevant_doc_ids still holds the placeholder 'TODO' (and" in ended.err
    assert "Expected TODO in top 5" in ended.out


def test_labels_can_be_made_while_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [row] = ask("How?\n")
    write_jsonl(Path("current_run.jsonl"), [run(row["id"], "doc1")])
    assert rag_contract("init", "--from-run", "current_run.jsonl").code == 0
    Path("candidates.txt").write_text(Path("candidates.txt").read_text().replace("[ ] doc1", "[x] doc1"))
    assert rag_contract("label", "--ticked", "candidates.txt").code == 0
    assert rag_contract("check").code == 0


def test_a_contract_that_is_filled_in_passes_up_to_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [row] = ask("How?\n")
    Path("golden.jsonl").write_text(Path("golden.jsonl").read_text().replace("TODO", "doc1"))
    write_jsonl(Path("current_run.jsonl"), [run(row["id"], "doc1")])
    assert rag_contract("lint") == (0, "no findings\n", "")
    assert rag_contract("check").code == 0
    assert rag_contract("baseline").code == 0
    config = Path("ragcontract.yml")
    config.write_text(re.sub(r"^# (fail_on|minimums|  \w+):", r"\1:", config.read_text(), flags=re.MULTILINE))
    assert rag_contract("check").code == 0
    assert "fail_on.hitrate_drop_gt" in Path("report.json").read_text()


def test_a_contract_over_answers_cannot_be_judged_until_it_is_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = rag_contract("init", "--answers")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("wrote golden.jsonl (2 questions)\n")
    for step in (
        'in place of "TODO"',
        "rag-contract record app.py:answer",
        "rag-contract baseline",
        "rag-contract lint",
        WORKFLOW,
    ):
        assert step in ended.out
    answered, refused = rows()
    assert answered["answer_must_include"] == ["TODO"]
    write_jsonl(
        Path("current_run.jsonl"),
        [
            {"query_id": answered["id"], "response": "Todo: within 30 days."},
            {"query_id": refused["id"], "response": "I don't know."},
        ],
    )
    unfilled = rag_contract("check")
    assert (unfilled.code, unfilled.out) == (2, "")
    assert unfilled.err == (
        "error: golden.jsonl:1: answer_must_include[0]: still is the placeholder 'TODO'; write a text that a right "
        'answer contains; or, if nothing answers it, only "rules": [{"type": "must_refuse"}]\n'
    )
    Path("golden.jsonl").write_text(Path("golden.jsonl").read_text().replace("TODO", "30 days"))
    assert rag_contract("lint") == (0, "no findings\n", "")


ANSWERING = {
    "a text": (
        "'I do not know.' if 'director' in question else 'Within 30 days.'",
        "1 query and 1 limit hold; 1 to warn",
    ),
    "a text and a mode": (
        "{'response': '30 days', 'mode': 'abstain' if 'director' in question else 'trustworthy'}",
        "2 queries and 1 limit hold",
    ),
}


@pytest.mark.parametrize(("answer", "held"), ANSWERING.values(), ids=ANSWERING.keys())
def test_the_first_check_of_answers_can_judge_what_an_application_returns(
    answer: str, held: str, tmp_path: Path
) -> None:
    assert spawn("init", "--answers", cwd=tmp_path).code == 0
    (tmp_path / "golden.jsonl").write_text((tmp_path / "golden.jsonl").read_text().replace("TODO", "30 days"))
    (tmp_path / "app.py").write_text(f"def answer(question):\n    return {answer}\n")
    assert spawn("record", "app.py:answer", cwd=tmp_path).code == 0
    judged = spawn("check", cwd=tmp_path)
    assert (judged.code, judged.err) == (0, "")
    assert judged.out.endswith(f"PASS  {held}\n")


def test_the_first_check_can_judge_every_limit_that_is_written_for_questions_of_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("How?\n")
    assert rag_contract("init", "--answers", "--questions", "q.txt").code == 0
    Path("golden.jsonl").write_text(Path("golden.jsonl").read_text().replace("TODO", "30 days"))
    with RunWriter("current_run.jsonl") as written:
        written.write("how", response="Within 30 days.", mode="trustworthy")
    judged = rag_contract("check")
    assert (judged.code, judged.err) == (0, "")
    assert judged.out.endswith("PASS  1 query and 1 limit hold\n")


KEPT = {
    "rules": ({"answer_must_include": ["30 days"]}, "1 query and 1 limit hold"),
    "modes": ({"expected_mode": "trustworthy"}, "1 query and 1 limit hold"),
    "a reference alone": ({"reference": "30 days"}, "1 query holds; no limits are set"),
    "texts to retrieve": ({"reference_contexts": ["within 30 days"]}, "1 query holds; no limits are set"),
}


@pytest.mark.parametrize(("expected", "checked"), KEPT.values(), ids=KEPT.keys())
def test_the_first_check_can_judge_every_limit_for_a_golden_file_that_is_kept(
    expected: dict[str, Any], checked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "How?", **expected}])
    answer = {"response": "Within 30 days.", "mode": "trustworthy", "retrieved_contexts": ["within 30 days"]}
    write_jsonl(Path("current_run.jsonl"), [{"query_id": "q1", **answer}])
    assert "kept golden.jsonl" in rag_contract("init", "--answers").out
    judged = rag_contract("check")
    assert (judged.code, judged.err) == (0, "")
    assert f"PASS  {checked}" in judged.out


@pytest.mark.parametrize("text", ["mine", '{"id": "q1", "query": "How?", "relevant_doc_ids": ["TODO"]}\n'])
def test_a_golden_file_that_is_kept_and_cannot_be_judged_yet_is_no_reason_to_write_nothing(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("golden.jsonl").write_text(text)
    assert rag_contract("init", "--answers").code == 0
    assert Path("ragcontract.yml").read_text() == FOR_EDITORS + (TEMPLATES / "answers.yml").read_text()


def test_a_missing_package_is_named_before_the_first_check(tmp_path: Path) -> None:
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "re2.py").write_text("raise ImportError('re2')\n")
    environ = {"PYTHONPATH": str(tmp_path / "stub")}
    needs = 'needs RE2, which is not installed; run `pip install "rag-contract[answers]"`\n'
    ended = spawn("init", "--answers", cwd=tmp_path, environ=environ)
    assert (ended.code, ended.err) == (0, f"warning: a pattern in golden.jsonl {needs}")
    assert spawn("init", "--force", cwd=tmp_path, environ=environ).err == "", "a contract about documents has none"
    write_jsonl(tmp_path / "golden.jsonl", [{"id": "q1", "query": "How?", "forbidden_claims": ["40 .*days"]}])
    for without_run in ((), ("--without-run",)):
        ended = spawn("validate", *without_run, cwd=tmp_path, environ=environ)
        assert ended.code == 2
        assert f"error: golden.jsonl:1: forbidden_claims[0]: {needs}" in ended.err


NEED_PACKAGES = {
    "rapidfuzz": ("metrics: {context_recall_text: {measure: levenshtein}}\n", "golden.jsonl", "rag-contract[text]"),
    "pyarrow": ("k: 5\n", "golden.parquet", "rag-contract[parquet]"),
}


@pytest.mark.parametrize("package", NEED_PACKAGES)
def test_validate_names_what_config_and_golden_file_need_before_there_is_a_run(package: str, tmp_path: Path) -> None:
    config, path, extra = NEED_PACKAGES[package]
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / f"{package}.py").write_text(f"raise ImportError('{package}')\n")
    (tmp_path / "ragcontract.yml").write_text(config)
    write_jsonl(tmp_path / path, [{"id": "q1", "query": "How?", "reference_contexts": ["within 30 days"]}])
    environ = {"PYTHONPATH": str(tmp_path / "stub")}
    ended = spawn("validate", "--without-run", "--golden", path, cwd=tmp_path, environ=environ)
    assert (ended.code, ended.out) == (2, "")
    assert f"pip install '{extra}'" in ended.err


def test_questions_for_a_contract_over_answers_are_yours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("How?\n")
    assert rag_contract("init", "--answers", "--questions", "q.txt").code == 0
    assert rows() == [{"id": "how", "query": "How?", "answer_must_include": ["TODO"]}]
    refused = rag_contract("init", "--answers", "--from-run", "r.jsonl")
    assert refused.code == 2
    assert "--answers: its golden queries name no documents to tick; leave out --from-run" in refused.err


@pytest.mark.parametrize("name", ["ragcontract.yml", "answers.yml"])
def test_the_config_is_valid_as_it_is_and_with_what_is_commented_out(name: str, tmp_path: Path) -> None:
    assert read_template((TEMPLATES / name).read_text(), tmp_path).problems == Problems()
    assert read_template(uncommented((TEMPLATES / name).read_text()), tmp_path).problems == Problems()


def test_the_config_shows_every_key_about_documents_and_the_one_for_answers_the_other_sections(tmp_path: Path) -> None:
    documents = Registry(metrics=BUILT_IN.metrics[:1], rules=BUILT_IN.rules[:3], quantities=LATENCY)
    config = read_template(uncommented((TEMPLATES / "ragcontract.yml").read_text()), tmp_path)
    answers = set(read_template(uncommented((TEMPLATES / "answers.yml").read_text()), tmp_path).locations.lines)
    cut_off = [key for key in limit_keys(documents, config.cutoffs) if not AT_K.search(key.name)]
    record = config_record(documents, cut_off)
    sections = {"": record()} | {f"{name}.": getattr(record(), name) for name in ("fail_on", "minimums", "per_query")}
    keys = {f"{above}{name}" for above, section in sections.items() for name in section.__struct_fields__}
    shown = set(map(dotted, config.locations.lines))
    of_answers = {"answers", "judge", "maximums", "metrics", "missing_scores", "tiers"}
    assert shown == keys - of_answers
    assert of_answers <= set(map(dotted, answers))


def read_template(text: str, folder: Path) -> ConfigFile:
    (folder / "ragcontract.yml").write_text(text)
    return read_config(str(folder / "ragcontract.yml"), BUILT_IN)


def uncommented(config: str) -> str:
    """Take the # away from keys that are commented out."""
    return re.sub(r"^( *)# ( *\w+:(?: |$)[^ ]*)$", r"\1\2", config, flags=re.MULTILINE)


def test_the_workflow_is_the_examples_but_for_its_folder() -> None:
    example = docs.WORKFLOW.read_text()
    assert docs.render_workflow(example) == example, "run `make docs`"
    ours, theirs = yaml.safe_load((TEMPLATES / "workflow.yml").read_text()), yaml.safe_load(example)
    steps = theirs["jobs"]["rag-contract"]["steps"]
    assert steps[5]["with"].pop("baseline") == "rag/baseline.json"
    as_ours = json.dumps(theirs).replace("rag/", "").replace("search.py:full", "search.py:retrieve")
    assert json.loads(as_ours) == json.loads(json.dumps(ours))


def test_a_misspelled_field_of_the_run_is_a_warning_as_in_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("What about q1?")
    write_jsonl(Path("r.jsonl"), [run("what-about-q1", "A", latency_mss=3)])
    ended = rag_contract("init", "--questions", "q.txt", "--from-run", "r.jsonl")
    assert ended.code == 0
    assert ended.err == "warning: r.jsonl:1: unknown field 'latency_mss' is not read; did you mean 'latency_ms'?\n"
