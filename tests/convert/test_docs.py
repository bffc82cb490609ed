"""The commands in docs/guides/convert.md do what the page shows."""

from pathlib import Path

import pytest

from ragcontract.convert.collection import FORMATS, OWN
from scripts import docs
from tests.process import shell

PAGE = (docs.ROOT / "docs" / "guides" / "convert.md").read_text()


@pytest.mark.parametrize("form", sorted({*FORMATS, "ragas scores"} - {OWN}))
def test_the_example_of_every_format_prints_what_is_shown(form: str, tmp_path: Path) -> None:
    ended = shell("set -e\n" + docs.block(PAGE, f"convert {form}"), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == docs.block(PAGE, f"convert {form} output")


def test_the_configuration_that_comes_with_judgments_is_the_one_that_is_shown(tmp_path: Path) -> None:
    assert shell("set -e\n" + docs.block(PAGE, "convert trec"), cwd=tmp_path).code == 0
    assert (tmp_path / "ragcontract.yml").read_text() == docs.block(PAGE, "convert trec config")


def test_every_option_of_every_format_is_in_the_table() -> None:
    for name, one in FORMATS.items():
        form = one.load()
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        spelled = row.replace("topics", "queries")
        assert all(f"--{option}`" in spelled for option in form.inputs), name
        assert "the same with `-out`" in row or all(f"--{option}-out`" in spelled for option in form.outputs), name
        assert "the same with" not in row or len(form.outputs) == len(form.inputs)
