"""``ragcontract.yml``: what is read of it, its limits by metric and cut-off, and what is wrong with it."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from ragcontract.contract.config_file import ConfigFile, config_of, read_config
from ragcontract.contract.limits import limit_keys, metrics_at
from ragcontract.core.errors import InputError
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Direction, Family, Metric, MetricSettings, Scale, SwitchedOn
from ragcontract.core.phrase import dotted
from ragcontract.core.run import RunRow, Values
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.schemas import SCHEMAS


def read(folder: Path, text: str | bytes, *, k: int | None = None, registry: Registry = BUILT_IN) -> ConfigFile:
    """Read a configuration that must be good."""
    found = read_any(folder, text, k=k, registry=registry)
    found.problems.raise_if_any()
    return found


def read_any(folder: Path, text: str | bytes, *, k: int | None = None, registry: Registry = BUILT_IN) -> ConfigFile:
    path = folder / "ragcontract.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_config(str(path), registry, k=k)


def problems_of(folder: Path, text: str, *, registry: Registry = BUILT_IN) -> list[str]:
    found = read_any(folder, text, registry=registry)
    assert found.gates == ()
    return [problem.replace(f"{folder}/ragcontract.yml:", "") for problem in found.problems.problems]


def limits(gates: Iterable[Gate]) -> dict[str, float | str]:
    """Return the limit of each gate as it was written, by its id."""
    return {gate.id: f"{gate.limit:.4g} of the baseline" if gate.relative else gate.limit for gate in gates}


def lines(found: ConfigFile) -> dict[str, int]:
    return {dotted(path): line for path, line in found.locations.lines.items()}


def test_an_id_is_read_as_it_is_written(tmp_path: Path) -> None:
    other = "reason: r, owner: o, expires: 2026-12-31"
    written = ["007", "7", "1_0", "+1", "1.50", "12345678901234567890", "true", '"07"', "nullable"]
    found = read(tmp_path, "waivers:\n" + "".join(f"- {{query: {one}, {other}}}\n" for one in written))
    assert [waiver.query for waiver in found.config.waivers] == [one.strip('"') for one in written]


def test_two_halves_are_a_character(tmp_path: Path) -> None:
    waiver = r'{query: q, reason: "\ud83d\ude00", owner: o, expires: 2026-12-31}'
    assert read(tmp_path, f"waivers: [{waiver}]").config.waivers[0].reason == "\N{GRINNING FACE}"


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """\
k: 10
fail_on:
  mrr_drop_gt: 0.10
  recall_drop_gt: "5%"
  precision_drop_gt: 12.5 %
  hitrate_drop_gt: 0
  ndcg_drop_gt: 0.2
  map_drop_gt: 100%
  mode: significant
  alpha: 0.01
minimums: {mrr_at_k: 0.8, recall_at_k: 1, precision_at_k: 1e-2, hitrate_at_k: .5, ndcg_at_k: 0.4, map_at_k: 0.3}
gain: exponential
tags:
  policy:
    minimums:
      ndcg_at_k: 0.7
    fail_on: {map_drop_gt: 3%}
  eu.west: {}
per_query:
  must_include: any
  fail_on: new
  enforce_must_rank_at_most: false
  enforce_must_include: new
  enforce_forbidden_docs: true
  forbidden_within: 3
  different_documents: [faq_2]
rank_by: documents
missing_queries: zero
"""
    found = read(tmp_path, text)
    config: Any = found.config
    assert (config.k, config.gain, config.rank_by, config.missing_queries) == (10, "exponential", "documents", "zero")
    assert (config.fail_on.mode, config.fail_on.alpha) == ("significant", 0.01)
    assert list(config.tags) == ["policy", "eu.west"]
    switches = {f"enforce_{line.names[0]}": True for line in BUILT_IN.rules}
    assert msgspec.to_builtins(config.per_query) == switches | {
        "fail_on": "new",
        "must_include": "any",
        "enforce_must_rank_at_most": False,
        "enforce_must_include": "new",
        "enforce_forbidden_docs": True,
        "forbidden_within": 3,
        "different_documents": ["faq_2"],
    }
    assert limits(found.gates) == {
        "fail_on.mrr_drop_gt": 0.1,
        "minimums.mrr_at_k": 0.8,
        "fail_on.recall_drop_gt": "0.05 of the baseline",
        "minimums.recall_at_k": 1,
        "fail_on.precision_drop_gt": "0.125 of the baseline",
        "minimums.precision_at_k": 0.01,
        "fail_on.hitrate_drop_gt": 0,
        "minimums.hitrate_at_k": 0.5,
        "fail_on.ndcg_drop_gt": 0.2,
        "minimums.ndcg_at_k": 0.4,
        "fail_on.map_drop_gt": "1 of the baseline",
        "minimums.map_at_k": 0.3,
        "tags.policy.minimums.ndcg_at_k": 0.7,
        "tags.policy.fail_on.map_drop_gt": "0.03 of the baseline",
    }
    assert {gate.quantity.key.rpartition("_at_")[2] for gate in found.gates} == {"10"}
    assert [file.sha256 for file in found.files] == [hashlib.sha256(text.encode()).hexdigest()]
    at = lines(found)
    assert (at["fail_on.mrr_drop_gt"], at["minimums.hitrate_at_k"], at["k"]) == (3, 11, 1)
    assert at["tags.policy.minimums.ndcg_at_k"] == 16
    assert at["tags.policy.fail_on.map_drop_gt"] == 17
    assert all(str(gate.location) == f"{tmp_path}/ragcontract.yml:{at[gate.id]}" for gate in found.gates)


def test_the_defaults() -> None:
    found = read_config(None, BUILT_IN)
    config: Any = found.config
    assert (found.gates, found.files, found.cutoffs) == ((), (), (5,))
    assert (config.k, config.gain, config.rank_by, config.missing_queries) == (5, "linear", "results", "error")
    assert (config.fail_on.mode, config.fail_on.alpha, config.tags, config.waivers) == ("strict", 0.05, {}, [])
    assert config.max_baseline_age is None
    switches = {f"enforce_{line.names[0]}": True for line in BUILT_IN.rules}
    assert msgspec.to_builtins(config.per_query) == {
        "fail_on": "any",
        "must_include": "all",
        "forbidden_within": None,
        "different_documents": [],
        **switches,
    }


def test_gates_are_in_the_order_of_metrics_tags_and_other_quantities(tmp_path: Path) -> None:
    text = """\
latency: {max_ms: 9}
tags: {b: {minimums: {mrr_at_k: 0}}, a: {minimums: {mrr_at_k: 0}, fail_on: {mrr_drop_gt: 1}}}
minimums: {map_at_k: 0, mrr_at_k: 0}
fail_on: {precision_drop_gt: "2.5 %"}
k: 7
"""
    found = [(gate.id, gate.quantity.key, gate.kind, gate.tag) for gate in read(tmp_path, text).gates]
    assert found == [
        ("minimums.mrr_at_k", "mrr_at_7", "minimum", None),
        ("fail_on.precision_drop_gt", "precision_at_7", "drop", None),
        ("minimums.map_at_k", "map_at_7", "minimum", None),
        ("tags.b.minimums.mrr_at_k", "mrr_at_7", "minimum", "b"),
        ("tags.a.fail_on.mrr_drop_gt", "mrr_at_7", "drop", "a"),
        ("tags.a.minimums.mrr_at_k", "mrr_at_7", "minimum", "a"),
        ("latency.max_ms", "latency_max_ms", "maximum", None),
    ]


def test_every_limit_key_makes_a_gate_of_its_own() -> None:
    keys = limit_keys(BUILT_IN, [5, 1])
    written: dict[str, Any] = {}
    for key in keys:
        written.setdefault(key.section, {})[key.name] = {"label": 1.0} if key.by_class else 1.0
    tagged: dict[str, Any] = {}
    for key in keys:
        if key.by_tag:
            tagged.setdefault(key.section, {})[key.name] = 1.0
    gates = config_of({"k": [1, 5], **written, "tags": {"a": tagged, "b": tagged}}, BUILT_IN).gates
    names = [f"{key.section}.{key.name}{'.label' * (key.by_class is not None)}" for key in keys]
    by_tag = [f"{key.section}.{key.name}" for key in keys if key.by_tag]
    of_ranks = [key for key in keys if "_at_" in key.quantity.key]
    # Two names at the largest cut-off and one at the other: of six metrics two limits on drops and a minimum, of three
    # only the minimum.
    assert len(of_ranks) == 3 * (3 * 6 + 3)
    ids = [gate.id for gate in gates]
    assert sorted(ids) == sorted([*names, *(f"tags.{tag}.{name}" for tag in "ab" for name in by_tag)])


@pytest.mark.parametrize("text", ["# nothing yet\n", "---\n", "fail_on:\nminimums: ~\nwaivers: null\n", "{}"])
def test_what_is_not_said_is_the_default(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text)
    assert msgspec.to_builtins(found.config) == msgspec.to_builtins(read_config(None, BUILT_IN).config)
    assert (found.gates, len(found.files)) == ((), 1)


def test_numbers_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    assert read(tmp_path, "k: 010").config.k == 10
    assert read(tmp_path, "k: +7").config.k == 7
    assert limits(read(tmp_path, "minimums: {mrr_at_k: 5e-1}").gates) == {"minimums.mrr_at_k": 0.5}


def test_a_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    found = read(tmp_path, b"\xef\xbb\xbfk: 3\r\nminimums:\r\n  mrr_at_k: 0.5\r\n")
    assert (found.config.k, limits(found.gates)) == (3, {"minimums.mrr_at_k": 0.5})
    assert lines(found)["minimums.mrr_at_k"] == 3


@pytest.mark.parametrize(
    ("drop", "limit"), [("0%", 0.0), ("100%", 1.0), ("100.0%", 1.0), ("0.5%", 0.005), ("99.99 %", 0.9999)]
)
def test_percentages_from_0_to_100_are_drops(drop: str, limit: float, tmp_path: Path) -> None:
    (gate,) = read(tmp_path, f"fail_on: {{mrr_drop_gt: {drop}}}").gates
    assert gate.limit == pytest.approx(limit)
    assert gate.relative


def test_limits_may_name_any_cut_off_of_the_file(tmp_path: Path) -> None:
    text = """\
minimums: {recall_at_10: 0.9, recall_at_1: 0.5, recall_at_k: 0.8}
fail_on:
  map_at_1_drop_gt: "5%"
tags:
  policy:
    minimums: {ndcg_at_5: 0.7}
    fail_on: {mrr_at_10_drop_gt: 0}
k: [1, 5, 10]
"""
    found = read(tmp_path, text)
    assert (found.config.k, found.cutoffs) == ([1, 5, 10], (10, 5, 1))
    assert {gate.id: gate.quantity.key for gate in found.gates} == {
        "minimums.recall_at_k": "recall_at_10",
        "minimums.recall_at_10": "recall_at_10",
        "minimums.recall_at_1": "recall_at_1",
        "fail_on.map_at_1_drop_gt": "map_at_1",
        "tags.policy.minimums.ndcg_at_5": "ndcg_at_5",
        "tags.policy.fail_on.mrr_at_10_drop_gt": "mrr_at_10",
    }
    assert limits(found.gates) == {
        "minimums.recall_at_k": 0.8,
        "minimums.recall_at_10": 0.9,
        "minimums.recall_at_1": 0.5,
        "fail_on.map_at_1_drop_gt": "0.05 of the baseline",
        "tags.policy.minimums.ndcg_at_5": 0.7,
        "tags.policy.fail_on.mrr_at_10_drop_gt": 0,
    }
    at = lines(found)
    assert (at["minimums.recall_at_1"], at["tags.policy.fail_on.mrr_at_10_drop_gt"]) == (1, 7)


def test_a_limit_may_name_the_only_cut_off(tmp_path: Path) -> None:
    assert limits(read(tmp_path, "minimums: {map_at_5: 1}").gates) == {"minimums.map_at_5": 1}
    assert limits(read(tmp_path, "k: 3\nminimums: {map_at_3: 1}").gates) == {"minimums.map_at_3": 1}


def test_a_limit_at_a_cut_off_that_is_not_scored_is_refused(tmp_path: Path) -> None:
    text = "k: [1, 5]\nminimums:\n  recall_at_3: 0\ntags: {t: {fail_on: {mrr_at_9_drop_gt: 0}}}"
    assert problems_of(tmp_path, text) == [
        "3: minimums.recall_at_3: 3 is not in k; add it there, or name a cut-off that is",
        "4: tags.t.fail_on.mrr_at_9_drop_gt: 9 is not in k; add it there, or name a cut-off that is",
    ]


def test_an_argument_replaces_the_cut_offs_of_a_file_and_none_of_its_limits(tmp_path: Path) -> None:
    found = read(tmp_path, "k: [1, 5]\nminimums: {recall_at_k: 0.5, recall_at_1: 0.4, recall_at_5: 0.3}", k=3)
    assert (found.cutoffs, found.config.k) == ((3,), [1, 5])
    assert {gate.id: gate.quantity.key for gate in found.gates} == {
        "minimums.recall_at_k": "recall_at_3",
        "minimums.recall_at_1": "recall_at_1",
        "minimums.recall_at_5": "recall_at_5",
    }
    assert {gate.id: gate.quantity.key for gate in read(tmp_path, "minimums: {map_at_3: 1}", k=3).gates} == {
        "minimums.map_at_3": "map_at_3"
    }


class Toy:
    """A family of one metric."""

    needs: frozenset[str] = frozenset()
    from_ids = True
    switch = SwitchedOn.ALWAYS

    def __init__(self, metric: Metric) -> None:
        self.metrics = (metric,)

    def values(self, query: GoldenQuery, row: RunRow) -> Values:  # noqa: ARG002
        return (0.0,)


def registry_with(metric: Metric) -> Registry:
    def provided(_settings: MetricSettings) -> list[Family]:
        return [Toy(metric)]

    return replace(BUILT_IN, metrics=(*BUILT_IN.metrics, Line(home=provided, always=True)))


def toy(better: Direction, scale: Scale) -> Registry:
    return registry_with(Metric(key="toy", label="Toy", better=better, scale=scale))


def test_a_metric_of_which_lower_is_better_has_a_maximum_and_a_rise(tmp_path: Path) -> None:
    registry = toy("lower", Scale(-2, 10))
    text = "maximums: {toy: -2}\nfail_on: {toy_rise_gt: 12}\ntags: {t: {maximums: {toy: 10}}}"
    gates = read(tmp_path, text, registry=registry).gates
    assert [(gate.id, gate.kind, gate.limit, gate.quantity.better) for gate in gates] == [
        ("fail_on.toy_rise_gt", "rise", 12, "lower"),
        ("maximums.toy", "maximum", -2, "lower"),
        ("tags.t.maximums.toy", "maximum", 10, "lower"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("maximums: {toy: 10.5}", "1: maximums.toy: expected a number from -2 to 10, found 10.5"),
        ("fail_on: {toy_rise_gt: -1}", "1: fail_on.toy_rise_gt: expected a number from 0 to 12"),
        ("minimums: {toy: 0}", "1: minimums.toy: lower is better: write maximums.toy"),
        ("tags: {t: {minimums: {toy: 0}}}", "1: tags.t.minimums.toy: lower is better: write maximums.toy"),
        ("maximums: {mrr_at_k: 0}", "1: maximums.mrr_at_k: higher is better: write minimums.mrr_at_k"),
        ("fail_on: {toy_drop_gt: 1}", "1: fail_on.toy_drop_gt: lower is better: write fail_on.toy_rise_gt"),
    ],
)
def test_limits_fit_the_scale_and_the_direction_of_their_metric(text: str, problem: str, tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, text, registry=toy("lower", Scale(-2, 10)))
    assert found.startswith(problem)


def test_a_maximum_of_a_metric_of_which_higher_is_better_is_refused(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "maximums: {mrr_at_k: 0.5}")
    assert problem == "1: maximums.mrr_at_k: higher is better: write minimums.mrr_at_k"


def test_two_limits_of_one_name_are_a_mistake_in_the_registry() -> None:
    with pytest.raises(
        ValueError, match=r"the same key: fail_on\.mrr_drop_gt, history\.mrr_drop_gt, minimums\.mrr_at_k"
    ):
        limit_keys(registry_with(Metric(key="mrr_at_k", label="Toy")), [5])


def test_metrics_come_family_by_family() -> None:
    keys = [metric.key for metric in metrics_at(toy("higher", Scale()), [5, 1])]
    assert (keys[0], keys[6], keys[-1], sum("_at_" in key for key in keys)) == ("mrr_at_5", "mrr_at_1", "toy", 18)


def test_a_value_that_is_in_no_file_is_read_as_one() -> None:
    found = config_of({"minimums": {"mrr_at_k": 0.5}}, BUILT_IN, k=3, location="here")
    assert [(gate.quantity.key, gate.location) for gate in found.gates] == [("mrr_at_3", "here")]
    with pytest.raises(InputError, match=r"^here: minimums\.mrr_at_k: expected a fraction"):
        config_of({"minimums": {"mrr_at_k": 5}}, BUILT_IN, location="here")


@pytest.mark.parametrize("blank", [" ", "\\t", "\\u200b", "\\u3164 "])
def test_a_waiver_says_why_and_whose_it_is(tmp_path: Path, blank: str) -> None:
    text = f'waivers:\n- {{query: q, reason: "{blank}", owner: "{blank}", expires: 2026-12-31}}\n'
    found = problems_of(tmp_path, text)
    assert [problem.partition(", found")[0] for problem in found] == [
        "2: waivers[0].reason: expected text that a reader sees",
        "2: waivers[0].owner: expected text that a reader sees",
    ]


def test_problems_are_all_reported_in_the_order_of_lines(tmp_path: Path) -> None:
    other = "reason: r, owner: o"
    text = f"""\
waivers:
- {{query: q, {other}, expires: 2026-02-30}}
- {{query: q, gate: fail_on.mrr_drop_gt, {other}, expires: 2026-12-31}}
- {{gate: fail_on.mrr_drop_gt, rule: must_include, {other}, expires: 2026-12-31}}
"""
    assert problems_of(tmp_path, text) == [
        "2: waivers[0].expires: expected a date that exists, found '2026-02-30'",
        "3: waivers[1]: needs one of query, tag and gate, to say what it waives",
        "4: waivers[2].rule: is for a query or a tag; a gate has no rules",
    ]
    found = problems_of(tmp_path, "minimums: {mrr_at_k: 2}\nkk: 1\nfail_on: {alpha: 7}\nk: 0\n")
    assert [problem.partition(": ")[0] for problem in found] == ["1", "2", "3", "4"]


def test_the_schema_knows_limits_at_every_cut_off() -> None:
    schema = jsonschema.Draft202012Validator(SCHEMAS["config"](BUILT_IN))
    limits = {"minimums": {"recall_at_10": 0.9}, "fail_on": {"map_at_7_drop_gt": "5%", "mode": "significant"}}
    assert schema.is_valid({"k": [1, 10], **limits, "tags": {"policy": {"minimums": {"ndcg_at_1": 0.5}}}})
    for wrong in (
        {"minimums": {"recall_at_10": 2}},
        {"minimums": {"recall_at_0": 0.9}},
        {"fail_on": {"F1_at_5_drop_gt": 1}},
    ):
        assert not schema.is_valid(wrong)


def test_a_configuration_cannot_say_where_a_judge_is_asked_or_with_which_key(tmp_path: Path) -> None:
    names = ["base_url", "url", "judge_url", "key", "api_key", "api", "plugin", "endpoint", "calibration"]
    text = "judge:\n  model: m\n" + "".join(f"  {name}: x\n" for name in names)
    why = "unknown key; the address and the API key of the judge are named by whoever runs `rag-contract judge`,"
    assert problems_of(tmp_path, text) == [
        f"{line}: judge.{name}: {why} never in this file" for line, name in enumerate(names, start=3)
    ]
    for section in ("metrics: {context_recall: {url: http://evil.example}}\n", "judge_url: http://evil.example\n"):
        assert len(problems_of(tmp_path, section)) == 1


def test_no_section_of_a_configuration_has_a_key_for_an_address_a_secret_or_code() -> None:
    sections = SCHEMAS["config"](BUILT_IN)["$defs"]
    assert {"Config", "JudgeSettings", "DeclaredScore", "AnswerSettings", "Waiver"} <= set(sections)
    for name, section in sections.items():
        assert section["additionalProperties"] is False, name
        for key in section["properties"]:
            assert not re.search(r"url|uri|host|address|endpoint|key|token|secret|plugin|command|module|path", key), key


def test_the_section_on_the_judge_says_which_judgments_count(tmp_path: Path) -> None:
    text = (
        "judge: {model: m, metrics: [context_recall], votes: 5, confirm: all, uncalibrated: advisory, max_age_days: 2}"
    )
    judge = read(tmp_path, text).config.judge
    assert (judge.model, judge.metrics, judge.votes, judge.confirm) == ("m", ["context_recall"], 5, "all")
    assert (judge.uncalibrated, judge.max_age_days) == ("advisory", 2)
    assert problems_of(tmp_path, "judge: {votes: 4}") == [
        "1: judge.votes: expected an odd number, so that a majority decides, found 4"
    ]
    assert problems_of(tmp_path, "judge: {uncalibrated: pass}") == [
        '1: judge.uncalibrated: expected "advisory" or "refuse", found "pass"'
    ]
