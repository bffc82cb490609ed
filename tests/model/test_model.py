"""Random workspaces through the command line and through the model: both must say the same."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from tests.model.comparison import checked, compare, differences, minimised
from tests.model.features import features
from tests.model.random_workspaces import random_workspace
from tests.model.verdict_model import verdict
from tests.model.workspace import Row, Verdict, Workspace

CHUNK = 30
CHUNKS = 10
TODAY = dt.date(2026, 6, 1)


@pytest.mark.parametrize("first", range(0, CHUNK * CHUNKS, CHUNK))
def test_the_program_says_what_the_documents_promise(first: int) -> None:
    for seed in range(first, first + CHUNK):
        workspace = random_workspace(seed)
        found = compare(workspace)
        assert not found, f"seed {seed}: {found}\n{workspace.as_text()}"


def test_the_workspaces_have_every_exit_code_and_their_features_meet_both_verdicts() -> None:
    met: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    codes = []
    for seed in range(CHUNK * CHUNKS):
        workspace = random_workspace(seed, today=TODAY)
        codes.append(verdict(workspace, TODAY).exit_code)
        met[codes[-1]] |= features(workspace)
    assert all(codes.count(code) >= 30 for code in (0, 1, 2))
    wanted = {"baseline", "stored", "tags", "repeats", "scores", "waiver.gate", "waiver.tag", "config.tiers"}
    wanted |= {f"rule.{name}" for name in ("must_call_tool", "must_not_contain", "must_refuse", "must_not_refuse")}
    wanted |= {"golden.forbidden_claims", "golden.required_elements", "config.per_query.fail_on"}
    wanted |= {"golden.turns", "call: another form of the name", "text: invisible", "text: entity", "text: tag"}
    assert wanted <= met[0] & met[1]
    assert {"documents in another form", "configurations: both"} <= met[2]
    assert any(feature.startswith("a key twice") for feature in met[2])


# ---- it can fail ----


def _golden(query: str, **fields: Any) -> Row:
    return {"id": query, "query": f"What of {query}?", **fields}


BROKEN = Workspace(
    golden=(
        _golden("q1", relevant_doc_ids=["a"], must_rank_at_most=1, tags=["x"]),
        _golden("q2", relevant_doc_ids=["b"], rules=[{"type": "must_not_contain", "value": "secret"}]),
    ),
    run=(
        {"query_id": "q1", "results": [{"doc_id": "b"}, {"doc_id": "a"}]},
        {"query_id": "q2", "results": [{"doc_id": "b"}], "response": "A Secret."},
    ),
    config={"k": 2, "minimums": {"mrr_at_k": 0.75 + 2e-9}, "tags": {"x": {"minimums": {"recall_at_k": 1}}}},
)
EXACT = dataclasses.replace(BROKEN, config={"k": 2, "minimums": {"mrr_at_k": 0.75 + 5e-10}})


def _without_a_violation(said: Verdict) -> Verdict:
    return dataclasses.replace(said, broken=said.broken[1:])


def _that_excuses_a_violation(said: Verdict) -> Verdict:
    excused = dataclasses.replace(said.broken[0], excuses=frozenset({"waived"}))
    return dataclasses.replace(said, broken=(excused, *said.broken[1:]))


def _with_another_gate(said: Verdict) -> Verdict:
    other = {"pass": "fail", "fail": "pass"}
    return dataclasses.replace(said, gates={gate: other[status] for gate, status in said.gates.items()})


def _without_a_gate(said: Verdict) -> Verdict:
    return dataclasses.replace(said, gates={})


def _with_another_mean(said: Verdict) -> Verdict:
    means = {metric: None if value is None else value + 1e-8 for metric, value in said.means.items()}
    return dataclasses.replace(said, means=means)


def _with_another_mean_of_a_tag(said: Verdict) -> Verdict:
    return dataclasses.replace(said, tag_means={**said.tag_means, "x": {**said.tag_means["x"], "mrr_at_2": 1.0}})


def _with_another_exit_code(said: Verdict) -> Verdict:
    return dataclasses.replace(said, exit_code=0)


@pytest.mark.parametrize(
    "mistake",
    [
        _without_a_violation,
        _that_excuses_a_violation,
        _with_another_gate,
        _without_a_gate,
        _with_another_mean,
        _with_another_mean_of_a_tag,
        _with_another_exit_code,
    ],
)
def test_a_program_that_is_wrong_differs(mistake: Callable[[Verdict], Verdict]) -> None:
    said = checked(BROKEN)
    model = verdict(BROKEN, TODAY)
    assert differences(model, said) == []
    assert differences(model, mistake(said))


def test_a_looser_or_stricter_tolerance_differs() -> None:
    assert compare(BROKEN) == compare(EXACT) == []
    gate = "gate minimums.mrr_at_k: "
    assert compare(BROKEN, tolerance=1e-8) == [f"{gate}model pass, program fail"]
    assert compare(EXACT, tolerance=0) == [f"{gate}model fail, program pass"]


def test_an_expired_waiver_that_counted_would_differ() -> None:
    waiver = {"query": "q1", "reason": "soon", "owner": "ann", "expires": "2026-05-31"}
    workspace = dataclasses.replace(BROKEN, config={"k": 2, "waivers": [waiver]})
    said = checked(workspace)
    assert differences(verdict(workspace, TODAY), said) == []
    found = differences(verdict(workspace, TODAY - dt.timedelta(days=1)), said)
    assert "failing for the program only: ('q1', 'must_rank_at_most')" in found


def test_a_workspace_that_differs_is_made_small() -> None:
    def differs(candidate: Workspace) -> bool:
        return ("q2", "must_not_contain") in checked(candidate).rules(counting=True)

    small = minimised(BROKEN, differs)
    assert [row["id"] for row in small.golden] == ["q2"]
    assert small.config == {}
    assert len(small.run) == 1
