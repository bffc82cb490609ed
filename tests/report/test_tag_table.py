"""How sure the drops of tags are, and which tag comes first."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.report.metric_table import tags_worst_first
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract, spawn
from tests.records import query, report
from tests.report.page import Page


def test_p_values_are_adjusted_over_all_tags_and_given_for_those_that_fell() -> None:
    sizes = {"five": 5, "six": 6, "up": 5}
    queries = [query(f"{tag}{number}", "A", tags=(tag,)) for tag, size in sizes.items() for number in range(size)]
    good, bad = ["A"], ["x", "A"]
    run = {one.id: good if one.tags == ("up",) else bad for one in queries}
    before = {one.id: bad if one.tags == ("up",) else good for one in queries}
    tags = report(queries, run, before, {"k": [1, 5]}, tests_all=True).tags
    # Alone, 2^-6 and 2^-5; the second also counts how often the first is as extreme by chance.
    assert 1 / 64 <= tags["six"].p_values["mrr_at_5"] < tags["five"].p_values["mrr_at_5"] < 0.12
    assert tags["five"].p_values["mrr_at_5"] > 1 / 32
    assert tags["up"].p_values == {}
    assert {key for tag in tags.values() for key in tag.p_values} == {"mrr_at_5", "ndcg_at_5", "map_at_5"}


@pytest.mark.parametrize(
    ("config", "options", "tested", "noise"),
    [
        ("k: 5", (), [], set()),
        ("fail_on: {mrr_drop_gt: 0.9}", (), [], {"mrr_at_5"}),
        ("tags: {billing: {fail_on: {recall_drop_gt: 1}}}", (), [("billing", {"recall_at_5"})], set()),
        ("fail_on: {mode: significant}", (), [("billing", "all"), ("policy", "all")], "all"),
        ("k: 5", ("--report-html", "report.html"), [("billing", "all"), ("policy", "all")], "all"),
    ],
    ids=["no limit", "a limit", "a limit on a tag", "a mode that tests", "the HTML report"],
)
def test_a_change_without_a_limit_is_tested_only_where_it_is_wanted(
    tmp_path: Path, config: str, options: tuple[str, ...], tested: list[Any], noise: Any
) -> None:
    names = [f"{tag}{number}" for tag in ("billing", "policy") for number in range(6)]
    write_jsonl(tmp_path / "golden.jsonl", [golden(name, "A", tags=[name[:-1]]) for name in names])
    write_jsonl(tmp_path / "base.jsonl", [run(name, "A") for name in names])
    write_jsonl(tmp_path / "current_run.jsonl", [run(name) for name in names])
    (tmp_path / "ragcontract.yml").write_text(config)
    spawn("check", "--baseline", "base.jsonl", *options, cwd=tmp_path)
    written = json.loads((tmp_path / "report.json").read_text())
    dropped = {name for name, metric in written["metrics"].items() if metric["delta"] and not metric.get("diagnostic")}
    p_values = [(tag, set(found["p_values"])) for tag, found in written["tags"].items() if found["p_values"]]
    assert p_values == [(tag, dropped if keys == "all" else keys) for tag, keys in tested]
    with_noise = {name for name in dropped if written["metrics"][name]["noise"]}
    assert with_noise == (dropped if noise == "all" else noise)
    markdown = (tmp_path / "report.md").read_text()
    assert ("How sure the changes are" in markdown) is bool(noise)
    assert ("With a star" in markdown) is bool(tested)


def test_the_tag_that_lost_most_comes_first_and_of_equal_losses_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ranks = {"up": (5, 1), "same": (4, 4), "better": (2, 2), "lost": (1, 2), "slipped": (2, 3)}
    write_jsonl(Path("golden.jsonl"), [golden(tag, "A", tags=[tag]) for tag in ranks])
    for name, side in (("base.jsonl", 0), ("run.jsonl", 1)):
        write_jsonl(Path(name), [run(tag, *"wxyz"[: found[side] - 1], "A") for tag, found in ranks.items()])
    ended = rag_contract("check", "--run", "run.jsonl", "--baseline", "base.jsonl")
    assert ended.code == 0, ended.err
    tags = next(table for table in Page(Path("report.md").read_text()).tables if table[0][0] == "Tag")
    assert [row[0] for row in tags[1:]] == ["lost", "slipped", "same", "better", "up"]


def test_tags_are_ordered_by_the_worst_change_of_any_metric_at_the_largest_cut_off() -> None:
    # "first" loses half of its MRR@5 and all of its MRR@1, "lost" all of its recall too; "poor" and "good" stay.
    names = ["good", "poor", "first", "lost", "nothing"]
    queries = [query(name, *(["A"] if name != "nothing" else []), tags=(name,)) for name in names]
    before = {"good": ["A"], "poor": ["x", "A"], "first": ["A"], "lost": ["x", "x", "A"], "nothing": []}
    now = before | {"first": ["x", "A"], "lost": []}
    made = report(queries, now, before, {"k": [1, 5]})
    assert [name for name, _ in tags_worst_first(made)] == ["lost", "first", "poor", "good", "nothing"]


def test_tags_without_a_baseline_are_ordered_by_where_they_stand() -> None:
    queries = [query("q1", "A", tags=("good",)), query("q2", "A", tags=("poor",))]
    made = report(queries, {"q1": ["A"], "q2": ["x", "A"]})
    assert [name for name, _ in tags_worst_first(made)] == ["poor", "good"]


def test_of_many_metrics_the_table_of_tags_has_those_with_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"score_{number}" for number in range(20)]
    write_jsonl(Path("golden.jsonl"), [golden("q1", "A", tags=["chat"])])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "A", scores=dict.fromkeys(names, 0.5))])
    declared = "".join(f"  {name}: {{from: scores}}\n" for name in names)
    Path("ragcontract.yml").write_text(f"metrics:\n{declared}minimums: {{recall_at_k: 0.5, score_7: 0.5}}\n")
    ended = rag_contract("check", "--report-html", "report.html")
    assert ended.code == 0, ended.err
    written = Path("report.md").read_text()
    tags = next(table for table in Page(written).tables if table[0][0] == "Tag")
    assert tags[0] == ["Tag", "Queries", "Recall@5", "score_7"]
    assert "24 more metrics by tag: in the JSON report." in written
    assert "24 more metrics by tag: in the JSON report." in Path("report.html").read_text()


def test_metrics_that_no_tag_has_a_value_of_are_no_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "?", "expected_mode": "abstain", "tags": ["chat"]}])
    write_jsonl(Path("current_run.jsonl"), [{"query_id": "q1", "mode": "abstain"}])
    assert rag_contract("check").code == 0
    tags = next(table for table in Page(Path("report.md").read_text()).tables if table[0][0] == "Tag")
    assert tags[0] == ["Tag", "Queries", "Mode accuracy", "False-answer rate"]
