"""Of very many violations of a row the first are listed, and the verdict is that of all of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.rule import Violation
from ragcontract.evaluation.plan import listed_first
from tests.builders import golden, write_jsonl
from tests.process import Ended, rag_contract


def violation(cause: str, rule: str = "must_contain", *, warns: bool = False) -> Violation:
    return Violation(rule=rule, expected=("x",), actual=(f"not {cause}",), causes=(cause,), warns=warns)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "VIOLATIONS", 2)


@pytest.mark.usefixtures("two")
class TestListed:
    def test_what_is_within_the_limit_is_listed_as_it_is(self) -> None:
        found = (violation("a"), violation("b"))
        assert listed_first(found) == found

    def test_one_more_is_listed_as_it_is_too(self) -> None:
        found = (violation("a"), violation("b"), violation("c"))
        assert listed_first(found) == found

    def test_the_others_of_a_rule_are_one_with_their_number_and_all_causes(self) -> None:
        *_, last = listed_first(map(violation, "abcdd"))
        assert last.actual == ("3 more violations, which are not listed",)
        assert last.causes == ("c", "d")

    def test_each_rule_stays_and_what_warns_stays_apart(self) -> None:
        more = [violation(cause, rule, warns=warns) for cause in "cd" for rule in ("x", "y") for warns in (True, False)]
        last = listed_first([violation("a"), violation("b"), *more])[2:]
        assert {(one.rule, one.warns) for one in last} == {("x", True), ("x", False), ("y", True), ("y", False)}


def checked(folder: Path, answers: list[str], baseline: list[str] | None = None, config: str = "k: 5\n") -> Ended:
    """Check a conversation in each turn of which no answer may contain a word."""
    rule = {"type": "must_not_contain", "value": "no", "in": "each"}
    turns = [{"query": "?"} for _ in answers]
    write_jsonl(folder / "golden.jsonl", [golden("q1", rules=[rule], turns=turns)])
    for name, said in (("current_run", answers), ("base", baseline or answers)):
        messages = [one for text in said for one in turn(text)]
        write_jsonl(folder / f"{name}.jsonl", [{"query_id": "q1", "results": [], "messages": messages}])
    (folder / "ragcontract.yml").write_text(config)
    return rag_contract("check", "--baseline", "base.jsonl")


def turn(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]


@pytest.mark.usefixtures("two")
class TestVerdict:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_a_new_violation_beyond_the_limit_fails_where_only_new_ones_count(self, folder: Path) -> None:
        config = "per_query: {fail_on: new}\n"
        before, now = ["no", "no", "no", "no", "yes"], ["no"] * 5
        assert checked(folder, before, before, config).code == 0
        assert checked(folder, now, before, config).code == 1

    def test_the_report_has_the_first_ones_and_the_number_of_the_others(self, folder: Path) -> None:
        assert checked(folder, ["no"] * 5).code == 1
        report = json.loads((folder / "report.json").read_text())
        assert "3 more violations, which are not listed" in json.dumps(report)
