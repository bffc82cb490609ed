from pathlib import Path

from benchmarks import missing_labels
from benchmarks.missing_labels import COUNT, WAYS, Checked
from tests.benchmarks import real_runs


def found(no_worse: set[str], count: set[str], skip: set[str], *, judged: float, said: bool) -> Checked:
    red = {way: frozenset(count if way == COUNT else skip) for way in WAYS}
    return Checked(no_worse=frozenset(no_worse), red=red, judged=judged, said=said)


def test_the_table_counts_red_metrics_of_pairs_that_are_no_worse() -> None:
    every = {"mrr", "ndcg", "recall"}
    pairs = [
        found(every, every, {"recall"}, judged=0.4, said=True),
        found({"mrr"}, {"mrr", "ndcg"}, {"ndcg"}, judged=0.6, said=False),
        found(set(), every, every, judged=0.0, said=True),
    ]
    lines = "".join(missing_labels.content(pairs)).splitlines()
    assert lines[2:5] == [
        "| MRR@10 | 2 | 2 | 0 | 0 | 0 |",
        "| nDCG@10 | 1 | 1 | 0 | 0 | 0 |",
        "| Recall@10 | 1 | 1 | 1 | 1 | 1 |",
    ]
    assert lines[6] == (
        "Of the top 10 of the change, 50% were judged on average. Of the 2 pairs that are red with `count`, the report "
        "of 1 says that labels may be missing."
    )


def test_labels_are_what_the_baseline_has_found() -> None:
    robust = real_runs.robust()
    assert missing_labels.golden_of(robust, robust.systems["first"])[7]["relevance"] == {"a": 1, "b": 2}


def test_a_system_that_finds_other_documents_is_red_where_they_count_and_not_where_they_are_skipped(
    tmp_path: Path,
) -> None:
    robust = real_runs.robust()
    means = missing_labels.true_means(robust, tmp_path)
    # Both find two of four relevant documents, but the second one's are of lower grades.
    assert means["first"]["mrr"] == means["second"]["mrr"] == 1
    other = missing_labels.checked(robust, means, ("first", "second"))
    assert (other.no_worse, other.judged, other.said) == ({"mrr", "recall"}, 0, True)
    assert other.red[COUNT] == {"mrr", "ndcg", "recall"}
