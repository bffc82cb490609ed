from pathlib import Path

from benchmarks import missing_labels
from benchmarks.missing_labels import COUNT, JUDGED_FIRST, WAYS, Checked
from benchmarks.small_checks import write_set
from benchmarks.stages import write_config
from tests.benchmarks import real_runs


def found(no_worse: set[str], count: set[str], skip: set[str], *, judged: float) -> Checked:
    red = {way: frozenset(count if way == COUNT else skip) for way in WAYS}
    left = {number: frozenset(count) for number in JUDGED_FIRST}
    return Checked(no_worse=frozenset(no_worse), red=red, left=left, judged=judged)


def test_the_table_counts_red_metrics_of_pairs_that_are_no_worse() -> None:
    every = {"mrr", "ndcg", "recall"}
    pairs = [
        found(every, every, {"recall"}, judged=0.4),
        found({"mrr"}, {"mrr", "ndcg"}, {"ndcg"}, judged=0.6),
        found({"ndcg"}, set(), {"mrr"}, judged=0.8),
    ]
    lines = "".join(missing_labels.content(pairs)).splitlines()
    assert lines[2:5] == [
        "| MRR@10 | 2 | 2 | 0 | 0 | 0 | 2 | 2 |",
        "| nDCG@10 | 2 | 1 | 0 | 0 | 0 | 1 | 1 |",
        "| Recall@10 | 1 | 1 | 1 | 1 | 1 | 1 | 1 |",
    ]
    assert lines[6] == "Of the top 10 of the change, 40% are documents that nobody has judged, on average."


def test_labels_are_what_the_baseline_has_found() -> None:
    robust = real_runs.robust()
    assert missing_labels.golden_of(robust, robust.systems["first"])[7]["relevance"] == {"a": 1, "b": 2}


def test_a_system_that_finds_other_documents_is_red_until_they_are_skipped_or_judged() -> None:
    robust = real_runs.robust()
    means = missing_labels.true_means(robust)
    assert means["first"]["recall"] == means["second"]["recall"]
    other = missing_labels.checked(robust, ("first", "second"), frozenset({"mrr", "recall"}))
    assert other.no_worse == frozenset({"mrr", "recall"})
    assert other.judged == 0
    assert other.red[COUNT] == frozenset({"mrr", "ndcg", "recall"})
    fifty, two_hundred = (other.left[number] for number in JUDGED_FIRST)
    assert fifty == other.red[COUNT]
    assert two_hundred < fifty


def test_the_pairs_to_judge_are_those_that_the_command_lists(tmp_path: Path) -> None:
    robust = real_runs.robust()
    baseline, change = robust.systems["first"], robust.systems["second"]
    write_set(tmp_path, missing_labels.golden_of(robust, baseline), baseline)
    write_config(tmp_path, fail_on=missing_labels.LIMITS)
    listed = missing_labels.first_to_judge(tmp_path, change, 7)
    assert len(set(listed)) == 7
    assert all(document in change[topic] and document not in baseline[topic] for topic, document in listed)
