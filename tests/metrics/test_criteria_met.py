"""The share of criteria that an answer meets, as a judge sees it."""

from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.core.config_sections import JUDGED_METRICS, JudgeSettings
from ragcontract.core.golden import Criterion, ExpectedAnswer, GoldenQuery
from ragcontract.core.metric import MetricSettings, Missing
from ragcontract.core.run import Result, RunRow
from ragcontract.judgments.items import criteria_case
from ragcontract.judgments.judged_metrics import CriteriaMet, JudgedValues, criteria_met
from ragcontract.judgments.replay import Replay
from ragcontract.metrics.named_scores import DeclaredScore
from ragcontract.registry import BUILT_IN
from tests.judgment_files import FINGERPRINT, judgments_on
from tests.records import query

CRITERIA = (Criterion(id="1", text="Returns are free."), Criterion(id="tone", text="Is polite."))
ANSWER = "Returns are free. Bye."
ASKED = query("q1", answer=ExpectedAnswer(criteria=CRITERIA))


def row(response: Any = ANSWER, **fields: Any) -> RunRow:
    return RunRow(query_id="q1", results=[], response=response, **fields)


def family(judged: RunRow | None = None) -> CriteriaMet:
    case = criteria_case(ASKED, judged or row(), 1)
    assert case is not None
    assert not isinstance(case, str)
    replay = Replay(judgments_on(case), JudgeSettings())
    return CriteriaMet(1, replay, ["q1"])


def test_it_is_the_share_of_the_criteria_that_are_met_and_has_what_was_said() -> None:
    values = family().values(ASKED, row())
    assert values == (0.5,)
    assert isinstance(values, JudgedValues)
    said = [(judgment.item, judgment.verdict) for judgment in values.judgments]
    assert said == [("criterion:1", True), ("criterion:tone", False)]


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_no_answer_meets_no_criterion_and_needs_no_judgment(nothing: str | None) -> None:
    for of_row in (row(nothing), row(UNSET, error="timeout")):
        values = family().values(ASKED, of_row)
        assert values == (0.0,)
        assert isinstance(values, JudgedValues)
        assert values.judgments == ()


def test_a_row_that_does_not_say_what_was_answered_cannot_be_judged() -> None:
    missing = family().values(ASKED, row(UNSET))
    assert isinstance(missing, Missing)
    assert "has no response, which its criteria need" in missing.why


def test_another_answer_or_other_retrieved_texts_have_no_judgments() -> None:
    for other in (row("Returns cost $5."), row(retrieved_contexts=["Returns cost $5."])):
        missing = family().values(ASKED, other)
        assert isinstance(missing, Missing)
        assert "its criteria, question, answer or retrieved texts have changed since" in missing.why


def test_texts_that_are_not_known_are_no_part_of_what_is_judged() -> None:
    unknown = RunRow(query_id="q1", results=[Result(doc_id="d")], response=ANSWER)
    assert family(judged=unknown).values(ASKED, unknown) == (0.5,)


def test_without_criteria_or_without_judgments_a_query_has_no_part_in_it() -> None:
    without: GoldenQuery = query("q1", answer=ExpectedAnswer(reference="x"))
    assert family().values(without, row()) == ()
    assert CriteriaMet(1).values(ASKED, row()) == ()


def test_its_fingerprint_names_the_judge_and_the_cut_off() -> None:
    assert family().metrics[0].fingerprint == f"{FINGERPRINT}; top 1"


def test_a_score_of_another_tool_takes_its_name() -> None:
    (one,) = criteria_met(MetricSettings(cutoffs=(5, 1)))
    assert [metric.key for metric in one.metrics] == ["criteria_met"]
    declared = {"criteria_met": DeclaredScore(source="scores")}
    assert list(criteria_met(MetricSettings(cutoffs=(5,), declared=declared))) == []


def test_the_configuration_knows_the_names_of_all_judged_metrics() -> None:
    families = [family for provider in BUILT_IN.providers for family in provider(MetricSettings(cutoffs=(5,)))]
    assert {metric.key for one in families for metric in one.metrics if metric.task} == JUDGED_METRICS
