"""Links in the place of files that nobody named: what they lead to is neither written nor created."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bad_input.test_rows import errors
from tests.builders import OLD_FILES, golden, good_workspace, run, stored_query, write_baseline, write_jsonl
from tests.judge_server import JudgeServer
from tests.process import Ended, files_in, spawn

TARGET = "def search(query, context):\n    open('asked', 'w').close()\n    return ['doc1']\n"
CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."
CLAIM = "Refunds take five days."
LABEL = {"task": "attribution", "question": "?", "contexts": [CONTEXT], "text": CLAIM, "label": True}
WAIVE = ("waive", "q1", "--reason", "r", "--owner", "o", "--until", "2999-12-31")
INIT = ("init", "--force")

# The command, the file that it writes although no option names it, and the option that could.
UNNAMED = {
    "the Markdown report": (("check",), "report.md", "--report-md"),
    "the JSON report": (("check",), "report.json", "--report-json"),
    "the JUnit report": (("check",), "junit.xml", "--junit"),
    "the baseline": (("baseline",), "baseline.json", "--out"),
    "the baseline that is replaced": (("baseline", "--force"), "baseline.json", "--out"),
    "the baseline that is updated": (("baseline", "--update"), "baseline.json", "--out"),
    "the run": (("record", "target.py:search"), "current_run.jsonl", "--out"),
    "the judgments": (("judge",), "judgments.jsonl", "--judgments"),
    "the calibration": (("judge", "calibrate", "--labels", "people.jsonl"), "judge-calibration.json", "--out"),
    "the labels": (("judge", "label"), "labels.jsonl", "--labels"),
    "the golden file that is labelled": (("label",), "golden.jsonl", "--golden"),
    "the golden file of ticks": (("label", "--ticked", "ticked.txt"), "golden.jsonl", "--golden"),
    "the golden file that gets claims": (("claims",), "golden.jsonl", "--golden"),
    "the configuration": (WAIVE, "ragcontract.yml", "--config"),
    "a new golden file": (INIT, "golden.jsonl", None),
    "a new configuration": (INIT, "ragcontract.yml", None),
    "a new workflow": (INIT, ".github/workflows/rag-contract.yml", None),
}


def workspace(folder: Path) -> Path:
    good_workspace(folder)
    (folder / "target.py").write_text(TARGET)
    (folder / "ticked.txt").write_text("## q1\n- [x] doc9\n")
    write_jsonl(folder / "people.jsonl", [LABEL])
    rows = [golden("q1", "doc1", reference_claims=[CLAIM]), golden("q2", "doc2", reference=CLAIM)]
    write_jsonl(folder / "golden.jsonl", rows)
    rows = [run(f"q{at}", f"doc{at}", retrieved_contexts=[CONTEXT]) for at in (1, 2)]
    write_jsonl(folder / "current_run.jsonl", rows)
    return folder


def called(folder: Path, command: tuple[str, ...], server: JudgeServer, *more: str) -> Ended:
    asks = command[0] == "claims" or command[:2] in {("judge",), ("judge", "calibrate"), ("judge", "--judgments")}
    options = ("--model", "toy", "--judge-url", server.openai) if asks else ()
    environ = {"XDG_STATE_HOME": str(folder.parent / "state"), "OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": ""}
    return spawn(*command, *more, *options, cwd=folder, environ=environ, stdin="y\n" * 9)


def lead_away(path: Path, target: Path) -> None:
    """Put a link in the place of a file, which is moved to where it leads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(target)
    path.symlink_to(target)


def shown(folder: Path) -> Mapping[str, object]:
    """Return all files of a folder but the reports of an older check, and where its links lead."""
    links = {str(path): path.readlink() for path in folder.rglob("*") if path.is_symlink()}
    files = {name: data for name, data in files_in(folder).items() if Path(name).name not in OLD_FILES}
    return {**files, **links}


@pytest.mark.parametrize("is_there", [True, False], ids=["to a file", "to nothing"])
@pytest.mark.parametrize(("command", "name", "option"), UNNAMED.values(), ids=UNNAMED.keys())
def test_a_link_in_the_place_of_an_output_that_nobody_named_is_refused(
    command: tuple[str, ...], name: str, option: str | None, is_there: bool, tmp_path: Path
) -> None:
    (folder := tmp_path / "repository").mkdir()
    (victim := tmp_path / "elsewhere" / "victim").parent.mkdir()
    workspace(folder)
    if is_there:
        victim.write_text("")
    else:
        (folder / name).unlink(missing_ok=True)
    lead_away(folder / name, victim)
    before = shown(tmp_path)
    with JudgeServer() as server:
        ended = called(folder, command, server)
    advice = f"remove it, or name it with {option} to write where it leads" if option else "remove it"
    assert (ended.code, ended.out) == (2, "")
    assert f"{name}: is a symbolic link, which nobody named; {advice}" in "\n".join(errors(ended))
    assert (shown(tmp_path), server.asked) == (before, [])


def test_a_link_on_the_way_to_an_output_that_nobody_named_is_refused(tmp_path: Path) -> None:
    (folder := tmp_path / "repository").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (folder / ".github").symlink_to(tmp_path / "elsewhere")
    ended = spawn("init", cwd=folder)
    why = "is behind .github, which is a symbolic link, which nobody named; remove it"
    assert (ended.code, errors(ended)) == (2, [f".github/workflows/rag-contract.yml: {why}"])
    assert files_in(tmp_path) == {}


def test_all_links_are_reported_at_once_with_what_else_is_wrong(tmp_path: Path) -> None:
    workspace(tmp_path)
    for name in ("report.md", "junit.xml"):
        lead_away(tmp_path / name, tmp_path / f"of {name}")
    ended = spawn("check", "--report-json", "golden.jsonl", cwd=tmp_path)
    assert [line.partition(":")[0] for line in errors(ended)] == ["report.md", "junit.xml", "golden.jsonl"]


# What a person names may be a link: the command, the option, and the file that the link leads to.
NAMED = {
    "the Markdown report": (("check",), "--report-md", "report.md"),
    "the JSON report": (("check",), "--report-json", "report.json"),
    "the JUnit report": (("check",), "--junit", "junit.xml"),
    "the page": (("check",), "--report-html", "report.html"),
    "the report for others": (("check",), "--report-v2", "v2.json"),
    "the baseline": (("baseline", "--force"), "--out", "baseline.json"),
    "the baseline that is updated": (("baseline", "--update"), "--out", "baseline.json"),
    "the run": (("record", "target.py:search"), "--out", "recorded.jsonl"),
    "the judgments": (("judge",), "--judgments", "judgments.jsonl"),
    "the calibration": (("judge", "calibrate", "--labels", "people.jsonl"), "--out", "judge-calibration.json"),
    "the labels": (("judge", "label"), "--labels", "labels.jsonl"),
    "the golden file that is labelled": (("label", "--ticked", "ticked.txt"), "--golden", "golden.jsonl"),
    "the golden file that gets claims": (("claims",), "--golden", "golden.jsonl"),
    "the configuration": (WAIVE, "--config", "ragcontract.yml"),
}


@pytest.mark.parametrize(("command", "option", "target"), NAMED.values(), ids=NAMED.keys())
def test_a_link_that_a_person_names_is_followed_and_stays(
    command: tuple[str, ...], option: str, target: str, tmp_path: Path
) -> None:
    (folder := tmp_path / "repository").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    workspace(folder)
    if option == "--out" and command == ("baseline", "--update"):
        write_baseline(folder / target, stored_query("q1", "other"), stored_query("q2", "doc2"))
    if (folder / target).exists():
        (folder / target).rename(elsewhere / target)
    (folder / "named").symlink_to(elsewhere / target)
    before = files_in(elsewhere)
    with JudgeServer() as server:
        ended = called(folder, command, server, option, "named")
    assert ended.code == 0
    assert (folder / "named").is_symlink()
    assert [*files_in(elsewhere)] == [target]
    assert files_in(elsewhere) != before


# What reads a file that no option names, and the option that could.
READ = {
    "a check of the golden file": (("check",), "golden.jsonl", "--golden"),
    "a check of the run": (("check",), "current_run.jsonl", "--run"),
    "a check of the baseline": (("check",), "baseline.json", "--baseline"),
    "a check of the configuration": (("check",), "ragcontract.yml", "--config"),
    "a validation": (("validate",), "current_run.jsonl", "--run"),
    "a review": (("lint",), "current_run.jsonl", "--run"),
    "scores": (("score",), "golden.jsonl", "--golden"),
    "a comparison": (("compare", "people.jsonl", "baseline.json"), "golden.jsonl", "--golden"),
    "a difference": (("diff",), "baseline.json", "--baseline"),
    "suggestions": (("suggest",), "ragcontract.yml", "--config"),
    "documents without labels": (("unjudged",), "current_run.jsonl", "--run"),
    "a new baseline": (("baseline", "--force"), "current_run.jsonl", "--run"),
    "a recording": (("record", "target.py:search"), "golden.jsonl", "--golden"),
    "a waiver": (WAIVE, "golden.jsonl", "--golden"),
    "labelling": (("label",), "current_run.jsonl", "--run"),
    "a judging": (("judge",), "current_run.jsonl", "--run"),
    "a calibration": (("judge", "calibrate"), "labels.jsonl", "--labels"),
    "claims": (("claims",), "ragcontract.yml", "--config"),
}
PRIVATE = "root:zebras-cost-42-dollars:0:0\n"


@pytest.mark.parametrize(("command", "name", "option"), READ.values(), ids=READ.keys())
def test_a_link_that_leads_an_input_out_of_the_repository_is_not_read(
    command: tuple[str, ...], name: str, option: str, tmp_path: Path
) -> None:
    (folder := tmp_path / "repository").mkdir()
    workspace(folder)
    (tmp_path / "private").write_text(PRIVATE)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("../private")
    with JudgeServer() as server:
        ended = called(folder, command, server)
    why = f"is a symbolic link that leads out of {folder}, and nobody named it; remove it, or name it with {option}"
    assert (ended.code, errors(ended), server.asked) == (2, [f"{name}: {why}"], [])
    assert not any(b"zebras" in data for path, data in files_in(folder).items() if path != name)


@pytest.mark.parametrize("named", [False, True], ids=["within the repository", "named"])
def test_a_link_within_the_repository_and_one_that_is_named_are_read(named: bool, tmp_path: Path) -> None:
    (folder := tmp_path / "repository" / "service").mkdir(parents=True)
    workspace(folder)
    if not named:
        (tmp_path / "repository" / ".git").mkdir()
        (tmp_path / "repository" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    options = {"golden.jsonl": "--golden", "current_run.jsonl": "--run", "ragcontract.yml": "--config"}
    for name in options:
        (folder / name).rename(folder.parent / name)
        (folder / name).symlink_to(f"../{name}")
    words = [word for name, option in options.items() for word in (option, name)] if named else []
    assert spawn("check", *words, cwd=folder).code == 0


def test_a_link_of_a_file_that_a_command_does_not_read_is_left_alone(tmp_path: Path) -> None:
    (folder := tmp_path / "repository").mkdir()
    lead_away(workspace(folder) / "current_run.jsonl", tmp_path / "run.jsonl")
    for command in (("lint", "--without-run"), ("validate", "--without-run"), WAIVE):
        ended = spawn(*command, cwd=folder)
        assert ended.code == 0, ended.err


def test_a_report_that_has_a_second_name_is_replaced_and_the_other_name_keeps_the_old_one(tmp_path: Path) -> None:
    workspace(tmp_path)
    (tmp_path / "victim").hardlink_to(tmp_path / "report.md")
    old = (tmp_path / "victim").read_bytes()
    assert spawn("check", cwd=tmp_path).code == 0
    assert (tmp_path / "victim").read_bytes() == old
    assert (tmp_path / "report.md").read_bytes() != old


def test_a_pipe_in_the_place_of_a_report_that_nobody_named_is_refused(tmp_path: Path) -> None:
    (workspace(tmp_path) / "report.md").unlink()
    os.mkfifo(tmp_path / "report.md")
    ended = spawn("check", cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "report.md: is not a regular file, and nobody named it; remove it, or name it with --report-md" in ended.err


JOURNALS = {
    "of a recording": (("record", "target.py:search"), ".current_run.jsonl.journal"),
    "of a recording that is planned": (("record", "--plan", "target.py:search"), ".current_run.jsonl.journal"),
    "of a judging": (("judge",), ".judgments.jsonl.journal"),
    "of a calibration": (
        ("judge", "calibrate", "--labels", "people.jsonl"),
        ".judge-calibration.json.1.journal",
    ),
    "of claims": (("claims",), ".golden.jsonl.journal"),
}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("link", "it is a link"),
        ("hard link", "it has a second name, a hard link"),
        ("pipe", "it is not a regular file"),
    ],
)
@pytest.mark.parametrize(("command", "name"), JOURNALS.values(), ids=JOURNALS.keys())
def test_what_is_in_the_place_of_a_journal_is_left_alone(
    command: tuple[str, ...], name: str, kind: str, why: str, tmp_path: Path
) -> None:
    workspace(tmp_path)
    (victim := tmp_path / "victim").write_text("{}\n")
    match kind:
        case "link":
            (tmp_path / name).symlink_to(victim)
        case "hard link":
            (tmp_path / name).hardlink_to(victim)
        case _:
            os.mkfifo(tmp_path / name)
    before = shown(tmp_path)
    with JudgeServer() as server:
        ended = called(tmp_path, command, server)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] in {
        f"error: {name}: cannot be {done} ({why}; delete it)" for done in ("written", "read")
    }
    assert shown(tmp_path) == before
    assert server.asked == []
