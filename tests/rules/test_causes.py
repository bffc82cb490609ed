"""What broke several rules at once is one cause."""

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import render
from tests.records import query, report


def causes(asked: GoldenQuery, results: str) -> list[tuple[tuple[str, ...], str]]:
    """Return the rules of each finding on a query that returned one document a letter, and what they expect."""
    doc_ids = [f"x{rank}" if doc == "x" else doc for rank, doc in enumerate(results)]
    findings = report([asked], {asked.id: doc_ids}).findings
    return [(finding.ids, render(finding.expected)) for finding in findings]


def test_nothing_relevant_in_the_top_k_is_one_cause_of_two_violations() -> None:
    both = ("must_rank_at_most", "must_include")
    assert causes(query("q", "A", must_rank_at_most=3), "xxxxx") == [(both, "A in top 3")]
    assert causes(query("q", "A", "B", must_rank_at_most=3), "xxxxx") == [
        (both, "A and B in top 5, one of them in top 3")
    ]
    any_of = query("q", "A", "B", must_rank_at_most=3, must_include_any=True)
    assert causes(any_of, "xxxxx") == [(("must_rank_at_most", "must_include_any"), "A or B in top 3")]


def test_a_document_that_is_too_low_and_another_that_is_missing_are_two_causes() -> None:
    assert causes(query("q", "A", "B", must_rank_at_most=1, forbidden_doc_ids=("F",)), "FAxxx") == [
        (("forbidden_docs",), "no F in the results"),
        (("must_rank_at_most",), "A or B in top 1"),
        (("must_include",), "B in top 5"),
    ]
