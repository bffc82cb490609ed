"""Limits on changes that their queries cannot carry: ``lint`` notes them, ``check`` warns once for each size."""

from pathlib import Path

import pytest
import yaml

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

SIX = "6 queries cannot carry an allowed drop of 0.05, which needs"
TAGS = "2 tags of 2 to 4 queries ('few' and 'more') cannot carry an allowed drop of 0.05, which needs"


@pytest.fixture(autouse=True)
def _contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six queries, of which two have one tag and four another."""
    monkeypatch.chdir(tmp_path)
    rows = [golden(f"q{number}", "doc1", tags=["few" if number < 2 else "more"]) for number in range(6)]
    write_jsonl(Path("golden.jsonl"), rows)
    write_jsonl(Path("base.jsonl"), [run(f"q{number}", "doc1") for number in range(6)])
    write_jsonl(Path("current_run.jsonl"), [run("q0", "x", "doc1"), *(run(f"q{n}", "doc1") for n in range(1, 6))])


def config(mode: str, drop: float = 0.05) -> None:
    """Write a config with limits on MRR and recall, over all queries and on both tags."""
    limits = {"mrr_drop_gt": drop, "recall_drop_gt": drop}
    tags = {tag: {"fail_on": {**limits}} for tag in ("few", "more")}
    Path("ragcontract.yml").write_text(yaml.safe_dump({"fail_on": {"mode": mode, **limits}, "tags": tags}))


def notes() -> list[str]:
    """Return what lint notes of limits, without what to do."""
    ended = rag_contract("lint")
    assert ended.code == 0, ended.err
    return [line.rpartition(";")[0] for line in ended.out.splitlines() if "[limit-needs-queries]" in line]


def warned() -> list[str]:
    """Return what check warns of limits, without what to do."""
    ended = rag_contract("check", "--baseline", "base.jsonl")
    return [line.rpartition(";")[0] for line in ended.err.splitlines() if "cannot carry" in line]


@pytest.mark.parametrize("mode", ["significant", "noninferiority"])
def test_both_name_them_once_for_each_size_at_the_line_of_the_limit(mode: str) -> None:
    config(mode)
    first, second = notes()
    assert first.startswith(f"ragcontract.yml:3: [limit-needs-queries] {SIX} ")
    assert second.startswith(f"ragcontract.yml:8: [limit-needs-queries] {TAGS} ")
    lines = [note.replace("[limit-needs-queries] ", "") for note in notes()]
    assert warned() == [f"warning: {line}" for line in lines]


def test_with_mode_strict_both_are_quiet() -> None:
    config("strict")
    assert (notes(), warned()) == ([], [])


def test_a_limit_that_the_queries_can_carry_is_not_named() -> None:
    config("significant", 1.0)
    (note,) = notes()  # six queries are enough to prove that all of them are lost, four are not
    assert note.startswith("ragcontract.yml:8: [limit-needs-queries] 2 tags of 2 to 4 queries ")
