"""The commands in docs/guides/label.md do what the page shows."""

from pathlib import Path

from scripts import docs
from tests.process import shell

PAGE = (docs.ROOT / "docs" / "guides" / "label.md").read_text()


def test_the_example_prints_what_is_shown(tmp_path: Path) -> None:
    ended = shell("set -e\n" + docs.block(PAGE, "label"), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == docs.block(PAGE, "label output")


def test_the_example_of_candidates_runs(tmp_path: Path) -> None:
    shell(docs.block(PAGE, "label").partition("printf")[0], cwd=tmp_path)
    ended = shell("set -e\n" + docs.block(PAGE, "candidates"), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert "nothing is marked in candidates.txt" in ended.out


def test_the_example_of_judging_what_is_new_turns_a_red_check_green(tmp_path: Path) -> None:
    for name in ("unjudged", "judge"):
        ended = shell("set -e\n" + docs.block(PAGE, name), cwd=tmp_path)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == docs.block(PAGE, f"{name} output")
