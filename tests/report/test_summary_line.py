"""The result as one line of plain text."""

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.report.build import error_report
from ragcontract.report.headline import summary_of
from ragcontract.report.record import Provenance, Report
from tests.records import NOW, query, report


def named(name: str, made: Report | None = None) -> Report:
    return replace(made or report([query("q", "A")], {"q": ["x"]}), source=Provenance(contract=name))


def test_the_line_has_the_contracts_name_the_verdict_and_why() -> None:
    assert summary_of(named("docs_en")) == "docs_en: 1 of 1 query broken"
    made = report([query("q", "A")], {"q": ["A"]})
    assert made.summary_line == "1 query holds; no limits are set"


def test_input_that_cannot_be_judged_has_its_first_problem_and_the_number_of_the_others() -> None:
    source = Provenance(contract="docs")
    made = error_report(["golden.jsonl:1: id: is missing", "b"], 1, [], NOW, source)
    assert made.summary_line == ("docs: could not be judged: golden.jsonl:1: id: is missing (and 2 more problems)")
    assert error_report(["a"], 0, [], NOW).summary_line == "could not be judged: a"


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31mred", "a\u202eb", "::error::x\r\n"])
def test_it_is_one_line_without_control_characters_whatever_the_files_hold(text: str) -> None:
    made = report([query("q", "A", tags=(text,))], {"q": ["x"]}, None, {"tags": {text: {"minimums": {"mrr_at_k": 1}}}})
    for line in (summary_of(named(text, made)), error_report([text], 0, [], NOW).summary_line):
        assert line.isprintable()
        assert len(line.splitlines()) == 1


def test_it_is_cut_where_it_is_long() -> None:
    assert len(error_report(["x" * 900], 0, [], NOW).summary_line) == bounds.SUMMARY_LINE
