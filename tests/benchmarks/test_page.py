import re
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.__main__ import PAGE
from tests.benchmarks.builders import results

PAGES = {PAGE: page.USERS, page.contributors_page(PAGE): page.CONTRIBUTORS}


@pytest.mark.parametrize("path", PAGES, ids=["users", "contributors"])
def test_each_part_of_a_page_is_regenerated_and_all_else_stays(path: Path) -> None:
    parts, template = PAGES[path], path.read_text(encoding="utf-8")
    once = page.render(template, parts, results())
    assert page.render(once, parts, results()) == once
    assert page.render(once, parts, results(sizes=(100,))) != once
    for name in parts:
        assert once.count(f"<!-- begin: {name} -->\n") == 1
    assert once.count("<!-- end -->") == len(parts)
    outside = re.compile(r"<!-- begin: .*?<!-- end -->", re.DOTALL)
    assert outside.sub("", once) == outside.sub("", template)


def test_a_page_without_a_part_is_refused() -> None:
    template = page.contributors_page(PAGE).read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="has no part 'targets'"):
        page.render(template.replace("begin: targets", "begin: wishes"), page.CONTRIBUTORS, results())


def test_targets_and_floors_are_on_the_contributors_page_only() -> None:
    users, contributors = (page.render(path.read_text(encoding="utf-8"), PAGES[path], results()) for path in PAGES)
    for internal in ("missed", "decode floor", "bare imports", "a profiler"):
        assert internal in contributors
        assert internal not in users
    assert "pytrec_eval" in users
    assert "decode floor" not in page.plot(results())


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


def test_the_pages_and_the_plot_are_written_together(tmp_path: Path) -> None:
    written = list(page.write(results(), PAGE, tmp_path / "background" / "performance.md"))
    image, users, contributors = (
        tmp_path / name
        for name in ("images/performance.svg", "background/performance.md", "contributing/performance.md")
    )
    assert written == [image, users, contributors]
    assert "(../images/performance.svg)" in users.read_text(encoding="utf-8")
    assert "<!-- begin: targets -->" in contributors.read_text(encoding="utf-8")
