from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.__main__ import PAGE
from tests.benchmarks.builders import results

TEMPLATE = PAGE.read_text(encoding="utf-8")


def test_each_part_of_the_page_is_made_anew_and_all_else_stays() -> None:
    once = page.render(TEMPLATE, results())
    assert page.render(once, results()) == once
    assert page.render(once, results(sizes=(100,))) != once
    for name in page.PARTS:
        assert once.count(f"<!-- begin: {name} -->\n") == 1
    assert once.count("<!-- end -->") == len(page.PARTS)


def test_a_page_without_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="has no part 'targets'"):
        page.render(TEMPLATE.replace("begin: targets", "begin: wishes"), results())


def test_a_table_has_a_row_a_tool_and_a_column_a_size() -> None:
    head, line, *body = page.figures(results(), "wall").splitlines()
    assert head == "|  | 100 | 1,000 | 10,000 | 100,000 | 1,000,000 |"
    assert line == "| --- | ---: | ---: | ---: | ---: | ---: |"
    assert body[0] == "| **rag-contract** | 0.10 s | 0.11 s | 0.20 s | 1.10 s | 10.1 s |"
    assert body[2] == "| bare imports | 0.10 s |  |  |  |  |"
    assert "| 510 MB |" in page.figures(results(), "peak")


def test_the_page_says_what_was_left_out() -> None:
    found = results(sizes=(100,))
    found.missing["ranx"] = "ranx cannot be installed: no such version"
    assert "Not measured: ranx cannot be installed: no such version." in page.how(found)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0312, "0.031 s"), (0.312, "0.31 s"), (3.12, "3.12 s"), (66.94, "66.9 s")]
)
def test_seconds_have_the_digits_that_count(value: float, text: str) -> None:
    assert page.seconds(value) == text


def test_the_page_and_the_plot_are_written_side_by_side(tmp_path: Path) -> None:
    written = list(page.write(results(), PAGE, tmp_path / "performance.md"))
    assert written == [tmp_path / "images" / "performance.svg", tmp_path / "performance.md"]
    assert "(images/performance.svg)" in written[1].read_text(encoding="utf-8")
