"""The context recall of a row: what is compared, and what a row must have."""

import sys
from typing import Any

import pytest

from ragcontract.answers.metric_options import TextRecallOptions
from ragcontract.core.golden import ExpectedAnswer, GoldenQuery
from ragcontract.core.metric import MetricSettings, Missing
from ragcontract.core.run import Result, RunRow
from ragcontract.metrics.context_recall import CONTEXT_RECALL_IDS, ContextRecallText, context_recall
from tests.records import query

K = 2
RETURNS, REFUNDS = "Returns are accepted within 30 days.", "Refunds take five working days."


def asked(*references: str) -> GoldenQuery:
    return query("q", answer=ExpectedAnswer(reference_contexts=references))


def row(*texts: str | None, **fields: Any) -> RunRow:
    return RunRow(query_id="q", results=[Result(doc_id=f"d{n}", text=text) for n, text in enumerate(texts)], **fields)


def family(k: int = K, **options: Any) -> ContextRecallText:
    return ContextRecallText(TextRecallOptions(**options), k)


def test_recall_of_ids_has_no_cut_off_and_needs_relevant_documents() -> None:
    found = RunRow(query_id="q", results=[Result(doc_id=doc_id) for doc_id in [*"xxxxxxxxx", "a", 7]])
    assert CONTEXT_RECALL_IDS.values(query("q", "a", "b", "7", "c"), found) == (0.5,)
    assert CONTEXT_RECALL_IDS.values(query("q"), found) == ()


def test_the_texts_of_the_first_k_results_are_compared() -> None:
    wanted = asked(RETURNS, REFUNDS)
    assert family().values(wanted, row(RETURNS, "x", REFUNDS)) == (0.5,)
    assert family(3).values(wanted, row(RETURNS, "x", REFUNDS)) == (1.0,)
    assert family().values(wanted, row()) == (0.0,)


def test_retrieved_contexts_are_compared_instead_where_the_row_has_them() -> None:
    assert family().values(asked(RETURNS), row(RETURNS, retrieved_contexts=["x", "y", REFUNDS])) == (0.0,)
    assert family().values(asked(REFUNDS), row(None, retrieved_contexts=["x", "y", REFUNDS])) == (1.0,)
    assert family().values(asked(REFUNDS), row(REFUNDS, retrieved_contexts=[])) == (0.0,)


def test_a_result_without_a_text_is_missing_only_among_the_first_k() -> None:
    why = "has no text in results[1], which context_recall_text needs; export it, or retrieved_contexts"
    assert family().values(asked(RETURNS), row("x", None)) == Missing(why)
    assert family().values(asked(RETURNS), row("x", "", None)) == (0.0,)


def test_a_row_without_results_and_contexts_is_missing_them() -> None:
    why = "has neither retrieved_contexts nor results, which context_recall_text needs; export one of them"
    assert family().values(asked(RETURNS), RunRow(query_id="q")) == Missing(why)


def test_a_query_without_reference_contexts_does_not_count() -> None:
    assert family().values(query("q", "a"), row(None)) == ()
    assert family().values(query("q", answer=ExpectedAnswer(reference="x")), row(None)) == ()


def test_texts_that_are_too_long_for_a_distance_are_reported() -> None:
    found = family(measure="levenshtein").values(asked("a" * 10_001), row("b" * 10**6))
    assert isinstance(found, Missing)
    assert found.why.startswith("has 1,000,000 characters of contexts and 10,001 of reference_contexts, too many for")


def test_the_options_are_those_of_the_configuration_and_make_other_numbers() -> None:
    declared = {"context_recall_text": TextRecallOptions(measure="jaro", threshold=0.9)}
    prints = set()
    for settings in (
        MetricSettings(cutoffs=(5, 1)),
        MetricSettings(cutoffs=(1,)),
        MetricSettings(cutoffs=(5, 1), declared=declared),
    ):
        _, by_text = context_recall(settings)
        prints.add(by_text.metrics[0].fingerprint)
    assert prints == {"coverage, 0.5, top 5", "coverage, 0.5, top 1", "jaro, 0.9, top 5"}


# The contract


def test_a_reference_without_words_is_refused_for_coverage_only() -> None:
    queries = [asked(RETURNS, "…"), query("p", "a")]
    [complaint] = family().complaints(queries)
    assert (str(complaint.location), complaint.warns) == (f"{queries[0].location}: reference_contexts[1]", False)
    assert complaint.message == "has no words to search for; give a text with words, or choose another measure for it"
    assert list(family(measure="hamming").complaints(queries)) == []


@pytest.mark.parametrize(("measure", "threshold", "warned"), [("jaro", 0.89, True), ("jaro_winkler", 0.5, True),
    ("jaro", 0.9, False), ("levenshtein", 0.1, False)])  # fmt: skip
def test_a_threshold_at_which_unrelated_sentences_count_is_warned_of(
    measure: Any, threshold: float, warned: bool
) -> None:
    found = list(family(measure=measure, threshold=threshold).complaints([]))
    assert [one.warns for one in found] == [True] * warned
    assert [one.option for one in found] == [("metrics", "context_recall_text", "threshold")] * warned


def test_without_rapidfuzz_a_distance_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    [complaint] = family(measure="levenshtein").complaints([])
    assert (complaint.option, complaint.warns) == (("metrics", "context_recall_text", "measure"), False)
    assert complaint.message.startswith("levenshtein needs rapidfuzz; install it: pip install 'rag-contract[text]'")
    assert list(family().complaints([])) == []


def test_a_reference_without_words_is_not_reported_for_each_row_as_well() -> None:
    assert family().values(asked("…"), row("x")) == ()
