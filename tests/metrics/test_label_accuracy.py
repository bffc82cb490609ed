"""Label accuracy: exactly the expected class, or not."""

import pytest

from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.metric import MetricSettings, Missing
from ragcontract.core.run import RunRow
from ragcontract.metrics.answers import labels
from tests.records import query

(FAMILY,) = labels(MetricSettings(cutoffs=(5,)))
ASKED = query("q1", answer=ExpectedAnswer(expected_label="billing"))


@pytest.mark.parametrize(("label", "value"), [("billing", 1.0), ("Billing", 0.0), ("shipping", 0.0)])
def test_a_label_is_compared_as_it_is(label: str, value: float) -> None:
    assert FAMILY.values(ASKED, RunRow(query_id="q1", label=label)) == (value,)


def test_a_query_that_expects_no_label_has_no_part_in_it() -> None:
    assert FAMILY.values(query("q1", "doc1"), RunRow(query_id="q1", label="billing")) == ()


def test_a_row_without_a_label_cannot_be_judged() -> None:
    found = FAMILY.values(ASKED, RunRow(query_id="q1"))
    assert found == Missing("has no label, which expected_label needs; export the class that the application chose")


def test_an_application_that_failed_chose_no_label() -> None:
    assert FAMILY.values(ASKED, RunRow(query_id="q1", error="timeout")) == (0.0,)
    assert FAMILY.values(ASKED, RunRow(query_id="q1", error="timeout", label="billing")) == (1.0,)
