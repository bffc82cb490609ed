import hashlib
from pathlib import Path

import jsonschema
import msgspec
import pytest

from ragcontract.contract.config import (
    Config,
    Drops,
    FailOn,
    LoadedConfig,
    Minimums,
    PerQuery,
    TagLimits,
    read_config,
)
from ragcontract.files.problems import Diagnostics
from ragcontract.schemas import SCHEMAS


def read(folder: Path, text: str | bytes) -> LoadedConfig:
    """Read a configuration that must be good."""
    path = folder / "ragcontract.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    diagnostics = Diagnostics()
    found = read_config(str(path), diagnostics)
    diagnostics.raise_problems()
    return found


def test_an_id_is_kept_as_it_is_written(tmp_path: Path) -> None:
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
  enforce_must_rank_at_most: false
  enforce_must_include: False
  enforce_forbidden_docs: true
  forbidden_within: 3
rank_by: documents
missing_queries: zero
"""
    found = read(tmp_path, text)
    assert found.config == Config(
        k=10,
        fail_on=FailOn(
            mrr_drop_gt=0.1,
            recall_drop_gt="5%",
            precision_drop_gt="12.5 %",
            hitrate_drop_gt=0,
            ndcg_drop_gt=0.2,
            map_drop_gt="100%",
            mode="significant",
            alpha=0.01,
        ),
        minimums=Minimums(
            mrr_at_k=0.8, recall_at_k=1, precision_at_k=0.01, hitrate_at_k=0.5, ndcg_at_k=0.4, map_at_k=0.3
        ),
        gain="exponential",
        tags={
            "policy": TagLimits(fail_on=Drops(map_drop_gt="3%"), minimums=Minimums(ndcg_at_k=0.7)),
            "eu.west": TagLimits(),
        },
        per_query=PerQuery(
            enforce_must_rank_at_most=False,
            enforce_must_include=False,
            enforce_forbidden_docs=True,
            forbidden_within=3,
        ),
        rank_by="documents",
        missing_queries="zero",
    )
    assert [file.sha256 for file in found.files] == [hashlib.sha256(text.encode()).hexdigest()]
    assert (found.lines["fail_on.mrr_drop_gt"], found.lines["minimums.hitrate_at_k"], found.lines["k"]) == (3, 11, 1)
    assert found.lines["tags.policy.minimums.ndcg_at_k"] == 16
    assert found.lines["tags.policy.fail_on.map_drop_gt"] == 17


def test_the_defaults() -> None:
    assert Config() == Config(
        k=5,
        gain="linear",
        fail_on=FailOn(mode="strict", alpha=0.05),
        minimums=Minimums(),
        tags={},
        per_query=PerQuery(),
        rank_by="results",
        missing_queries="error",
    )
    rules = PerQuery()
    assert rules.enforce_must_rank_at_most
    assert rules.enforce_must_include
    assert rules.enforce_forbidden_docs
    assert rules.forbidden_within is None


@pytest.mark.parametrize("text", ["# nothing yet\n", "---\n", "fail_on:\nminimums: ~\nk: null\n", "{}"])
def test_what_is_not_said_is_the_default(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text)
    assert found.config == Config()
    assert len(found.files) == 1


def test_numbers_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    assert read(tmp_path, "k: 010").config.k == 10
    assert read(tmp_path, "k: +7").config.k == 7
    assert read(tmp_path, "minimums: {mrr_at_k: 5e-1}").config.minimums.mrr_at_k == 0.5


def test_a_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    found = read(tmp_path, b"\xef\xbb\xbfk: 3\r\nminimums:\r\n  mrr_at_k: 0.5\r\n")
    assert (found.config.k, found.config.minimums.mrr_at_k) == (3, 0.5)
    assert found.lines["minimums.mrr_at_k"] == 3


@pytest.mark.parametrize("drop", ["0%", "100%", "100.0%", "0.5%", "99.99 %"])
def test_percentages_from_0_to_100_are_drops(drop: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"fail_on: {{mrr_drop_gt: {drop}}}").config.fail_on.mrr_drop_gt == drop


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
    config = found.config
    assert config.k == [1, 5, 10]
    given = msgspec.to_builtins(config)
    assert {name: value for name, value in given["minimums"].items() if value is not None} == {
        "recall_at_10": 0.9,
        "recall_at_1": 0.5,
        "recall_at_k": 0.8,
    }
    assert given["fail_on"]["map_at_1_drop_gt"] == "5%"
    assert given["tags"]["policy"]["minimums"]["ndcg_at_5"] == 0.7
    assert given["tags"]["policy"]["fail_on"]["mrr_at_10_drop_gt"] == 0
    assert (found.lines["minimums.recall_at_1"], found.lines["tags.policy.fail_on.mrr_at_10_drop_gt"]) == (1, 7)


def test_a_limit_may_name_the_only_cut_off(tmp_path: Path) -> None:
    assert msgspec.to_builtins(read(tmp_path, "minimums: {map_at_5: 1}").config)["minimums"]["map_at_5"] == 1
    assert msgspec.to_builtins(read(tmp_path, "k: 3\nminimums: {map_at_3: 1}").config)["minimums"]["map_at_3"] == 1


def test_the_schema_knows_limits_at_every_cut_off() -> None:
    schema = jsonschema.Draft202012Validator(SCHEMAS["config"]())
    limits = {"minimums": {"recall_at_10": 0.9}, "fail_on": {"map_at_7_drop_gt": "5%", "mode": "significant"}}
    assert schema.is_valid({"k": [1, 10], **limits, "tags": {"policy": {"minimums": {"ndcg_at_1": 0.5}}}})
    for wrong in (
        {"minimums": {"recall_at_10": 2}},
        {"minimums": {"recall_at_0": 0.9}},
        {"fail_on": {"f1_at_5_drop_gt": 1}},
    ):
        assert not schema.is_valid(wrong)
