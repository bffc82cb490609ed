"""junit.xml, read as its consumers read it."""

import re
import xml.etree.ElementTree as ET

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.safe_text import visible
from ragcontract.report.build import error_report
from ragcontract.report.formats import FORMATS
from ragcontract.report.record import Provenance, Report
from tests.records import NOW, Made, query, report

JUNIT = next(form for form in FORMATS if form.name == "junit")

# What an XML 1.0 document may hold.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def written(made: Report) -> str:
    return b"".join(JUNIT.render(Made(made))).decode()


def parse(made: Report) -> tuple[junitparser.TestSuite, junitparser.TestSuite]:
    """Return the suites for gates and for queries."""
    text = written(made)
    assert text.encode("ascii").startswith(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites ')
    gates, queries = junitparser.JUnitXml.fromstring(text.encode())
    return gates, queries


def properties(suite: junitparser.TestSuite) -> dict[str, str]:
    return {found.name: found.value for found in suite.properties()}  # type: ignore[no-untyped-call]


def failing() -> Report:
    config = {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": "90%"}, "minimums": {"hitrate_at_k": 0.9}}
    asked = [query("lost", "A", must_rank_at_most=3), query("fine", "A"), query("leak", "A", forbidden_doc_ids=("F",))]
    now = {"lost": ["x"], "fine": ["A"], "leak": ["F"]}
    return report(asked, now, {"lost": ["A"], "fine": ["A"], "leak": ["A"]}, config)


def test_a_suite_for_gates_and_one_for_queries() -> None:
    gates, queries = parse(failing())
    assert (gates.name, gates.tests, gates.failures, gates.errors, gates.skipped) == ("rag-contract gates", 3, 2, 0, 0)
    assert (queries.name, queries.tests, queries.failures) == ("rag-contract queries", 3, 2)
    assert [case.name for case in gates] == ["fail_on.mrr_drop_gt", "fail_on.recall_drop_gt", "minimums.hitrate_at_k"]
    assert [case.name for case in queries] == ["lost", "fine", "leak"]
    assert {case.classname for case in gates} == {"rag-contract.gates"}
    assert {case.classname for case in queries} == {"rag-contract.queries"}
    assert [case.is_passed for case in queries] == [False, True, False]


def test_failures_have_a_type_and_a_message_and_say_more() -> None:
    gates, queries = parse(failing())
    (broken,) = next(iter(gates)).result
    assert (broken.type, broken.message) == ("drop", "MRR@5 fell by 0.67, allowed drop 0.10")
    assert broken.text == broken.message
    lost, _, leak = queries
    (failure,) = lost.result
    assert failure.type == "must_rank_at_most, must_include"
    assert failure.message == "new: expected A in top 3; found: missing from top 5 (was rank 1)"
    assert failure.text == "What about lost?\nExpected A in top 3\nFound: missing from top 5 (was rank 1)"
    (failure,) = leak.result
    assert failure.type == "forbidden_docs, must_include"
    assert failure.message == (
        "new: expected no F in the results; found: rank 1 (was not there); "
        "expected A in top 5; found: missing from top 5 (was rank 1)"
    )


def test_every_case_has_the_file_and_the_line_that_define_it() -> None:
    asked = [query("q", "A", location="golden/a.jsonl:17"), query("p", location="golden.parquet")]
    root = ET.fromstring(written(report(asked, {"q": ["A"], "p": []}, config={"minimums": {"mrr_at_k": 0.1}})))
    cases = {case.get("name"): (case.get("file"), case.get("line")) for case in root.iter("testcase")}
    assert cases == {
        "minimums.mrr_at_k": ("ragcontract.yml", "7"),
        "q": ("golden/a.jsonl", "17"),
        "p": ("golden.parquet", None),
    }


def test_suites_and_cases_have_the_name_of_their_contract() -> None:
    made = replace(failing(), source=Provenance(contract="docs\x1b"))
    gates, queries = parse(made)
    assert (gates.name, queries.name) == (r"rag-contract docs\x1b gates", r"rag-contract docs\x1b queries")
    assert {case.classname for case in queries} == {r"rag-contract.docs\x1b.queries"}
    unusable = error_report(["x"], 0, [], NOW, Provenance(contract="docs"))
    case = ET.fromstring(JUNIT.render_error(unusable)).find(".//testcase")
    assert case is not None
    assert case.get("classname") == "rag-contract.docs.input"


def test_the_metrics_are_properties_of_both() -> None:
    made = failing()
    expected = {key: str(metric.current) for key, metric in made.metrics.items()} | {"verdict": "fail", "k": "5"}
    assert [properties(suite) for suite in parse(made)] == [expected, expected]
    assert float(expected["hitrate_at_5"]) == pytest.approx(1 / 3)


def test_a_metric_without_a_number_is_left_out() -> None:
    gates, queries = parse(report([query("q")], {"q": []}))
    assert properties(queries) == {"verdict": "pass", "k": "5"}
    assert (gates.tests, queries.tests) == (0, 1)


def test_the_attributes_are_those_of_the_format() -> None:
    root = ET.fromstring(written(failing()))
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("errors")) == ("testsuites", "6", "4", "0")
    for suite in root:
        assert all(re.fullmatch(r"\d+", suite.get(name, "")) for name in ("tests", "failures", "errors", "skipped"))
        assert float(suite.get("time", "")) == 0
        for case in suite.iter("testcase"):
            assert set(case.keys()) - {"line"} == {"name", "classname", "file"}
            assert [child.tag for child in case] in ([], ["failure"])


def test_one_element_a_line() -> None:
    text = written(failing())
    lines = text.splitlines()
    assert len(lines) > 20
    assert all(line.count("<") <= 2 for line in lines)
    assert text.endswith("</testsuites>\n")


NASTY = (
    "\x00\x01\x08\x0b\x1b[31m\x7f\x85",
    "\ud800 \udfff",
    "\ufffe\uffff",
    "]]> <![CDATA[ x ]]>",
    "</failure></testcase>",
    "<!-- --> <?xml?>",
    "&amp; &lt; &#0; &#xFFFF;",
    "\"quotes\" 'and' <angles>",
    "><",
    "line\none\r\ntwo\ttabs",
    "👩‍👩‍👧 你好 \U0001fffe",
    "x" * 100_000,
    " ",
)


@pytest.mark.parametrize("value", NASTY)
def test_nasty_text_arrives_as_it_is_shown(value: str) -> None:
    check(value)


@given(st.text(st.characters(), min_size=1))
def test_any_text_arrives_as_it_is_shown(value: str) -> None:
    check(value)


def check(value: str) -> None:
    made = report([query(value, value + "1", query=value), query(value + "2", value)], {value: [], value + "2": []})
    text = written(made)
    assert not NOT_XML.search(text)
    _, queries = parse(made)
    shown = visible(value)
    assert [case.name for case in queries] == [shown, visible(value + "2")]
    (failure,) = next(iter(queries)).result
    assert failure.message == f"expected {visible(value + '1')} in top 5; found: missing from top 5"
    assert failure.text == f"{shown}\nExpected {visible(value + '1')} in top 5\nFound: missing from top 5"


def many(queries: int, broken: int) -> Report:
    asked = [query(f"q{number}", "A") for number in range(queries)]
    return report(asked, {f"q{number}": ["x" if number == broken else "A"] for number in range(queries)})


def test_ten_thousand_queries_are_all_listed() -> None:
    _, queries = parse(many(bounds.ALL_QUERIES, broken=7))
    assert bounds.ALL_QUERIES == 10_000
    assert (queries.tests, queries.failures) == (10_000, 1)
    assert "passing_queries_not_listed" not in properties(queries)


def test_of_more_the_passing_ones_are_counted_and_a_failing_one_is_listed() -> None:
    gates, queries = parse(many(bounds.ALL_QUERIES + 1, broken=10_000))
    assert [case.name for case in queries] == ["q10000"]
    assert (queries.tests, queries.failures) == (1, 1)
    assert properties(queries)["passing_queries_not_listed"] == "10000"
    assert "passing_queries_not_listed" not in properties(gates)
