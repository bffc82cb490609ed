"""Inputs that are not there, are no files, or may not be read."""

import os
from pathlib import Path

import pytest

from tests.bad_input.test_rows import errors, inputs_in, refused
from tests.builders import as_jsonl, good_workspace, run
from tests.process import files_in, folder_of_nobody, hand_to_nobody, rag_contract, shell, spawn, spawn_as_nobody

FOLDER = "is a folder; name the files in it, as in 'folder/*.jsonl'"
INPUTS = ("--golden", "--run", "--baseline", "--config")

PATHS = {
    "a file that is not there": ("nowhere/x.dat", "no such file"),
    "a file within a file": ("golden.jsonl/x.dat", "no such file"),
    "a folder": ("folder", FOLDER),
    "a link to nothing": ("dangling", "is a link to a file that is not there"),
    "a link to itself": ("loop", "cannot be read (Too many levels of symbolic links)"),
    "a name that is too long": ("n" * 300, "cannot be read (File name too long)"),
}


@pytest.mark.parametrize("option", INPUTS)
@pytest.mark.parametrize(("path", "expected"), PATHS.values(), ids=PATHS.keys())
def test_an_input_that_is_no_file_is_refused(
    path: str, expected: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("folder").mkdir()
    Path("dangling").symlink_to("gone")
    Path("loop").symlink_to("loop")
    assert errors(refused(tmp_path, option, path)) == [f"{path}: {expected}"]


@pytest.mark.parametrize("option", INPUTS)
def test_a_misspelled_path_is_reported_with_the_one_that_was_probably_meant(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert errors(refused(tmp_path, option, "baselin.json")) == [
        "baselin.json: no such file; did you mean baseline.json?"
    ]


@pytest.mark.parametrize("option", INPUTS)
def test_an_empty_path_is_not_taken_for_none(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert errors(refused(tmp_path, option, "")) == [
        f"{option}: is given an empty path; name a file, or leave the option out"
    ]


def test_defaults_that_must_be_there_are_all_reported_when_they_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("golden.jsonl").unlink()
    Path("current_run.jsonl").unlink()
    assert errors(refused(tmp_path)) == ["golden.jsonl: no such file", "current_run.jsonl: no such file"]


def test_a_default_baseline_or_config_that_is_not_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.json").unlink()
    Path("ragcontract.yml").unlink()
    ended = rag_contract("validate")
    assert ended == (0, "valid: 2 golden queries (2 with relevant documents), 2 run rows, no baseline, no config\n", "")


def test_a_glob_without_a_match_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert errors(refused(tmp_path, "--run", "shard-*.jsonl")) == ["shard-*.jsonl: no file matches this pattern"]


def test_a_glob_that_matches_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    (tmp_path / "shards" / "a.jsonl").mkdir(parents=True)
    assert errors(refused(tmp_path, "--run", "shards/*")) == [f"shards/a.jsonl: {FOLDER}"]


@pytest.mark.parametrize("option", INPUTS)
def test_a_file_that_may_not_be_read_is_refused(option: str) -> None:
    with folder_of_nobody() as folder:
        good_workspace(folder)
        (folder / "secret").write_text("{}")
        (folder / "secret").chmod(0)
        hand_to_nobody(folder)
        ended = spawn_as_nobody("check", option, "secret", cwd=folder)
        assert ended == (2, "", "error: secret: cannot be read (Permission denied)\n")


def test_a_file_in_a_folder_that_may_not_be_entered_is_refused() -> None:
    with folder_of_nobody() as folder:
        good_workspace(folder)
        (folder / "closed").mkdir()
        (folder / "closed" / "run.jsonl").write_text("")
        (folder / "closed").chmod(0)
        hand_to_nobody(folder)
        ended = spawn_as_nobody("check", "--run", "closed/run.jsonl", cwd=folder)
        assert ended == (2, "", "error: closed/run.jsonl: cannot be read (Permission denied)\n")
        (folder / "closed").chmod(0o755)


def test_a_name_that_is_not_utf8_is_shown_and_reported_in_escapes(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    name = os.fsdecode(b"g\xe4.jsonl")
    (tmp_path / "golden.jsonl").rename(tmp_path / name)
    good = spawn("check", "--golden", name, cwd=tmp_path)
    assert (good.code, good.err) == (0, "")
    assert '"path": "g\\\\udce4.jsonl"' in (tmp_path / "report.json").read_text()
    (tmp_path / name).write_text("")
    bad = spawn("check", "--golden", name, cwd=tmp_path)
    assert bad == (2, "", "error: g\\udce4.jsonl: is empty; expected one JSON object a line\n")


def test_a_run_that_lacks_queries_is_refused_by_all_that_judge_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q2", "doc2")))
    lacks = (
        "error: current_run.jsonl: has no row for golden query 'q1' (golden.jsonl:1); export it again, "
        "or have such queries scored 0 with `missing_queries: zero` in the config\n"
    )
    before = inputs_in(tmp_path)
    for command in (["check"], ["validate"], ["score"], ["diff"], ["baseline", "--force"]):
        assert rag_contract(*command) == (2, "", lacks), command
    assert inputs_in(tmp_path) == before


def test_a_baseline_is_not_made_of_a_run_that_lacks_queries_whatever_the_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("current_run.jsonl").write_text(as_jsonl(run("q2", "doc2")))
    Path("ragcontract.yml").write_text("missing_queries: zero")
    before = files_in(tmp_path)
    assert rag_contract("baseline", "--force") == (
        2,
        "",
        "error: current_run.jsonl: lacks 1 golden query ('q1'), so it cannot be a baseline\n",
    )
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("pack", ["cat", "gzip -c"])
def test_pipes_are_read_once_and_whole(pack: str, tmp_path: Path) -> None:
    good_workspace(tmp_path)
    script = f"rag-contract check --golden <({pack} golden.jsonl) --run <({pack} current_run.jsonl)"
    assert shell(script, cwd=tmp_path) == shell("rag-contract check", cwd=tmp_path)


def test_standard_input_can_be_an_input(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    rows = (tmp_path / "current_run.jsonl").read_text()
    ended = spawn("validate", "--run", "/dev/stdin", cwd=tmp_path, stdin=rows)
    assert (ended.code, ended.err) == (0, "")
    cut = spawn("validate", "--run", "/dev/stdin", cwd=tmp_path, stdin=rows[:-5])
    assert cut.err == (
        "error: /dev/stdin:2: is cut off in the middle; was the export stopped before it had finished?\n"
    )
