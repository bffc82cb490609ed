"""Why a run is worse than its baseline: the right cause, or none."""

from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.phrase import render
from ragcontract.report.record import Report
from tests.records import Rows, query, report

QUERIES = 12
ASKED = [query(f"q{n}", f"{'crypto' if n < 4 else 'fs'}/doc_{n}") for n in range(QUERIES)]
LIMITS = {"k": 5, "fail_on": {"recall_drop_gt": 0.05, "mrr_drop_gt": 0.05}}


def lists(found_at: int = 1) -> dict[str, list[str]]:
    """Return five documents for each query, the relevant one at a rank."""
    made = {}
    for number, asked in enumerate(ASKED):
        others = [f"other/{number}_{n}" for n in range(4)]
        made[asked.id] = [*others[: found_at - 1], *asked.relevant_doc_ids, *others[found_at - 1 :]]
    return made


def without(ids: set[str], rows: dict[str, list[str]], fill: str = "new") -> dict[str, list[str]]:
    """Return the rows of an index that lacks some documents: others move up, and new ones come in below."""
    kept = {name: [doc_id for doc_id in doc_ids if doc_id not in ids] for name, doc_ids in rows.items()}
    return {name: [*row, *(f"{fill}/{name}_{n}" for n in range(5 - len(row)))] for name, row in kept.items()}


LOST = {"crypto/doc_0", "crypto/doc_1", "crypto/doc_2", "fs/doc_5"}
VANISHED = (
    "4 relevant documents that the baseline found occur nowhere in this run (crypto/…, fs/…): are they still indexed?"
)


def causes(run: Any, before: Any, **config: Any) -> list[tuple[str, str]]:
    made: Report = report(ASKED, run, before, config=LIMITS | config)
    return [(cause.kind, render(cause.phrase)) for cause in made.causes]


@pytest.mark.parametrize(
    ("folder", "where"), [("d", "d/a1, d/a2"), ("docs/operations/workers", "docs/operations/workers/…")]
)
def test_a_few_short_documents_are_named_themselves(folder: str, where: str) -> None:
    long = "" if folder == "d" else "_of_a_long_name"
    names = [f"{folder}/a1{long}", f"{folder}/a2{long}"]
    asked = [*ASKED, *(query(f"gone{number}", name) for number, name in enumerate(names))]
    before = lists() | {f"gone{number}": [name, "x/1", "x/2"] for number, name in enumerate(names)}
    now = lists() | {f"gone{number}": ["x/1", "x/2", f"x/{number + 3}"] for number in range(2)}
    (cause,) = report(asked, now, before, config=LIMITS).causes
    assert f"nowhere in this run ({where}): are they" in render(cause.phrase)


def test_documents_that_vanished_are_named_by_their_folders() -> None:
    made = report(ASKED, without(LOST, lists()), lists(), config=LIMITS)
    (cause,) = made.causes
    assert (cause.kind, render(cause.phrase), cause.queries, cause.share) == ("vanished", VANISHED, 4, 1)


def test_a_document_without_a_folder_is_named_itself() -> None:
    asked = [query(f"q{n}", f"kb-{n}") for n in range(4)]
    before = {one.id: [*one.relevant_doc_ids, f"a-{one.id}", f"b-{one.id}"] for one in asked}
    gone = {"kb-0", "kb-3"}
    (cause,) = report(asked, without(gone, before), before, config=LIMITS).causes
    assert "(kb-0, kb-3)" in render(cause.phrase)


def test_lost_documents_of_a_retriever_that_orders_others_anew_have_not_vanished() -> None:
    rows = without(LOST, lists())
    turned = {
        name: [row[0], *reversed(row[1:])] if name in {"q0", "q1", "q2", "q5"} else row for name, row in rows.items()
    }
    assert causes(turned, lists()) == []


def test_lost_documents_have_not_vanished_where_others_are_lost_more_often() -> None:
    rows = {name: [*row[:2], *(f"new/{name}_{n}" for n in range(3))] for name, row in without(LOST, lists()).items()}
    assert causes(rows, lists()) == []


def test_a_document_that_another_query_still_finds_has_not_vanished() -> None:
    rows = without(LOST, lists())
    rows["q11"] = [rows["q11"][0], *sorted(LOST)]
    assert [kind for kind, _ in causes(rows, lists())] == []


def test_one_document_may_be_lost_by_chance() -> None:
    assert causes(without({"crypto/doc_0"}, lists()), lists()) == []


def test_a_run_with_fewer_results_than_the_baseline() -> None:
    before = {name: lists(found_at=4 if name < "q5" else 1)[name] for name in lists()}
    below = sum(name < "q5" for name in before)
    said = (
        f"The run has only 2 results a query (the baseline 5), and {below} queries had a relevant document "
        "below rank 2: return at least 5"
    )
    assert causes({name: row[:2] for name, row in before.items()}, before) == [("short", said)]


def test_a_shorter_run_that_lost_nothing_below_its_end_explains_nothing() -> None:
    rows = {name: row[:3] for name, row in without(LOST, lists()).items()}
    assert [kind for kind, _ in causes(rows, lists())] == ["vanished"]


def test_measured_causes_come_before_versions_and_commits_last() -> None:
    before = Rows(
        docs=lists(), name="base.jsonl", versions={"embedding_model": ["a"], "retriever_version": ["0a1b2c3"]}
    )
    versions = {"embedding_model": ["b"], "retriever_version": ["9f8e7d6"], "prompt_version": ["7"]}
    now = Rows(docs=without(LOST, lists()), name="run.jsonl", versions=versions)
    changed = (
        "Changed since the baseline: embedding model a → b, prompt version is 7 now and was unknown before, "
        "retriever version 0a1b2c3 → 9f8e7d6"
    )
    assert causes(now, before) == [("vanished", VANISHED), ("versions", changed)]


def test_a_version_that_only_the_baseline_has_is_unknown_now() -> None:
    before = Rows(docs=lists(), name="base.jsonl", versions={"index_version": ["3"]})
    said = "Changed since the baseline: index version was 3 and is unknown now"
    assert causes(lists(found_at=3), before) == [("versions", said)]


LABELS = (
    "The drop may be missing labels: nobody has judged 20% of the top 5, and MRR@5 would be 1.00 (1.00 in the "
    "baseline) if all of that were relevant; rag-contract unjudged lists what to judge first"
)


def test_labels_may_be_missing_where_documents_are_still_found() -> None:
    rows = {name: [f"new/{name}", *row[:4]] for name, row in lists().items()}
    (cause,) = report(ASKED, rows, lists(), config=LIMITS).causes
    assert (cause.kind, render(cause.phrase), cause.is_likely) == ("labels", LABELS, True)


def test_labels_are_no_cause_where_the_documents_themselves_are_lost() -> None:
    rows = {name: [f"new/{name}_{n}" for n in range(5)] for name in lists()}
    rows["q0"] = lists()["q0"]
    assert causes(rows, lists()) == []


def test_labels_explain_no_drop_of_which_more_than_a_little_would_be_left() -> None:
    rows = {name: [row[1], row[0], *row[2:4], f"new/{name}"] for name, row in lists().items()}
    assert causes(rows, lists()) == []


@pytest.mark.parametrize("run", [lists(), without({"other/3_0"}, lists())])
def test_where_nothing_got_worse_nothing_is_explained(run: dict[str, list[str]]) -> None:
    before = Rows(docs=lists(), name="base.jsonl", versions={"embedding_model": ["a"]})
    assert causes(Rows(docs=run, name="run.jsonl", versions={"embedding_model": ["b"]}), before) == []


def test_ids_in_another_form_explain_what_seems_to_have_vanished() -> None:
    rows = {name: [f"{doc_id}.md" for doc_id in row] for name, row in lists().items()}
    made = report(ASKED, rows, lists(), config=LIMITS)
    assert made.likely_mistakes
    assert made.causes == []


def test_without_a_baseline_there_is_no_loss() -> None:
    assert causes(without(LOST, lists()), None, fail_on={}) == []


def test_queries_of_the_smallest_weight_have_losses_as_well() -> None:
    asked = [query(one.id, *one.relevant_doc_ids, weight=1e-9) for one in ASKED]
    (cause,) = report(asked, without(LOST, lists()), lists(), config=LIMITS).causes
    assert cause.kind == "vanished"
    assert cause.share == pytest.approx(1)


def test_of_many_versions_the_first_are_named_cut_and_the_others_counted() -> None:
    versions = {"index_version": [f"{n:04}" + "v" * 100_000 for n in range(QUERIES)]}
    now = Rows(docs=lists(found_at=3), name="run.jsonl", versions=versions)
    before = Rows(docs=lists(), name="base.jsonl", versions={"index_version": ["1"]})
    ((kind, phrase),) = causes(now, before)
    assert kind == "versions"
    assert phrase.endswith("…, 9 more")
    assert len(phrase) < 2_000


def test_queries_without_results_are_counted_as_far_as_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    empty: dict[str, list[str]] = {name: [] if name in {"q0", "q5", "q7"} else row for name, row in lists().items()}
    said = "3 queries have no results: did the retriever fail or time out?"
    assert causes(empty, lists()) == [("empty", said)]
    monkeypatch.setattr(bounds, "RETRIEVED_QUERIES", 2)
    assert causes(empty, lists()) == [("empty", f"At least {said.replace('3', '2')}")]


def test_a_document_that_others_push_below_the_end_of_a_full_row_has_not_vanished() -> None:
    before = lists(found_at=5)
    grown = {name: [f"new/{name}", *row[:4]] if name < "q5" else row for name, row in before.items()}
    assert "vanished" not in dict(causes(grown, before))


def test_a_document_below_the_end_of_its_own_shorter_row_has_not_vanished() -> None:
    before = lists(found_at=4)
    cut = {name: row[:3] if name in {"q0", "q1", "q2"} else row for name, row in before.items()}
    assert causes(cut, before) == []


def test_queries_without_results_lost_no_document_of_the_index() -> None:
    rows = without({"fs/doc_5"}, lists()) | {name: [] for name in ("q0", "q1", "q2")}
    assert [kind for kind, _ in causes(rows, lists())] == ["empty"]


def test_a_page_below_another_is_not_its_new_id() -> None:
    asked = [query(f"q{n}", f"module{n}x") for n in range(8)]
    before = {f"q{n}": [f"a{n}", f"module{n}x", f"module{n}x/open", f"b{n}"] for n in range(8)}
    now = {name: [doc_id for doc_id in row if not doc_id.endswith("x")] for name, row in before.items()} | {
        "q0": before["q0"]
    }
    (cause,) = report(asked, now, before, config={"k": 4, "fail_on": {"mrr_drop_gt": 0.05}}).causes
    assert cause.kind == "vanished"


def test_with_a_part_of_the_contract_nothing_is_said_of_the_whole_run() -> None:
    asked = [query(one.id, *one.relevant_doc_ids, tags=("x",)) for one in ASKED[:6]]
    rows = without(LOST, lists()) | {"unknown": [*LOST]}
    assert report(asked, rows, lists(), config=LIMITS).causes == []


def test_a_shorter_run_does_not_explain_a_loss_at_the_top() -> None:
    before = {one.id: [*one.relevant_doc_ids, "a", "b", "c", f"second/{one.id}"] for one in ASKED}
    asked = [query(one.id, *one.relevant_doc_ids, f"second/{one.id}") for one in ASKED]
    now = {name: ["x", "y", row[0], "z"] for name, row in before.items()}
    assert report(asked, now, before, config={"k": 5, "fail_on": {"mrr_drop_gt": 0.05}}).causes == []


def test_where_only_answers_or_latencies_got_worse_versions_are_named() -> None:
    versions = {"prompt_version": ["2"]}
    rows = lists()
    config = {"k": 5, "minimums": {"map_at_k": 1.0}}
    before = Rows(docs=rows, name="base.jsonl", versions={})
    now = Rows(docs=rows | {"q0": ["x", *rows["q0"][:4]]}, name="run.jsonl", versions=versions)
    said = "Changed since the baseline: prompt version is 2 now and was unknown before"
    assert ("versions", said) in [
        (cause.kind, render(cause.phrase)) for cause in report(ASKED, now, before, config=config).causes
    ]


def test_documents_have_not_vanished_where_another_query_finds_what_these_queries_lost() -> None:
    rows = without({*LOST, "other/0_1"}, lists())
    rows["q1"] = [*rows["q1"][:4], "other/0_1"]
    assert causes(rows, lists()) == []


def test_sections_of_different_files_are_named_by_the_folder_of_the_files() -> None:
    asked = [query(f"q{n}", f"kb/operations/workers/pool-{n}.md#limits") for n in range(6)]
    before = {one.id: [*one.relevant_doc_ids, f"a-{one.id}", f"b-{one.id}"] for one in asked}
    gone = {f"kb/operations/workers/pool-{n}.md#limits" for n in range(4)}
    (cause,) = report(asked, without(gone, before), before, config=LIMITS).causes
    assert "(kb/operations/workers/…)" in render(cause.phrase)


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ("0a1b2c3", "9f8e7d6-dirty", "commit"),
        ("20250131", "20250201", "versions"),
        ("v1.2", "9f8e7d6", "versions"),
        ("", "9f8e7d6", "commit"),
    ],
)
def test_only_a_change_from_commit_to_commit_is_left_unnamed(before: str, now: str, kind: str) -> None:
    sides = [
        Rows(docs=docs, name=f"{name}.jsonl", versions={"retriever_version": [version]} if version else {})
        for name, docs, version in (("run", lists(found_at=3), now), ("base", lists(), before))
    ]
    assert [found for found, _ in causes(*sides)] == [kind]
