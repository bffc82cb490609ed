"""What a stored baseline says of a query beside its ranks."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Metric, MetricSettings, Missing
from ragcontract.core.run import RunRow, Values
from ragcontract.evaluation.source import Local
from ragcontract.pipeline import Outcome
from ragcontract.registry import BUILT_IN
from ragcontract.report import baseline
from ragcontract.runs.baseline_contract import ContractChange
from ragcontract.runs.readers import open_baseline, open_run
from tests.builders import Row, golden, run, write_jsonl
from tests.records import NOW
from tests.toys import MustSay

CANARY = "a secret that only the answer has"
SAYS = {"rules": [{"type": "must_say", "phrase": "30 days"}]}


class Same:
    """Whether the answer is the reference."""

    metrics = (Metric(key="same", label="Same", fingerprint="exactly"),)
    needs = frozenset({"response"})
    from_ids = False
    switch = "reference"

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Compare, where there is a reference."""
        reference = query.answer and query.answer.reference
        return () if reference is None else (float(row.response == reference),)


def same(_settings: MetricSettings) -> Iterable[Same]:
    """Provide the family."""
    return [Same()]


REGISTRY = replace(
    BUILT_IN,
    metrics=(*BUILT_IN.metrics, Line(home=same, always=True)),
    rules=(*BUILT_IN.rules, Line(names=("must_say",), home=MustSay)),
)


def check(folder: Path, queries: list[Row], rows: list[Row], config: str = "", **fields: Any) -> Outcome:
    """Check a run; against the folder's baseline, if there is one."""
    (folder / "ragcontract.yml").write_text(config or "k: 5\n")
    baseline = folder / "baseline.json"
    request = pipeline.Inputs(
        golden=[str(write_jsonl(folder / "golden.jsonl", queries))],
        config=str(folder / "ragcontract.yml"),
        run=Local(open_run([str(write_jsonl(folder / "run.jsonl", rows))])),
        baseline=Local(open_baseline([str(baseline)])) if baseline.exists() else None,
        **fields,
    )
    return pipeline.check(request, now=NOW, registry=REGISTRY)


def store(folder: Path, queries: list[Row], rows: list[Row], config: str = "") -> dict[str, Any]:
    """Store a run as the folder's baseline, and return what is in it."""
    evaluation = check(folder, queries, rows, config, store=True).evaluation
    (folder / "baseline.json").write_bytes(b"".join(baseline.render_baseline(evaluation, NOW)))
    found: dict[str, Any] = json.loads((folder / "baseline.json").read_text())
    return found


def known(outcome: Outcome) -> list[bool]:
    """Return, for each violation of q1, whether the baseline has it."""
    return [one.in_baseline for one in outcome.decision.violations["q1"]]


def changes(outcome: Outcome) -> Sequence[ContractChange]:
    """Return how the contract changed since the baseline was stored."""
    stored = outcome.report.inputs.baseline
    return (stored and stored.contract_changes) or ()


@pytest.mark.parametrize(("config", "verdict"), [("", "fail"), ("per_query:\n  fail_on: new\n", "pass")])
def test_what_the_stored_answer_broke_already_is_known(config: str, verdict: str, tmp_path: Path) -> None:
    queries, rows = [golden("q1", "doc1", **SAYS)], [run("q1", "doc1", response="No.")]
    store(tmp_path, queries, rows)
    outcome = check(tmp_path, queries, rows, config)
    assert (known(outcome), outcome.decision.verdict) == ([True], verdict)


def test_what_it_broke_with_another_rule_of_the_same_type_is_new(tmp_path: Path) -> None:
    rows = [run("q1", "doc1", response="No.")]
    store(tmp_path, [golden("q1", "doc1", **SAYS)], rows)
    other = {"rules": [{"type": "must_say", "phrase": "a month"}]}
    assert known(check(tmp_path, [golden("q1", "doc1", **other)], rows)) == [False]


def test_one_more_rule_of_the_same_type_is_new_and_the_other_known(tmp_path: Path) -> None:
    rows = [run("q1", "doc1", response="No.")]
    store(tmp_path, [golden("q1", "doc1", **SAYS)], rows)
    both = {"rules": [*SAYS["rules"], {"type": "must_say", "phrase": "a month"}]}
    assert known(check(tmp_path, [golden("q1", "doc1", **both)], rows)) == [True, False]


@pytest.mark.parametrize("before", [[golden("q1", "doc1")], [golden("q1", "doc1", query="Another?", **SAYS)]])
def test_a_baseline_that_cannot_know_of_a_violation_makes_it_new(before: list[Row], tmp_path: Path) -> None:
    rows = [run("q1", "doc1", response="No."), run("q2", "doc1", response="30 days")]
    common = golden("q2", "doc1", **SAYS)
    store(tmp_path, [*before, common], rows)
    outcome = check(tmp_path, [golden("q1", "doc1", **SAYS), common], rows, "per_query:\n  fail_on: new\n")
    assert (known(outcome), outcome.decision.verdict) == ([False], "fail")


def test_a_baseline_of_documents_has_no_new_fields(tmp_path: Path) -> None:
    (query,) = store(tmp_path, [golden("q1", "doc1")], [run("q1", "doc1")])["queries"]
    assert "broken" not in query
    assert not {"references", "as_evaluated"} & set(query["expects"])


def test_a_baseline_has_no_text_of_an_answer_or_a_reference(tmp_path: Path) -> None:
    queries = [golden("q1", "doc1", reference=CANARY, **SAYS)]
    (query,) = store(tmp_path, queries, [run("q1", "doc1", response=CANARY)])["queries"]
    assert list(query["broken"]) == ["must_say"]
    assert list(query["expects"]["references"]) == ["reference"]
    text = (tmp_path / "baseline.json").read_text()
    assert "secret" not in text
    assert "30 days" not in text


DROP = "fail_on:\n  same_drop_gt: 0.1\n"


def test_a_metric_is_not_compared_where_the_query_has_another_reference(tmp_path: Path) -> None:
    rows = [run("q1", "doc1", response="A"), run("q2", "doc1", response="B")]
    store(tmp_path, [golden("q1", "doc1", reference="A"), golden("q2", "doc1", reference="B")], rows)
    changed = [golden("q1", "doc1", reference="X"), golden("q2", "doc1", reference="B")]
    outcome = check(tmp_path, changed, rows, DROP)
    means = outcome.report.metrics["same"]
    assert (means.current, means.current_shared, means.baseline) == (0.5, 1.0, 1.0)
    assert outcome.report.metrics["mrr_at_5"].baseline == 1.0
    assert [(one.kind, one.effect) for one in changes(outcome)] == [
        ("references_changed", "weaker"),
        ("limits_added", "stricter"),
    ]


@pytest.mark.parametrize(("metric", "label"), [("exact_match", "Exact match"), ("rouge_l", "ROUGE-L")])
def test_a_drop_of_a_metric_that_a_limit_names_is_not_judged_by_other_references(
    metric: str, label: str, tmp_path: Path
) -> None:
    def sides(reference: str) -> tuple[list[Row], list[Row]]:
        also = [golden("q1", "doc1", reference=reference), golden("q2", "doc1", reference=reference)]
        return also, [run("q1", "doc1", response=reference), run("q2", "doc1", response=reference)]

    limit = f"fail_on:\n  {metric}_drop_gt: 0.05\n"
    store(tmp_path, *sides("before"), f"minimums:\n  {metric}: 0.05\n")
    queries, rows = sides("now")
    with pytest.raises(InputError) as caught:
        check(tmp_path, queries, rows, limit)
    (problem,) = caught.value.problems
    assert f"the baseline has no {label} of a query with the same reference as now; recreate it" in problem
    queries[1]["reference"] = "before"
    means = check(tmp_path, queries, rows, limit).report.metrics[metric]
    assert (means.current, means.current_shared, means.baseline) == (0.5, 0.0, 1.0)


def test_references_that_come_and_go_are_changes_of_the_contract(tmp_path: Path) -> None:
    rows = [run("q1", "doc1", response="A"), run("q2", "doc1", response="B")]
    store(tmp_path, [golden("q1", "doc1", reference="A"), golden("q2", "doc1")], rows)
    now = [golden("q1", "doc1", as_evaluated="fitz-gov-4.1.0"), golden("q2", "doc1", reference="B")]
    found = changes(check(tmp_path, now, rows))
    assert [(one.kind, [item.id for item in one.items]) for one in found] == [
        ("references_removed", ["q1"]),
        ("as_evaluated_added", ["q1"]),
        ("references_added", ["q2"]),
    ]


def test_a_drop_of_a_metric_that_the_baseline_does_not_have_cannot_be_judged(tmp_path: Path) -> None:
    rows = [run("q1", "doc1", response="A")]
    store(tmp_path, [golden("q1", "doc1")], rows)
    with pytest.raises(InputError) as caught:
        check(tmp_path, [golden("q1", "doc1", reference="A")], rows, DROP)
    (problem,) = caught.value.problems
    assert problem.removeprefix(f"{tmp_path / 'ragcontract.yml'}:2: ") == (
        "fail_on.same_drop_gt cannot be judged: the baseline has no Same; "
        "recreate it from its run, with `rag-contract baseline --force`"
    )
