"""A metric and a rule that somebody adds in one module are everywhere, without a change to anything else."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import jsonschema
import pytest
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Metric, SwitchedOn
from ragcontract.core.rule import RankRule, Rule, RuleSettings, Violation
from ragcontract.core.run import QueryScore, RunRow, Values
from ragcontract.evaluation.source import Local
from ragcontract.pipeline import Outcome
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report import baseline, terminal
from ragcontract.report.formats import FORMATS
from ragcontract.runs.readers import open_baseline, open_run
from ragcontract.schemas import schema_of
from tests.builders import golden, run, write_jsonl
from tests.records import NOW
from tests.toys import REGISTRY, MustSay

CONFIG = """\
k: 5
minimums:
  named_at_k: 0.1
fail_on:
  toxicity_rise_gt: 0.5
  named_drop_gt: 0.5
maximums:
  toxicity: 2
tags:
  billing:
    maximums:
      toxicity: 1
    fail_on:
      toxicity_rise_gt: "10%"
waivers:
  - query: q2
    rule: must_say
    reason: rewritten next week
    owner: ann
    expires: 2099-01-01
"""
SAYS = {"rules": [{"type": "must_say", "phrase": "30 days"}]}


def answer(query_id: str, toxicity: float, said: str) -> dict[str, Any]:
    """Return a run row with what the toys read."""
    return run(query_id, "doc1", scores={"toxicity": toxicity}, response=said)


def workspace(folder: Path) -> Path:
    """Write a contract for both toys, a good run and one in which both broke."""
    write_jsonl(
        folder / "golden.jsonl",
        [
            golden("q1", "doc1", tags=["billing"], **SAYS),
            golden("q2", "doc1", **SAYS),
            golden("q3", "doc1", severity="warn", **SAYS),
            golden("q4", "doc1"),
        ],
    )
    good = [answer(f"q{number}", 0.5, "Within 30 days.") for number in (1, 2, 3, 4)]
    bad = [answer(f"q{number}", 3.5, "I <b>cannot</b> say.") for number in (1, 2, 3, 4)]
    for name in ("good.jsonl", "before.jsonl"):
        write_jsonl(folder / name, good)
    write_jsonl(folder / "bad.jsonl", bad)
    (folder / "ragcontract.yml").write_text(CONFIG)
    return folder


def check(folder: Path, name: str, baseline: str | None = "before.jsonl", **fields: Any) -> Outcome:
    """Check a run of the workspace with the toys registered."""
    request = pipeline.Inputs(
        golden=[str(folder / "golden.jsonl")],
        config=str(folder / "ragcontract.yml"),
        run=Local(open_run([str(folder / name)])),
        baseline=Local(open_baseline([str(folder / baseline)])) if baseline else None,
        **fields,
    )
    return pipeline.check(request, now=NOW, registry=REGISTRY)


@pytest.fixture(name="folder")
def make_workspace(tmp_path: Path) -> Path:
    return workspace(tmp_path)


def test_a_good_run_passes_and_its_metrics_are_in_the_report(folder: Path) -> None:
    report = check(folder, "good.jsonl").report
    assert report.verdict == "pass"
    assert report.metrics["toxicity"].current == 0.5
    assert report.metrics["named_at_5"].label == "named@5"
    assert report.queries[0].metrics["named_at_5"] == 0.2
    assert report.tags["billing"].metrics["toxicity"] == 0.5


def test_limits_go_by_the_metrics_direction_overall_and_by_tag(folder: Path) -> None:
    report = check(folder, "bad.jsonl").report
    gates = {gate.id: (gate.kind_in_json, gate.status, gate.message) for gate in report.gates}
    assert gates == {
        "minimums.named_at_k": ("minimum", "pass", "named@5 is 0.20, minimum 0.10"),
        "fail_on.named_drop_gt": ("drop", "pass", "named@5 did not fall, allowed drop 0.50"),
        "fail_on.toxicity_rise_gt": ("rise", "fail", "Toxicity rose by 3.00, allowed increase 0.50"),
        "maximums.toxicity": ("maximum", "fail", "Toxicity is 3.50, allowed 2.00"),
        "tags.billing.fail_on.toxicity_rise_gt": (
            "relative_rise",
            "fail",
            "Toxicity rose by 600% of the baseline, allowed increase 10%",
        ),
        "tags.billing.maximums.toxicity": ("maximum", "fail", "Toxicity is 3.50, allowed 1.00"),
    }
    noise = report.metrics["toxicity"].noise
    assert noise is not None
    assert (noise.wins, noise.losses) == (0, 4)


def test_a_rule_of_rows_is_judged_waived_and_warned_about(folder: Path) -> None:
    report = check(folder, "bad.jsonl").report
    assert [query.status for query in report.queries] == ["fail", "waived", "warn", "pass"]
    failed = [(check.query_id, check.message) for check in report.failed_checks if check.kind == "rule"]
    assert failed == [("q1", "expected 30 days in the answer; found: I <b>cannot</b> say.")]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_format_shows_both(form: Any, folder: Path) -> None:
    text = b"".join(form.render(check(folder, "bad.jsonl"))).decode()
    assert "Toxicity" in text or "toxicity" in text
    assert "must_say" in text or "in the answer" in text
    assert "rewritten next week" in text
    if form.name not in {"report-json", "report-v2"}:
        assert "<b>cannot</b>" not in text.replace("`I <b>cannot</b> say.`", "")  # as code, in Markdown


def test_the_terminal_shows_both(folder: Path) -> None:
    text = terminal.without_colours(terminal.check_text(check(folder, "bad.jsonl").report))
    assert "Expected 30 days in the answer" in text
    assert re.search(r"Toxicity +0\.5\d* -> 3\.5\d*  \+3\.0\d* +FAIL", text)


def test_the_schemas_know_both() -> None:
    config = schema_of("config", REGISTRY)["$defs"]
    assert {"toxicity_rise_gt", "named_drop_gt"} <= config["FailOn"]["properties"].keys()
    assert "toxicity" in config["Maximums"]["properties"]
    assert "^named_at_[1-9][0-9]*$" in config["Minimums"]["patternProperties"]
    assert "enforce_must_say" in config["PerQuery"]["properties"]
    assert "must_say" in json.dumps(config["Waiver"])
    jsonschema.validate(golden("q", "d", **SAYS), schema_of("golden", REGISTRY))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(golden("q", "d", rules=[{"type": "must_sing"}]), schema_of("golden", REGISTRY))
    assert {"scores", "response"} <= schema_of("run", REGISTRY)["$defs"]["RunRow"]["properties"].keys()
    assert "must_say" in schema_of("report", REGISTRY)["$defs"]["ViolationReport"]["properties"]["rule"]["enum"]


def test_what_nobody_registered_is_in_no_schema() -> None:
    assert "must_say" not in json.dumps(schema_of("golden"))
    assert "toxicity" not in json.dumps(schema_of("config"))


def test_a_rule_can_be_turned_off(folder: Path) -> None:
    (folder / "ragcontract.yml").write_text("per_query:\n  enforce_must_say: false\n")
    assert check(folder, "bad.jsonl").report.verdict == "pass"


@pytest.mark.parametrize(
    ("written", "said"),
    {
        "minimums:\n  toxicity: 1\n": "lower is better: write maximums.toxicity",
        "maximums:\n  named_at_5: 1\n": "higher is better: write minimums.named_at_5",
        "fail_on:\n  toxicity_drop_gt: 1\n": "lower is better: write fail_on.toxicity_rise_gt",
        "maximums:\n  toxicity: 7\n": "expected a number from 0 to 5, found 7",
        "minimums:\n  named_at_7: 0.5\n": "7 is not in k; add it there, or name a cut-off that is",
    }.items(),
)
def test_a_limit_that_is_none_is_explained(written: str, said: str, folder: Path) -> None:
    (folder / "ragcontract.yml").write_text(written)
    with pytest.raises(InputError, match=r"ragcontract\.yml:2: ") as caught:
        check(folder, "good.jsonl")
    assert said in caught.value.problems[0]


def test_a_missing_value_and_one_out_of_range_are_problems_of_their_rows(folder: Path) -> None:
    rows = [answer("q1", 0.5, "x"), run("q2", "doc1"), answer("q3", 9, "x"), answer("q4", 1, "x")]
    write_jsonl(folder / "odd.jsonl", rows)
    with pytest.raises(InputError) as caught:
        check(folder, "odd.jsonl")
    path = folder / "odd.jsonl"
    assert caught.value.problems == [
        f"""{path}:2: query "q2" has no score 'toxicity'""",
        f'{path}:3: query "q3" toxicity is 9.0, outside of its scale from 0 to 5',
    ]


def store(folder: Path, **changes: Any) -> None:
    """Store the good run as the baseline, with changes to the file."""
    outcome = check(folder, "good.jsonl", None, decides=False, store=True)
    stored: dict[str, Any] = json.loads(b"".join(baseline.render_baseline(outcome.evaluation, NOW)))
    (folder / "baseline.json").write_text(json.dumps(stored | changes))


def test_a_stored_baseline_keeps_what_document_ids_cannot_give_again(folder: Path) -> None:
    store(folder)
    of_file, of_run = (check(folder, "bad.jsonl", name).report for name in ("baseline.json", "good.jsonl"))
    assert of_file.metrics == of_run.metrics
    assert of_file.metrics["toxicity"].baseline == 0.5


def test_numbers_that_something_else_computed_are_not_compared(folder: Path) -> None:
    store(folder, fingerprints={"toxicity": "tox-0"})
    with pytest.raises(InputError) as caught:
        check(folder, "bad.jsonl", "baseline.json")
    said = (
        "cannot be judged: the baseline's Toxicity was computed in another way (tox-0, and now tox-1); "
        "recreate it from its run, with `rag-contract baseline --force`"
    )
    assert [problem.partition(": ")[2] for problem in caught.value.problems] == [
        f"fail_on.toxicity_rise_gt {said}",
        f"tags.billing.fail_on.toxicity_rise_gt {said}",
    ]


def test_repeated_rows_are_averaged_and_must_all_keep_the_rule(folder: Path) -> None:
    good = [answer(f"q{number}", 0.5, "Within 30 days.") for number in (1, 2, 3, 4)]
    write_jsonl(folder / "twice.jsonl", [*good, answer("q1", 1.5, "No.")])
    report = check(folder, "twice.jsonl", repeats=True).report
    by_id: Mapping[str, Any] = {query.id: query for query in report.queries}
    assert by_id["q1"].metrics["toxicity"] == 1.0
    assert by_id["q1"].status == "fail"
    assert by_id["q4"].status == "pass"


def test_a_rule_of_rows_is_violated_where_there_is_no_row(folder: Path) -> None:
    (folder / "ragcontract.yml").write_text("missing_queries: zero\n")
    rows = [json.loads(line) for line in (folder / "good.jsonl").read_text().splitlines()]
    write_jsonl(folder / "short.jsonl", [row for row in rows if row["query_id"] != "q1"])
    report = check(folder, "short.jsonl").report
    broken = {query.id: [violation.rule for violation in query.violations] for query in report.queries}
    assert "must_say" in broken["q1"]
    assert (report.metrics["toxicity"].current or 0) > 1  # the worst of it, for one of four


class EveryOther(RankRule, frozen=True, kw_only=True, gc=False, tag="every_other"):
    """A rule of ranks that no built-in shortcut knows: the best document is at an even rank."""

    in_rows: ClassVar[bool] = False
    asked: ClassVar[list[str]] = []  # the queries about which it was asked

    @classmethod
    def of(cls, query: GoldenQuery, settings: RuleSettings) -> Iterable[Self]:  # noqa: ARG003 (the seam's)
        """Return the rule, which every query has."""
        return [cls()]

    def violations(self, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
        """Yield a violation for odd ranks."""
        self.asked.append(f"{query.id}: {score.ranks}")
        if any(rank and rank % 2 for rank in score.ranks):
            yield Violation(rule="every_other", expected=("an even rank",), actual=("an odd one",))


def test_a_rule_of_ranks_is_asked_about_every_query_once(folder: Path) -> None:
    EveryOther.asked.clear()
    rows = [answer(f"q{number}", 0.5, "Within 30 days.") for number in (1, 2, 3, 4)]
    write_jsonl(folder / "ranks.jsonl", [*rows[:3], rows[3] | run("q4", "other", "doc1")])
    request = pipeline.Inputs(golden=[str(folder / "golden.jsonl")], config=None, run=[str(folder / "ranks.jsonl")])
    registry = replace(REGISTRY, rules=(*REGISTRY.rules, Line(names=("every_other",), home=EveryOther, always=True)))
    report = pipeline.check(request, now=NOW, registry=registry).report
    assert [[one.rule for one in query.violations] for query in report.queries] == [*[["every_other"]] * 3, []]
    assert EveryOther.asked == ["q1: (1,)", "q2: (1,)", "q3: (1,)", "q4: (2,)"]


class Accepts:
    """A plugin that counts."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.asked: list[str] = []

    def evaluate(self, output: str, _tool_calls: list[Any], _rule: dict[str, Any]) -> tuple[bool, str]:
        """Refuse the answer."""
        self.asked.append(output)
        return False, "it is bad"


@pytest.mark.parametrize("second_pass", [False, True])
@pytest.mark.parametrize("in_turns", [False, True])
def test_a_rule_of_rows_is_asked_about_every_answer_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, second_pass: bool, in_turns: bool
) -> None:
    (searching,) = [line.load() for line in BUILT_IN.rules if "must_not_contain" in line.names]
    searched, matches = list[str](), getattr(searching, "matches")  # noqa: B009 (only rules that search have it)

    def counted(rule: Rule, row: RunRow, *more: Any) -> Any:
        searched.append(str(row.response))
        return matches(rule, row, *more)

    monkeypatch.setattr(searching, "matches", counted)
    rules = [{"type": "must_not_contain", "value": "free"}, {"type": "custom", "plugin": "Accepts"}]
    turns = {"turns": [{"query": "First?"}, {"query": "Then?"}]} if in_turns else {}
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", "doc1", rules=rules, **turns) for at in (1, 2)])
    expected = {}
    for side in ("run", "base"):
        said = [[f"{side} {at} {turn}: free" for turn in range(1 + in_turns)] for at in (1, 2)]
        rows = [
            run(f"q{at}", "doc1", retrieved_contexts=["It costs $4."], **_answered(texts))
            for at, texts in enumerate(said, 1)
        ]
        expected[str(write_jsonl(tmp_path / f"{side}.jsonl", rows))] = [text for texts in said for text in texts]
    (tmp_path / "judgments.jsonl").write_text("")
    (tmp_path / "ragcontract.yml").write_text(
        f"per_query: {{fail_on: new}}\njudge: {{second_pass: {str(second_pass).lower()}, unconfirmed: stands}}\n"
    )
    accepts, (now, before) = Accepts(), expected
    request = pipeline.Inputs(
        golden=[str(tmp_path / "golden.jsonl")],
        config=str(tmp_path / "ragcontract.yml"),
        run=[now],
        baseline=[before],
        judgments=[str(tmp_path / "judgments.jsonl")] if second_pass else [],
        plugins={"Accepts": accepts},
    )
    report = pipeline.check(request, now=NOW).report
    assert {violation.rule for query in report.queries for violation in query.violations} == {
        "must_not_contain",
        "custom",
    }
    assert searched == accepts.asked == [*expected[before], *expected[now]]


def _answered(texts: list[str]) -> dict[str, Any]:
    """Return the fields of a row with an answer, or with one for each turn of a conversation."""
    if len(texts) == 1:
        return {"response": texts[0]}
    return {
        "messages": [
            message
            for asked, text in zip(("First?", "Then?"), texts, strict=True)
            for message in ({"role": "user", "content": asked}, {"role": "assistant", "content": text})
        ]
    }


def test_a_run_that_lacks_what_a_rule_of_rows_reads_is_refused(folder: Path) -> None:
    run_of_ids = write_jsonl(folder / "ids.jsonl", [run(f"q{n}", "doc1") for n in range(1, 5)])
    source = Local(open_run([str(run_of_ids)]))
    request = pipeline.Inputs(golden=[str(folder / "golden.jsonl")], config=None, run=source)
    with pytest.raises(InputError) as caught:
        pipeline.check(
            request,
            now=NOW,
            registry=replace(BUILT_IN, rules=(*BUILT_IN.rules, Line(names=("must_say",), home=MustSay))),
        )
    assert caught.value.problems == [
        f'{run_of_ids}:{n}: query "q{n}" has no response, which must_say needs; export it' for n in (1, 2, 3)
    ]


class Sometimes:
    """Two metrics that only some queries have."""

    metrics = (Metric(key="one", label="One"), Metric(key="two", label="Two"))
    needs: frozenset[str] = frozenset()
    from_ids = True
    switch = SwitchedOn.ALWAYS

    def __init__(self, *having: str) -> None:
        """Take the ids of the queries that have them."""
        self._having = having

    def values(self, query: GoldenQuery, row: RunRow) -> Values:
        """Return both, the same."""
        return (float("doc1" in row.doc_ids),) * 2 if query.id in self._having else ()


def sometimes(*having: str) -> Registry:
    """Return a registry in which only some queries have the metrics."""
    return replace(
        BUILT_IN, metrics=(Line(home=lambda _settings: [Sometimes(*having)], always=True), *BUILT_IN.metrics)
    )


def test_a_query_without_a_part_in_metrics_has_none_without_a_row_either(folder: Path) -> None:
    (folder / "ragcontract.yml").write_text("missing_queries: zero\n")
    write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1"), golden("q2", "doc1"), golden("q3", "doc1")])
    write_jsonl(folder / "one.jsonl", [run("q1", "doc1")])
    request = pipeline.Inputs(
        golden=[str(folder / "golden.jsonl")],
        config=str(folder / "ragcontract.yml"),
        run=Local(open_run([str(folder / "one.jsonl")])),
    )
    report = pipeline.check(request, now=NOW, registry=sometimes("q1", "q2")).report
    assert report.metrics["one"].current == 0.5
    assert report.metrics["mrr_at_5"].current == pytest.approx(1 / 3)


def test_the_spread_of_repeats_is_that_of_the_queries_that_have_the_metric(folder: Path) -> None:
    write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1"), golden("q2", "doc1")])
    write_jsonl(folder / "twice.jsonl", [run("q1", "doc1"), run("q2", "doc1"), run("q1", "x"), run("q2", "doc1")])
    request = pipeline.Inputs(
        golden=[str(folder / "golden.jsonl")],
        config=None,
        run=Local(open_run([str(folder / "twice.jsonl")])),
        repeats=True,
    )
    report = pipeline.check(request, now=NOW, registry=sometimes("q1")).report
    assert report.repeats is not None
    spread = report.repeats.metrics
    assert (spread["one"].lowest, spread["one"].highest) == (0.0, 1.0)
    assert (spread["mrr_at_5"].lowest, spread["mrr_at_5"].highest) == (0.5, 1.0)


def test_a_rule_on_the_value_of_any_metric_is_judged_for_each_query(folder: Path) -> None:
    rules = [{"type": "max_score", "metric": "toxicity", "value": 1}]
    composite = "answers: {composite: {minimum: 0.5, metrics: [toxicity]}}\nmissing_queries: zero\n"
    write_jsonl(
        folder / "golden.jsonl", [golden("q1", "doc1", rules=rules), golden("q2", "doc1"), golden("q9", "doc1")]
    )
    (folder / "ragcontract.yml").write_text(composite)
    report = check(folder, "bad.jsonl", baseline=None).report
    broken = {query.id: {one.rule: one.message for one in query.violations} for query in report.queries}
    mean = "expected a mean of toxicity of at least 0.50; found: {} (Toxicity {})"
    assert broken["q1"] == {
        "max_score": "expected toxicity of at most 1.00; found: 3.50",
        "composite": mean.format("0.30", "3.5"),
    }
    assert broken["q2"] == {"composite": mean.format("0.30", "3.5")}
    assert broken["q9"]["composite"] == mean.format("0.00", "5")  # without a row: the worst of the scale
