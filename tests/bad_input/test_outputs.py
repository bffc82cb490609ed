"""Paths that cannot be written to: reported before any work is done, and what was there before stays as it was."""

import json
import re
from pathlib import Path

import pytest

from tests.bad_input.test_rows import errors, inputs_in, refused
from tests.builders import golden, good_workspace, run, write_jsonl
from tests.process import (
    COMMAND,
    Ended,
    folder_of_nobody,
    hand_to_nobody,
    rag_contract,
    shell,
    spawn,
    spawn_as_nobody,
)

OUTPUTS = ("--report-md", "--report-json", "--junit")
EVERYTHING = ("check", "--report-md", "report.md", "--report-json", "report.json", "--junit", "junit.xml")

PLACES = {
    "a folder": ("folder", "is a folder; name a file in it"),
    "a folder that is not there": ("new/", "is a folder; name a file in it"),
    "a file within a file": ("golden.jsonl/x", "cannot be written: {folder}/golden.jsonl is a file, not a folder"),
    "a link to itself": ("loop", "cannot be written (a link that leads to itself)"),
    "a name that is too long": ("n" * 300, "cannot be written (File name too long)"),
    "the golden file": ("golden.jsonl", "is an input; write to another file"),
    "the run by another spelling": ("folder/../current_run.jsonl", "is an input; write to another file"),
    "the baseline by a symbolic link": ("link", "is an input; write to another file"),
    "the config by a hard link": ("twin", "is an input; write to another file"),
    "a descriptor that is not open": ("/dev/fd/987", "cannot be written (Bad file descriptor)"),
    "a full device": ("/dev/full", "cannot be written (No space left on device)"),
}


@pytest.mark.parametrize("option", OUTPUTS)
@pytest.mark.parametrize(("location", "expected"), PLACES.values(), ids=PLACES.keys())
def test_a_path_that_cannot_be_written_to_is_refused(
    location: str, expected: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    Path("link").symlink_to("baseline.json")
    Path("twin").hardlink_to("ragcontract.yml")
    assert errors(refused(tmp_path, option, location)) == [f"{location}: {expected.format(folder=tmp_path)}"]


TWICE = {
    "the same name": "report.md",
    "another spelling": "folder/../report.md",
    "a symbolic link": "link",
    "a hard link": "twin",
    "the absolute path": "{folder}/report.md",
}


@pytest.mark.parametrize("location", TWICE.values(), ids=TWICE.keys())
def test_two_reports_in_one_file_are_refused(location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("folder").mkdir()
    Path("link").symlink_to("report.md")
    Path("twin").hardlink_to("report.md")
    location = location.format(folder=tmp_path)
    ended = rag_contract("check", "--junit", location)
    assert (ended.code, errors(ended)) == (2, [f"{location}: is another output; write to another file"])


@pytest.mark.parametrize("location", ["folder/../new.md", "gone/../new.md", "link"])
def test_two_reports_in_one_file_that_is_not_there_yet_are_refused(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("folder").mkdir()
    Path("link").symlink_to("new.md")
    assert errors(refused(tmp_path, "--report-md", "new.md", "--junit", location)) == [
        f"{location}: is another output; write to another file"
    ]


def test_all_bad_paths_are_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    options = ("--report-md", "golden.jsonl", "--report-json", str(tmp_path), "--junit", "/dev/fd/987")
    assert errors(refused(tmp_path, *options)) == [
        "golden.jsonl: is an input; write to another file",
        f"{tmp_path}: is a folder; name a file in it",
        "/dev/fd/987: cannot be written (Bad file descriptor)",
    ]


@pytest.mark.parametrize("location", ["golden.jsonl", "current_run.jsonl", "ragcontract.yml", "folder", ""])
def test_a_baseline_is_not_written_over_an_input_or_a_folder(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("folder").mkdir()
    before = inputs_in(tmp_path)
    ended = rag_contract("baseline", "--out", location)
    assert (ended.code, ended.out) == (2, "")
    assert len(errors(ended)) == 1
    assert inputs_in(tmp_path) == before


def test_a_bad_run_leaves_the_old_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text("{")
    before = inputs_in(tmp_path)
    assert rag_contract("baseline", "--force").code == 2
    assert inputs_in(tmp_path) == before


def test_a_file_that_may_not_be_written_is_refused() -> None:
    with folder_of_nobody() as folder:
        good_workspace(folder)
        (folder / "report.md").chmod(0o444)
        hand_to_nobody(folder)
        before = inputs_in(folder)
        ended = spawn_as_nobody("check", cwd=folder)
        assert ended == (2, "", "error: report.md: cannot be written (Permission denied)\n")
        assert inputs_in(folder) == before


def test_a_folder_that_may_not_be_written_is_refused() -> None:
    with folder_of_nobody() as folder:
        good_workspace(folder)
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0o555)
        hand_to_nobody(folder)
        before = inputs_in(folder)
        ended = spawn_as_nobody("check", "--junit", "closed/deep/junit.xml", cwd=folder)
        expected = f"error: closed/deep/junit.xml: cannot be written (Permission denied in {folder}/closed)\n"
        assert ended == (2, "", expected)
        assert inputs_in(folder) == before


def limited(bytes_: int, *argv: str, cwd: Path) -> Ended:
    """Run a command whose files cannot grow beyond a size, which is how a full disk looks to it."""
    program = (
        "import resource, runpy, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes_}, {bytes_}))\n"
        "sys.argv = ['rag-contract', *sys.argv[1:]]\n"
        "from ragcontract.guard import entry_point\n"
        "entry_point()\n"
    )
    return spawn(*argv, cwd=cwd, command=(COMMAND[0], "-c", program))


def test_a_full_disk_leaves_the_old_reports_and_no_litter(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    before = inputs_in(tmp_path)
    enough_for_markdown = 1_500
    ended = limited(enough_for_markdown, *EVERYTHING, cwd=tmp_path)
    assert ended == (2, "", "error: report.json: cannot be written (File too large)\n")
    assert inputs_in(tmp_path) == before


def test_a_full_disk_leaves_the_old_baseline_and_no_litter(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    before = inputs_in(tmp_path)
    ended = limited(100, "baseline", "--force", cwd=tmp_path)
    assert ended == (2, "", "error: baseline.json: cannot be written (File too large)\n")
    assert inputs_in(tmp_path) == before


def test_nothing_is_written_to_a_device_when_a_file_cannot_be(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    ended = limited(0, "check", "--report-md", "/dev/stdout", "--report-json", "report.json", cwd=tmp_path)
    assert ended == (2, "", "error: report.json: cannot be written (File too large)\n")


def test_a_report_to_standard_output_has_it_for_itself(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    ended = spawn(*EVERYTHING[:4], "/dev/stdout", "--junit", "", cwd=tmp_path)
    assert ended.code == 0
    assert ended.out.startswith("{\n")
    assert ended.out.endswith("}\n")
    assert "PASS" in ended.err


def test_a_report_to_standard_output_does_not_cut_the_file_behind_it(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    script = "{ echo before; rag-contract check --report-md /dev/stdout 2>log; echo after; } > all.txt"
    assert shell(script, cwd=tmp_path) == (0, "", "")
    lines = (tmp_path / "all.txt").read_text().splitlines()
    assert lines[0] == "before"
    assert lines[1].startswith("### ✅ 2 queries and 1 limit hold")
    assert lines[-1] == "after"


def test_a_baseline_to_standard_output_has_it_for_itself(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    ended = spawn("baseline", "--out", "/dev/stdout", cwd=tmp_path)
    assert ended.code == 0
    assert (ended.out[0], ended.out[-2:]) == ("{", "}\n")
    assert ended.err == "baseline of 2 queries in /dev/stdout\n"


def test_two_reports_in_standard_output_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    locations = ("--report-md", "/dev/stdout", "--junit", "/dev/stdout")
    assert errors(refused(tmp_path, *locations)) == ["/dev/stdout: is another output; write to another file"]


@pytest.mark.parametrize("name", ["/dev/null", ""])
def test_nowhere_takes_any_number_of_reports_and_so_does_no_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    before = inputs_in(tmp_path)
    ended = rag_contract("check", "--report-md", name, "--report-json", name, "--junit", name)
    assert ended.code == 0
    assert inputs_in(tmp_path) == before
    assert Path("/dev/null").is_char_device()


HOSTILE = "x\n::warning::pwned\n##[error]pwned \u202e \u2028 \x9b31m \x1b[31m\r::error::y \U000e0041"
ACTING = "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\U000e0000-\U000e007f]|##\\[|^[ \t]*::"
PRINTED = {
    "the Markdown report": ("check", "--report-md"),
    "the JSON report": ("check", "--report-json"),
    "the JUnit report": ("check", "--junit"),
    "the report for others": ("check", "--report-v2"),
    "a comparison": ("compare", "current_run.jsonl", "baseline.jsonl", "--format", "json", "--out"),
    "a baseline": ("baseline", "--out"),
}


def hostile_workspace(folder: Path) -> Path:
    """Write a broken contract with text that acts on a terminal and a runner in every place; returns the folder."""
    rows = [
        golden(query_id, "doc1", tags=["a"], rules=[{"type": "must_not_contain", "value": "pwned"}])
        for query_id in ("q1", HOSTILE)
    ]
    write_jsonl(folder / "golden.jsonl", [row | {"query": row["id"]} for row in rows])
    said = {"response": HOSTILE, "tool_calls": [{"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}]}
    write_jsonl(folder / "current_run.jsonl", [run(row["id"], HOSTILE, "b", **said) for row in rows])
    write_jsonl(folder / "baseline.jsonl", [run(row["id"], "doc1", HOSTILE, response="x") for row in rows])
    return folder


@pytest.mark.parametrize("stream", ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/fd/2"])
@pytest.mark.parametrize("command", PRINTED.values(), ids=PRINTED.keys())
def test_what_is_printed_acts_on_no_terminal_or_runner(command: tuple[str, ...], stream: str, tmp_path: Path) -> None:
    hostile_workspace(tmp_path)
    ended = spawn(*command, stream, cwd=tmp_path)
    assert ended.code in {0, 1}, ended.err
    assert "pwned" in ended.out + ended.err
    assert not re.search(ACTING, ended.out + ended.err, re.MULTILINE)


@pytest.mark.parametrize("option", ["--report-json", "--report-v2"])
def test_json_that_is_printed_says_what_the_file_says(option: str, tmp_path: Path) -> None:
    hostile_workspace(tmp_path)
    printed = json.loads(spawn("check", option, "/dev/stdout", cwd=tmp_path).out)
    spawn("check", option, "report", cwd=tmp_path)
    written = json.loads((tmp_path / "report").read_text())
    differs = {name for name in printed.keys() | written.keys() if printed.get(name) != written.get(name)}
    assert differs <= {"generated_at", "created_at"}


@pytest.mark.parametrize("stream", ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1"])
@pytest.mark.parametrize(
    "command",
    [("check", "--report-html"), ("compare", "current_run.jsonl", "baseline.jsonl", "--format", "html", "--out")],
)
def test_a_page_is_not_printed(command: tuple[str, ...], stream: str, tmp_path: Path) -> None:
    ended = spawn(*command, stream, cwd=hostile_workspace(tmp_path))
    why = "is a standard stream, where the text of a page could act as commands; name a file"
    assert (ended.code, ended.out, errors(ended)) == (2, "", [f"{stream}: {why}"])
