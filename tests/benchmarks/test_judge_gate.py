"""The tables of wrong checks in docs/background/judge.md have every case, and the model is the one described."""

import random
from math import comb

import numpy as np
import pytest

from benchmarks import judge_gate
from benchmarks.judge_gate import CONFIRMED, EVERYTHING, ONCE, Judge, failing, judge, refused
from ragcontract.judge.calls import Vote
from ragcontract.judge.interface import VoteSettings
from ragcontract.judge.judge_case import decided

PAGE = judge_gate.PAGE.read_text(encoding="utf-8")
PERFECT, COIN = Judge(good=1, bad=0), Judge(good=0.5, bad=0.5)


def rows(name: str) -> list[list[str]]:
    text = PAGE.partition(judge_gate.BEGIN.format(name))[2].partition(judge_gate.END)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture(autouse=True)
def _fewer_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_gate, "PAIRS", 400)


def dice() -> np.random.Generator:
    return np.random.default_rng(1)


def test_the_tables_have_every_case() -> None:
    cases = len(judge_gate.ACCURACIES) * len(judge_gate.QUERIES)
    assert len(rows("gates")) == cases * len(judge_gate.PREVALENCES)
    assert len(rows("rules")) == cases
    assert [len(row) for row in rows("labels")] == [1 + 6] * len(judge_gate.ACCURACIES)
    assert all(label in PAGE for label in judge_gate.LABEL.values())


def test_the_table_of_rules_is_up_to_date() -> None:
    table = PAGE.partition(judge_gate.BEGIN.format("rules"))[2].partition(judge_gate.END)[0]
    assert table == "\n".join(judge_gate.rules()) + "\n"


@pytest.mark.parametrize("accuracy", judge_gate.ACCURACIES)
def test_one_vote_is_as_right_as_the_judge(accuracy: float) -> None:
    one = judge(accuracy, ONCE)
    assert [one.good, 1 - one.bad] == pytest.approx([accuracy, accuracy])


@pytest.mark.parametrize("accuracy", judge_gate.ACCURACIES)
def test_votes_on_everything_help_both_sides_and_votes_on_failures_only_good_items(accuracy: float) -> None:
    everything, confirmed = judge(accuracy, EVERYTHING), judge(accuracy, CONFIRMED)
    assert everything.good > accuracy
    assert everything.good == pytest.approx(1 - everything.bad)
    assert confirmed.good > everything.good
    assert confirmed.bad > everything.bad, "what is wrongly approved once is not asked again"


@pytest.mark.parametrize("settings", [ONCE, CONFIRMED, EVERYTHING], ids=["1", "failures", "everything"])
@pytest.mark.parametrize("is_good", [True, False])
def test_the_odds_are_those_of_votes_that_are_drawn_one_by_one(settings: VoteSettings, is_good: bool) -> None:
    chance = random.Random(1)
    accuracy, trials, in_favour = 0.8, 20_000, 0
    for _ in range(trials):
        right = [chance.random() < accuracy]
        while (found := decided([Vote(verdict=vote == is_good) for vote in right], settings)) is None:
            right.append(right[0] if chance.random() < judge_gate.ALIKE else chance.random() < accuracy)
        in_favour += isinstance(found, Vote) and bool(found.verdict)
    one = judge(accuracy, settings)
    assert in_favour / trials == pytest.approx(one.good if is_good else one.bad, abs=0.012)


def test_a_perfect_judge_is_never_refused_and_a_coin_always() -> None:
    assert refused(PERFECT, dice()) == 0
    assert refused(COIN, dice()) == 1


@pytest.mark.parametrize(("labels", "share"), [(100, 0.05), (100, 0.1), (200, 0.05), (200, 0.2)])
def test_a_random_sample_is_refused_of_a_perfect_judge_for_want_of_bad_items(labels: int, share: float) -> None:
    too_few = sum(comb(labels, bad) * share**bad * (1 - share) ** (labels - bad) for bad in range(10))
    assert refused(PERFECT, dice(), labels, share) == pytest.approx(too_few, abs=0.08)


def test_the_table_of_labels_is_that_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_gate, "PAIRS", 4000)
    table = PAGE.partition(judge_gate.BEGIN.format("labels"))[2].partition(judge_gate.END)[0]
    assert table == "\n".join(judge_gate.random_labels()) + "\n"


def test_with_a_perfect_judge_and_many_queries_the_gate_is_right() -> None:
    assert failing(PERFECT, 0.2, 2000, 0, dice()) == 0
    assert failing(PERFECT, 0.2, 2000, judge_gate.DROP, dice()) == 1


def test_a_coin_fails_as_often_with_a_drop_as_without() -> None:
    assert failing(COIN, 0.2, 100, 0, dice()) == pytest.approx(failing(COIN, 0.2, 100, 0.1, dice()), abs=0.1)


def test_a_drop_is_of_the_size_that_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of exactly the drop is exceeded half of the time, one a little above or below hardly ever or always."""
    for limit, expected in ((0.08, 1.0), (0.1, 0.5), (0.12, 0.0)):
        monkeypatch.setattr(judge_gate, "LIMIT", limit)
        assert failing(PERFECT, 0.2, 4000, judge_gate.DROP, dice()) == pytest.approx(expected, abs=0.1)
