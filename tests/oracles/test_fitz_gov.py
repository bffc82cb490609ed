"""Cases of fitz-gov are judged as fitz-gov 4.1.0 judges them: verdicts, reasons and aggregates are the same."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragcontract import check
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.config_sections import AnswerSettings
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import render
from ragcontract.core.rule import RowContext, RowRule, RuleSettings, Violation
from ragcontract.core.run import RunRow
from ragcontract.registry import BUILT_IN
from ragcontract.report.record import Report
from tests.builders import write_jsonl
from tests.oracles import fitz_gov_cases
from tests.oracles.fitz_gov_answers import TEXTS, mode, single_claims
from tests.oracles.outside import asked
from tests.process import rag_contract

pytestmark = pytest.mark.oracles

CONFIG = """\
tiers:
  - {name: sanity, minimum: 0.95, gates: [%s]}
  - {name: core, minimum: 0}
per_query: {fail_on: pass_rate}
answers: {missing_modes: fail}
"""
CONTEXT = RowContext(settings=RuleSettings(k=5, answers=AnswerSettings(missing_modes="fail")))
CASES, MOST_CLAIMS = 2_980, 10


class Said(NamedTuple):
    """What an application answered to a case; no mode is one that is missing."""

    response: str
    mode: str | None


Answers = Mapping[str, Said]  # by the id of the case


class Benchmark:
    """Cases, and a folder with the golden file that is made of them."""

    def __init__(self, data: str, cases: list[dict[str, Any]], folder: Path) -> None:
        """Convert a folder of cases as evaluated."""
        self.cases = cases
        self.data = data
        self._folder = folder
        self._golden = folder / "golden.jsonl"
        ended = rag_contract("convert", "--from", "fitz-gov", "--cases", data, "--golden-out", str(self._golden))
        assert (ended.code, ended.out) == (0, f"converted {len(cases):,} queries\n")
        found = read_golden([str(self._golden)], BUILT_IN)
        assert found.problems.problems == ()
        self.queries = found.queries

    def theirs(self, answers: Answers) -> dict[str, Any]:
        """Return what fitz-gov says."""
        rows = [[case_id, *said] for case_id, said in answers.items()]
        found: dict[str, Any] = asked("fitz_gov_verdicts", rows, "verdicts", self.data)
        assert found["judged"] == len(answers)
        return found

    def reasons(self, answers: Answers) -> dict[str, str]:
        """Return what our rules say of each answer that breaks any, in fitz-gov's words."""
        found = {}
        for case_id, said in answers.items():
            query = self.queries[case_id]
            row = RunRow(query_id=case_id, response=said.response, mode=said.mode)
            rules = [rule for rule in query.rules if isinstance(rule, RowRule)]
            assert rules
            assert [rule.lacking(query, row, CONTEXT) for rule in rules] == [None] * len(rules)
            if violations := [one for rule in rules for one in rule.violations(query, row, CONTEXT)]:
                found[case_id] = reason(query, violations)
        return found

    def report(self, answers: Answers, *, gated: bool = False) -> Report:
        """Return the report of a check."""
        rows = [
            {"query_id": case_id, "response": said.response, "mode": said.mode} for case_id, said in answers.items()
        ]
        run, config = self._folder / "run.jsonl", self._folder / "ragcontract.yml"
        write_jsonl(run, [{name: value for name, value in row.items() if value is not None} for row in rows])
        config.write_text(CONFIG % ("core" if gated else ""))
        return check(golden=self._golden, run=run, config=config)


def reason(query: GoldenQuery, violations: Sequence[Violation]) -> str:
    """Return what is wrong with an answer in fitz-gov's words, which name one of the rules only."""
    broken = {rule: [one for one in violations if one.rule == rule] for rule in (one.rule for one in violations)}
    if "expected_mode" in broken:
        (one,) = broken["expected_mode"]
        expected, found = (render(phrase).removeprefix("mode ") for phrase in (one.expected, one.actual))
        missing = "No actual_mode provided for governance category"
        return missing if found == "no mode" else f"Expected {expected}, got {found}"
    if "required_elements" in broken:
        rule: Any
        (rule,) = [rule for rule in query.rules if rule.__struct_config__.tag == "required_elements"]
        number = len(rule.elements) - len(broken["required_elements"][0].causes)
        return f"Missing required elements: need {rule.least}, found {number}"
    (name,) = broken
    word = {"forbidden_claims": "HALLUCINATION", "forbidden_elements": "FALSE_CONFIDENCE"}[name]
    return f"{word}: {[cause for one in broken[name] for cause in one.causes]}"


def shares(benchmark: Benchmark, report: Report, field: str, within: str | None = None) -> dict[str, float]:
    """Return the share of passing queries by the value of a tag; ``within`` only of queries that have that tag."""
    passed: dict[str, list[bool]] = {}
    for one in report.queries:
        tags = benchmark.queries[one.id].tags
        (value,) = [tag.partition(":")[2] for tag in tags if tag.startswith(f"{field}:")]
        if within is None or within in tags:
            passed.setdefault(value, []).append(one.status == "pass")
    return {value: sum(found) / len(found) for value, found in passed.items()}


def assert_same(benchmark: Benchmark, answers: Answers) -> None:
    """Compare verdicts, reasons and all aggregates."""
    theirs = benchmark.theirs(answers)
    assert benchmark.reasons(answers) == theirs["failed"]
    report = benchmark.report(answers)
    assert {one.id for one in report.queries if one.status != "pass"} == set(theirs["failed"])
    assert report.pass_rate
    assert report.tiers
    assert report.modes
    assert report.pass_rate.rate == theirs["overall"]
    assert {tier.name: tier.rate for tier in report.tiers}["sanity"] == theirs["sanity"]["accuracy"]
    assert shares(benchmark, report, "category") == theirs["categories"]
    for category, by_subcategory in theirs["subcategories"].items():
        assert shares(benchmark, report, "subcategory", f"category:{category}") == by_subcategory
    for field, by_value in theirs["breakdowns"].items():
        assert shares(benchmark, report, field) == by_value
    columns = ("trustworthy", "disputed", "abstain")
    assert {row: {name: found[name] for name in columns} for row, found in report.modes.matrix.items()} == theirs[
        "matrix"
    ]


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Return the cases of the package."""
    found = asked("fitz_gov_verdicts", None, "cases")
    assert len(found["cases"]) == CASES
    return Benchmark(found["folder"], found["cases"], tmp_path_factory.mktemp("packaged"))


def test_the_packaged_cases_are_a_valid_contract_of_ours_too(packaged: Benchmark, tmp_path: Path) -> None:
    golden = str(tmp_path / "golden.jsonl")
    argv = ("--from", "fitz-gov", "--cases", packaged.data, "--golden-out", golden, "--no-as-evaluated")
    assert rag_contract("convert", *argv).code == 0
    found = read_golden([golden], BUILT_IN)
    assert (len(found.queries), found.problems.problems) == (CASES, ())


@pytest.mark.parametrize("kind", TEXTS)
def test_answers_to_all_packaged_cases_are_judged_alike(kind: str, packaged: Benchmark) -> None:
    first = list(TEXTS).index(kind)
    assert_same(
        packaged,
        {
            case["id"]: Said(TEXTS[kind](case), mode(case, turn))
            for turn, case in enumerate(packaged.cases, start=first)
        },
    )


@pytest.mark.parametrize("number", range(MOST_CLAIMS))
def test_each_forbidden_claim_is_judged_alike(number: int, packaged: Benchmark) -> None:
    cases = [case for case in packaged.cases if len(case.get("forbidden_claims", [])) > number]
    assert cases
    for text in single_claims(number).values():
        answers = {case["id"]: Said(text(case), None) for case in cases}
        assert packaged.reasons(answers) == packaged.theirs(answers)["failed"]


@pytest.mark.parametrize("wrong", [0, 3, 4])
def test_a_tier_gates_the_other_alike(wrong: int, packaged: Benchmark) -> None:
    of_modes = [case["id"] for case in packaged.cases if case["id"].startswith("t0_abstain")][:wrong]
    answers = {
        case["id"]: Said(TEXTS["the best"](case), mode(case, 1 if case["id"] in of_modes else 0))
        for case in packaged.cases
    }
    theirs = packaged.theirs(answers)
    report = packaged.report(answers, gated=True)
    assert report.tiers
    sanity, core = report.tiers
    assert (sanity.status == "pass", sanity.rate) == (theirs["sanity"]["passed"], theirs["sanity"]["accuracy"])
    assert sanity.passed == 60 - wrong
    assert (None if core.skipped else core.rate) == theirs["core"]
    assert (core.skipped is None) is (wrong < 4)


@pytest.mark.parametrize("seed", range(5))
def test_cases_with_what_the_packaged_ones_lack_are_judged_alike(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    cases = fitz_gov_cases.made_up(tmp_path / "data", 40, dice)
    made_up = Benchmark(str(tmp_path / "data"), cases, tmp_path)
    for turn in range(5):
        answers = {case["id"]: Said(fitz_gov_cases.answer(dice), mode(case, turn)) for case in cases}
        assert_same(made_up, answers)
