import hashlib
from pathlib import Path

import pytest

from ragcontract.inputs.config import Config, FailOn, LoadedConfig, Minimums, PerQuery, read_config
from ragcontract.inputs.diagnostics import Diagnostics


def read(folder: Path, text: str | bytes) -> LoadedConfig:
    """Read a configuration that must be good."""
    path = folder / "ragcontract.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    diagnostics = Diagnostics()
    found = read_config(str(path), diagnostics)
    diagnostics.raise_problems()
    return found


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """\
k: 10
fail_on:
  mrr_drop_gt: 0.10
  recall_drop_gt: "5%"
  precision_drop_gt: 12.5 %
  hitrate_drop_gt: 0
minimums: {mrr_at_k: 0.8, recall_at_k: 1, precision_at_k: 1e-2, hitrate_at_k: .5}
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
        fail_on=FailOn(mrr_drop_gt=0.1, recall_drop_gt="5%", precision_drop_gt="12.5 %", hitrate_drop_gt=0),
        minimums=Minimums(mrr_at_k=0.8, recall_at_k=1, precision_at_k=0.01, hitrate_at_k=0.5),
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
    assert (found.lines["fail_on.mrr_drop_gt"], found.lines["minimums.hitrate_at_k"], found.lines["k"]) == (3, 7, 1)


def test_the_defaults() -> None:
    assert Config() == Config(
        k=5, fail_on=FailOn(), minimums=Minimums(), per_query=PerQuery(), rank_by="results", missing_queries="error"
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
