"""Context recall as a judge sees it: which queries have it, and where it comes from."""

from typing import Any

from ragcontract.core.config_sections import JudgeSettings
from ragcontract.core.golden import ExpectedAnswer, GoldenQuery
from ragcontract.core.metric import MetricSettings, Missing
from ragcontract.core.run import Result, RunRow
from ragcontract.judgments.judged_metrics import JudgedValues, SupportedClaims, supported_claims
from ragcontract.judgments.replay import Replay
from ragcontract.metrics.named_scores import DeclaredScore
from tests.judgment_files import CONTEXT, FALSE, FINGERPRINT, TRUE, case_of, judgments_on
from tests.records import query

ASKED = query("q1", answer=ExpectedAnswer(reference_claims=(TRUE, FALSE)))


def case(*contexts: str) -> Any:
    return case_of({"id": "q1", "query": ASKED.query, "reference_claims": [TRUE, FALSE]}, contexts)


def family(*contexts: str) -> SupportedClaims:
    replay = Replay(judgments_on(case(*(contexts or (CONTEXT,)))), JudgeSettings())
    return SupportedClaims(1, replay, ["q1"])


def row(*texts: str, **fields: Any) -> RunRow:
    return RunRow(query_id="q1", results=[Result(doc_id=str(at), text=text) for at, text in enumerate(texts)], **fields)


def test_it_is_the_fraction_of_the_claims_that_are_supported_and_has_what_was_said() -> None:
    values = family().values(ASKED, row(CONTEXT, "below the cut-off"))
    assert values == (0.5,)
    assert isinstance(values, JudgedValues)
    assert [judgment.verdict for judgment in values.judgments] == [True, False]


def test_what_was_in_the_prompt_is_judged_where_the_row_says_it() -> None:
    assert family().values(ASKED, row("other", retrieved_contexts=[CONTEXT])) == (0.5,)
    assert isinstance(family().values(ASKED, row(CONTEXT, retrieved_contexts=["other"])), Missing)


def test_nothing_but_blanks_supports_nothing_and_needs_no_judgment() -> None:
    for nothing in (row(), row(" ", "x"), row(retrieved_contexts=["", "\n"])):
        values = family().values(ASKED, nothing)
        assert values == (0.0,)
        assert isinstance(values, JudgedValues)
        assert values.judgments == ()


def test_without_claims_or_without_judgments_a_query_has_no_part_in_it() -> None:
    without: GoldenQuery = query("q1", answer=ExpectedAnswer(reference="x"))
    assert family().values(without, row(CONTEXT)) == ()
    assert SupportedClaims(1).values(ASKED, row(CONTEXT)) == ()


def test_numbers_of_another_judge_or_cut_off_have_another_fingerprint() -> None:
    assert family().metrics[0].fingerprint == f"{FINGERPRINT}; top 1"


def test_a_score_of_another_tool_takes_its_name() -> None:
    (one,) = supported_claims(MetricSettings(cutoffs=(5, 1)))
    assert [metric.key for metric in one.metrics] == ["context_recall"]
    declared = {"context_recall": DeclaredScore(source="scores")}
    assert list(supported_claims(MetricSettings(cutoffs=(5,), declared=declared))) == []
