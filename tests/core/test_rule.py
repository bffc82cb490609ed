"""The seam for rules: a toy rule that is written in golden rows and needs the row of the run."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.finding import sentence
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.rule import RowContext, RowRule, Violation, names_of, switch_of
from ragcontract.core.run import RunRow
from ragcontract.decision.decide import decide
from ragcontract.evaluation.source import Local
from ragcontract.registry import BUILT_IN
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude
from ragcontract.runs.readers import RunFiles
from tests.builders import golden, run, write_jsonl
from tests.records import NOW, Config, evaluate, query


class MostResults(RowRule, frozen=True, kw_only=True, gc=False, tag="most_results"):
    """There are at most so many results."""

    needs = frozenset({"results"})
    count: int

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        if len(row.results) > self.count:
            yield Violation(
                rule="most_results", expected=(f"at most {self.count} results",), actual=(f"{len(row.results)}",)
            )


REGISTRY = replace(BUILT_IN, rules=(*BUILT_IN.rules, Line(names=("most_results",), home=MostResults)))
ASKED = query("q1", "A", rules=(MostResults(count=2),), tags=("t",))
MANY = {"q1": ["x", "y", "A"]}


def test_a_rule_is_named_by_its_tag_unless_it_says_otherwise() -> None:
    assert (names_of(MostResults), switch_of(MostResults)) == (("most_results",), "most_results")
    assert (names_of(MustInclude), switch_of(MustInclude)) == (("must_include", "must_include_any"), "must_include")
    assert switch_of(ForbiddenDocs) == "forbidden_docs"


def test_what_a_row_violates_is_a_finding_like_any_other() -> None:
    decision = decide(evaluate([ASKED], MANY, config={"k": 2}, registry=REGISTRY), NOW)
    assert [(finding.ids, sentence(finding)) for finding in decision.findings] == [
        (("must_include",), "expected A in top 2; found: rank 3"),
        (("most_results",), "expected at most 2 results; found: 3"),
    ]
    assert decision.verdict == "fail"
    assert decide(evaluate([ASKED], {"q1": ["A"]}, registry=REGISTRY), NOW).findings == ()


@pytest.mark.parametrize(
    ("config", "status"),
    [
        ({}, "fail"),
        ({"per_query": {"enforce_most_results": False}}, "pass"),
        ({"waivers": [{"query": "q1", "rule": "most_results"}]}, "waived"),
        ({"waivers": [{"tag": "t"}]}, "waived"),
        ({"waivers": [{"query": "q1", "rule": "must_include"}]}, "fail"),
    ],
)
def test_it_is_switched_off_and_waived_by_its_name(config: Config, status: str) -> None:
    people = {"reason": "known", "owner": "ann", "expires": "2026-12-31"}
    config = {**config, "waivers": [{**people, **waiver} for waiver in config.get("waivers", [])]}
    evaluation = evaluate([ASKED], MANY, config=config, registry=REGISTRY)
    assert decide(evaluation, datetime(2026, 12, 31, tzinfo=UTC)).status(evaluation.contract.queries["q1"]) == status


def test_what_a_baseline_violates_is_known_and_not_held_against_it() -> None:
    evaluation = evaluate([ASKED], {"q1": ["A"]}, MANY, registry=REGISTRY)
    assert evaluation.baseline is not None
    assert [one.rule for one in evaluation.baseline.violations["q1"]] == ["most_results"]
    assert decide(evaluation, NOW).findings == ()


def test_a_rule_that_the_baseline_violates_for_the_same_reason_is_marked() -> None:
    (broken,) = decide(evaluate([ASKED], MANY, MANY, config={"k": 5}, registry=REGISTRY), NOW).violations["q1"]
    assert (broken.rule, broken.in_baseline) == ("most_results", True)
    (broken,) = decide(evaluate([ASKED], MANY, config={"k": 5}, registry=REGISTRY), NOW).violations["q1"]
    assert not broken.in_baseline


def test_it_is_read_from_golden_rows_and_holds_for_each_of_several_rows(tmp_path: Path) -> None:
    rules = [{"type": "most_results", "count": 2}]
    asked = write_jsonl(tmp_path / "golden.jsonl", [golden("q", "a", rules=rules), golden("p", "a")])
    assert read_golden([str(asked)], REGISTRY).queries["q"].rules == (MostResults(count=2),)
    rows = [run("q", "a"), run("p", *"abcd"), run("q", *"abcd"), run("q", *"abcd")]
    request = pipeline.Inputs(
        golden=[str(asked)],
        run=Local(RunFiles(paths=[str(write_jsonl(tmp_path / "run.jsonl", rows))])),
        repeats=True,
    )
    decision = pipeline.check(request, now=NOW, registry=REGISTRY).decision
    assert {one: [broken.rule for broken in all_] for one, all_ in decision.violations.items()} == {
        "q": ["most_results"]
    }


@pytest.mark.parametrize(
    "rule", [{"type": "most_results"}, {"type": "most_results", "count": 1, "more": 1}, {"type": "must_include"}, {}]
)
def test_an_entry_that_is_no_such_rule_is_a_problem(rule: dict[str, object], tmp_path: Path) -> None:
    asked = write_jsonl(tmp_path / "golden.jsonl", [golden("q", "a", rules=[rule])])
    problems = read_golden([str(asked)], REGISTRY).problems.problems
    assert problems
    assert all(problem.startswith(f"{asked}:1: rules[0]") for problem in problems)
