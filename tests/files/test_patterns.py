import glob
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from ragcontract.files.paths import existing_files


def found_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *patterns: str) -> list[str]:
    """Resolve patterns in a folder; all must lead to files."""
    monkeypatch.chdir(folder)
    paths, problems = existing_files(patterns)
    assert problems == []
    return paths


def test_globs_are_sorted_and_paths_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c.jsonl", "a.jsonl", "b.jsonl", "z.txt"):
        (tmp_path / name).touch()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "d.jsonl").touch()
    assert found_in(tmp_path, monkeypatch, "z.txt", "?.jsonl") == ["z.txt", "a.jsonl", "b.jsonl", "c.jsonl"]
    assert found_in(tmp_path, monkeypatch, "**/d.jsonl") == ["deep/er/d.jsonl"]


def test_a_file_is_taken_once_by_whatever_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "link").symlink_to("a.jsonl")
    names = ("./a.jsonl", "a.jsonl", "*.jsonl", "link", str(tmp_path / "a.jsonl"))
    assert found_in(tmp_path, monkeypatch, *names) == ["./a.jsonl"]


def test_a_name_with_brackets_is_a_name_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run[1].jsonl").touch()
    (tmp_path / "run1.jsonl").touch()
    assert found_in(tmp_path, monkeypatch, "run[1].jsonl") == ["run[1].jsonl"]
    (tmp_path / "run[1].jsonl").unlink()
    assert found_in(tmp_path, monkeypatch, "run[1].jsonl") == ["run1.jsonl"]


def test_every_path_that_leads_nowhere_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths, problems = existing_files(["gone", "*.none", "", "a\0b"])
    assert paths == []
    assert list(map(str, problems)) == [
        "gone: no such file",
        "*.none: no file matches this pattern",
        "'': is an empty path; name a file",
        "a\0b: cannot be read (embedded null byte)",
    ]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, worked in, without links to folders: what ``**`` finds there is what the standard library's does."""
    for folder in ("a/b/c", "ab/.hidden/b", ".hidden/a", "x[1]/b"):
        (tmp_path / folder).mkdir(parents=True)
    for folder, _, _ in list(os.walk(tmp_path)):
        for name in ("x.jsonl", ".x.jsonl", "y.txt"):
            (Path(folder) / name).write_text(folder + name)
    (tmp_path / "a/link").symlink_to("gone")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        "**",
        "a/**",
        "**/**",
        "**/x.jsonl",
        "**/*.jsonl",
        "**/.x*",
        "**/.*/**/x.jsonl",
        ".hidden/**/*.jsonl",
        "**/b/**/?.jsonl",
        "**/b/*",
        "**/../y.txt",
        "*/**/b/*.txt",
        "[ax]*/**/*.txt",
        "x[[]1]/**",
        "x[1]/**/*",
        "a**/*.jsonl",
        "a/b/../**/c/*",
        "a/lin*",
        "y.txt/**/*",
        "none/**/*",
        "**/none",
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_a_pattern_matches_what_it_does_in_the_standard_library(tree: Path, pattern: str, *, absolute: bool) -> None:
    whole = glob.escape(f"{tree}/") * absolute + pattern
    matches = sorted({match for match in glob.glob(whole, recursive=True) if match})  # noqa: PTH207
    paths, problems = existing_files([whole])
    expected, wrong = existing_files(matches or ["none"])
    assert paths == expected
    assert len(problems) == len(wrong)


def test_a_pattern_for_all_folders_goes_through_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("away", "home/sub"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.jsonl").touch()
    home = tmp_path / "home"
    for number in range(20):  # some 20 ** 40 ways round
        (home / f"round{number}").symlink_to(".")
        (home / "sub" / f"up{number}").symlink_to("..")
    (home / "out").symlink_to("../away")
    assert found_in(home, monkeypatch, "**/x.jsonl") == ["sub/x.jsonl"]
    assert found_in(home, monkeypatch, "**/*.jsonl") == ["sub/x.jsonl"]
    assert found_in(home, monkeypatch, "**/**/sub/**/*.jsonl") == ["sub/x.jsonl"]
    assert found_in(tmp_path, monkeypatch, f"{home}/**/x.jsonl") == [f"{home}/sub/x.jsonl"]


def test_a_folder_is_looked_through_once_for_a_part_of_a_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "/".join("d" * 50)).mkdir(parents=True)
    (tmp_path / "d/x.jsonl").touch()
    with patch.object(os, "scandir", side_effect=os.scandir) as scandir:
        assert found_in(tmp_path, monkeypatch, "**/**/x.jsonl") == ["d/x.jsonl"]
    assert scandir.call_count == 2 * 51


def test_a_link_to_a_folder_that_a_pattern_names_is_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "real/sub/x.jsonl").touch()
    (tmp_path / "link").symlink_to("real")
    assert found_in(tmp_path, monkeypatch, "link/**/x.jsonl") == ["link/sub/x.jsonl"]
    assert found_in(tmp_path, monkeypatch, "li*/sub/*.jsonl") == ["link/sub/x.jsonl"]
    assert found_in(tmp_path, monkeypatch, "**/link/sub/x.jsonl") == ["link/sub/x.jsonl"]


@pytest.mark.parametrize("pattern", ["*" + "n" * 300, "n" * 300 + "/*", "a\0b/*", "a\0b/**/*", "**/a\0b"])
def test_a_glob_that_is_no_possible_name_matches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.chdir(tmp_path)
    paths, problems = existing_files([pattern])
    assert paths == []
    assert [problem.message for problem in problems] == ["no file matches this pattern"]
