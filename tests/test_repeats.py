"""Several rows per query: averaged, each held against the rules, their spread shown."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ragcontract import InputError, check
from tests.builders import as_jsonl, golden, run
from tests.github.standin import GitHub
from tests.process import Ended, rag_contract
from tests.runner import InProcess


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, *exports: dict[str, str], name: str = "current_run.jsonl", **fields: Any) -> None:
    """Write exports of documents ``ab`` by query id, each query wanting the document a."""
    ids = {query_id for export in exports for query_id in export}
    (folder / "golden.jsonl").write_text(as_jsonl(*(golden(query_id, "a", **fields) for query_id in sorted(ids))))
    rows = [run(query_id, *docs) for export in exports for query_id, docs in export.items()]
    (folder / name).write_text(as_jsonl(*rows))


def check_repeats(folder: Path) -> tuple[Ended, dict[str, Any]]:
    ended = rag_contract("check", "--repeats")
    return ended, json.loads((folder / "report.json").read_bytes())


def test_without_the_option_a_second_row_is_an_error(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "a"})
    for command in ("check", "score", "baseline"):
        ended = rag_contract(command)
        assert ended.code == 2
        assert "current_run.jsonl:2: query_id: duplicate id 'q', first defined at current_run.jsonl:1" in ended.err
        assert rag_contract(command, "--repeats").code == 0


def test_metrics_are_means_and_the_spread_is_of_the_exports_means(folder: Path) -> None:
    write(folder, {"q": "a", "p": "a"}, {"q": "ba", "p": "a"}, {"q": "a", "p": "a"})
    ended, report = check_repeats(folder)
    assert report["queries"][1]["metrics"]["mrr_at_5"] == pytest.approx(2.5 / 3)
    assert report["metrics"]["mrr_at_5"]["current"] == pytest.approx((1 + 0.75 + 1) / 3)
    spread = report["repeats"]["metrics"]["mrr_at_5"]
    assert (report["repeats"]["fewest"], report["repeats"]["most"]) == (3, 3)
    assert (spread["lowest"], spread["highest"]) == (0.75, 1)
    assert spread["deviation"] == pytest.approx(0.25 / 3**0.5)
    line = "Means over 3 exports of each query; standard deviation of one export's means: MRR@5 0.14, Recall@5 0.00"
    assert line in ended.out
    assert line in rag_contract("score", "--repeats").out
    assert "MRR@5 0.14" in (folder / "report.md").read_text()


def test_a_query_with_one_row_leaves_no_spread(folder: Path) -> None:
    write(folder, {"q": "a", "p": "a"}, {"q": "ba"})
    ended, report = check_repeats(folder)
    assert report["repeats"] == {"fewest": 1, "most": 2, "metrics": {}}
    assert "Means over 1 to 2 exports of each query; their spread is not known" in ended.out


def test_a_query_without_an_answer_and_one_row_leaves_the_spread_of_the_others(folder: Path) -> None:
    write(folder, {"q": "a", "p": "a"}, {"q": "ba"})
    asked = [golden("q", "a"), golden("p") | {"relevant_doc_ids": []}]
    (folder / "golden.jsonl").write_text(as_jsonl(*asked))
    spread = check_repeats(folder)[1]["repeats"]
    assert (spread["fewest"], spread["most"]) == (2, 2)
    assert spread["metrics"]["mrr_at_5"]["lowest"] == 0.5


def test_one_row_a_query_is_no_repeat(folder: Path) -> None:
    write(folder, {"q": "a", "p": "a"})
    ended, report = check_repeats(folder)
    assert (ended.code, report["repeats"]) == (0, None)


@pytest.mark.parametrize("exports", [("a", "b"), ("b", "a"), ("a", "bcdefa", "a")])
def test_a_rule_must_hold_in_every_row(exports: tuple[str, ...], folder: Path) -> None:
    write(folder, *({"q": docs} for docs in exports))
    ended, report = check_repeats(folder)
    assert ended.code == 1
    assert [broken["rule"] for broken in report["queries"][0]["violations"]] == ["must_include"]
    assert report["queries"][0]["ranks"] == {"a": 6 if len(exports) == 3 else None}


def test_a_forbidden_document_in_any_row_counts_at_its_best_rank(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "abx"}, {"q": "ax"}, forbidden_doc_ids=["x"])
    ended, report = check_repeats(folder)
    assert (ended.code, report["queries"][0]["forbidden_ranks"]) == (1, {"x": 2})


def test_another_document_each_time_is_enough_where_one_is(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "b"})
    row = golden("q", "a", "b", must_rank_at_most=1, must_include_any=True)
    (folder / "golden.jsonl").write_text(as_jsonl(row))
    ended, report = check_repeats(folder)
    assert (ended.code, report["queries"][0]["violations"]) == (0, [])


def test_a_baseline_of_repeats_is_averaged_as_well(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "ba"}, {"q": "ba"})
    assert rag_contract("baseline", "--repeats").code == 0
    (stored,) = json.loads((folder / "baseline.json").read_bytes())["queries"]
    assert (stored["doc_ids"], stored["repeats"]) == (["a"], [["b", "a"], ["b", "a"]])
    _, report = check_repeats(folder)
    assert report["metrics"]["mrr_at_5"]["baseline"] == pytest.approx(2 / 3)
    assert report["metrics"]["mrr_at_5"]["delta"] == 0
    copy = (folder / "current_run.jsonl").rename(folder / "base.jsonl")
    shutil.copy(copy, folder / "current_run.jsonl")
    assert rag_contract("check", "--repeats", "--baseline", "base.jsonl").code == 0


def test_a_query_of_several_rows_changed_by_its_metrics_and_not_by_its_worst_rank(folder: Path) -> None:
    write(folder, {"q": "xa", "p": "a", "r": "a", "s": "a"}, name="base.jsonl")
    exports = [{"q": docs, "p": "a", "r": "a"} for docs in ("a", "a", "xya")]
    write(folder, *exports, {"p": "xa"}, {"s": "xa"})
    ended = rag_contract("diff", "--repeats", "--baseline", "base.jsonl")
    assert ended.out.startswith(
        "Worse (2)\n"
        "  s  What about s?\n    a: 1 -> 2\n"
        "  p  What about p?\n    MRR@5 1.00 -> 0.88; the worst ranks of its rows:\n    a: 1 -> 2\n\n"
        "Better (1)\n"
        "  q  What about q?\n    MRR@5 0.50 -> 0.78; the worst ranks of its rows:\n    a: 2 -> 3\n"
    )
    assert ended.out.endswith("\n2 worse, 1 better, 1 the same\n")
    rag_contract("check", "--repeats", "--baseline", "base.jsonl")
    assert "MRR@5 0.50 → 0.78; the worst ranks of its rows: `a` 2 → 3" in (folder / "report.md").read_text()
    queries = json.loads((folder / "report.json").read_bytes())["queries"]
    assert {query["id"]: query.get("repeated") for query in queries} == {"p": True, "q": True, "r": True, "s": None}


def test_rows_of_the_baseline_make_a_query_repeated_as_well(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "a"}, {"q": "xya"}, name="base.jsonl")
    write(folder, {"q": "xa"})
    ended = rag_contract("diff", "--repeats", "--baseline", "base.jsonl")
    assert ended.out.startswith("Worse (1)\n  q  What about q?\n    MRR@5 0.78 -> 0.50; the worst ranks")


def test_a_baseline_of_one_row_a_query_has_no_repeats(folder: Path) -> None:
    write(folder, {"q": "a"})
    assert rag_contract("baseline", "--repeats").code == 0
    assert "repeats" not in (folder / "baseline.json").read_text()


def test_rows_of_an_unknown_query_are_named_once(folder: Path) -> None:
    write(folder, {"q": "a", "x": "a"}, {"q": "a", "x": "a"})
    (folder / "golden.jsonl").write_text(as_jsonl(golden("q", "a")))
    assert check_repeats(folder)[1]["inputs"]["run"]["unknown"] == ["x"]


def test_an_update_keeps_all_rows_and_changes_nothing_the_second_time(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "a"})
    rag_contract("baseline", "--repeats")
    write(folder, {"q": "a"}, {"q": "a"}, {"q": "ab"})
    assert rag_contract("baseline", "--repeats", "--update").code == 0
    text = (folder / "baseline.json").read_bytes()
    assert json.loads(text)["queries"][0]["repeats"] == [["a"], ["a", "b"]]
    rag_contract("baseline", "--repeats", "--update")
    assert (folder / "baseline.json").read_bytes() == text


def test_from_python_and_in_the_action(folder: Path, github: GitHub) -> None:
    runner = InProcess(folder, github)
    write(runner.workspace, {"q": "a"}, {"q": "ba"})
    assert (runner.run({"repeats": "true"}).outputs["mrr"], runner.run().exit_code) == ("0.75", 2)
    asked, returned = runner.workspace / "golden.jsonl", runner.workspace / "current_run.jsonl"
    assert check(golden=asked, run=returned, repeats=True).metrics["mrr_at_5"].current == 0.75
    with pytest.raises(InputError, match="duplicate id 'q', first defined at"):
        check(golden=asked, run=returned)


def test_a_document_that_one_row_in_the_middle_lacks_has_no_rank(folder: Path) -> None:
    write(folder, {"q": "a"}, {"q": "b"}, {"q": "a"})
    assert check_repeats(folder)[1]["queries"][0]["ranks"] == {"a": None}
