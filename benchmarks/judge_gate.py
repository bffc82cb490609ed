"""How often a judged gate cries wolf, and how often it misses a real drop: `python -m benchmarks.judge_gate`.

Draws pairs of runs, has each item of each judged by a judge that is right as often as ``ACCURACIES`` says, and writes
the shares of wrong checks into docs/background/judge.md. The model: each query has one judged item, and a share
(``PREVALENCES``) of the items is bad. From one run to the next, the truth of a share of the items (``CHURN``) is drawn
again, and all texts are new, so that no judgment is replayed. A real drop is good items that, on top of that, become
bad: a share of ``DROP`` of all items. The gate fails if the share of items that are judged good falls by more than
``LIMIT``.

A vote after the first says the same as the first in a share of the cases (``ALIKE``), because a judge has reasons for
its mistakes; otherwise it is drawn again. What the votes decide, and whether a calibration with ``LABELS`` items, half
of them good, counts, is decided by the code that decides it in a check; so is one with a random sample of items of
which a share (``RARE``) is bad. All is seeded.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
from msgspec import Struct

from ragcontract.core.config_sections import LabelCounts
from ragcontract.core.numbers import SAME
from ragcontract.judge.calls import Vote
from ragcontract.judge.interface import VoteSettings
from ragcontract.judge.judge_case import decided
from ragcontract.judgments.calibration import calibrated, why_not

PAGE = Path(__file__).parent.parent / "docs" / "background" / "judge.md"
BEGIN, END = "<!-- begin: simulated {} -->\n", "<!-- end -->"
ACCURACIES = (0.7, 0.8, 0.9, 0.95, 0.98)
PREVALENCES = (0.05, 0.2, 0.5)
QUERIES = (30, 100, 500)
CHURN, ALIKE = 0.1, 0.5
LIMIT, DROP = 0.05, 0.10
LABELS = 100
RANDOM_LABELS, RARE = (100, 200), (0.05, 0.1, 0.2)
PAIRS = 4000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONCE, CONFIRMED, EVERYTHING = VoteSettings(votes=1), VoteSettings(votes=3), VoteSettings(votes=3, confirm="all")
LABEL: Mapping[VoteSettings, str] = {
    ONCE: "1 vote",
    CONFIRMED: "3 votes on failures",
    EVERYTHING: "3 votes on everything",
}


class Judge(Struct, frozen=True, kw_only=True):
    """How likely an item is judged good, if it is good and if it is bad."""

    good: float
    bad: float


def judge(accuracy: float, settings: VoteSettings) -> Judge:
    """Return how likely the votes on an item end in its favour, over all that they can be."""
    right = {False: 0.0, True: 0.0}  # by whether the item is good
    for is_good, votes in product(right, product((True, False), repeat=settings.votes)):
        first, *others = (vote == is_good for vote in votes)
        chance = (accuracy if first else 1 - accuracy) * prod(
            ALIKE * (other == first) + (1 - ALIKE) * (accuracy if other else 1 - accuracy) for other in others
        )
        if _verdict(votes, settings):
            right[is_good] += chance
    return Judge(good=right[True], bad=right[False])


def _verdict(votes: tuple[bool, ...], settings: VoteSettings) -> bool:
    cast = [Vote(verdict=vote) for vote in votes]
    decisions = (decided(cast[:asked], settings) for asked in range(1, len(cast) + 1))
    decision = next(decision for decision in decisions if decision)
    return isinstance(decision, Vote) and bool(decision.verdict)


def refused(one: Judge, dice: np.random.Generator, labels: int = LABELS, rare: float | None = None) -> float:
    """Return how often a calibration of a judge does not count; half of its items are bad, or each with a chance."""
    bad = labels // 2 if rare is None else dice.binomial(labels, rare, PAIRS)
    drawn = dice.binomial(labels - bad, one.good, PAIRS), dice.binomial(bad, one.bad, PAIRS)
    said = zip(np.broadcast_to(bad, PAIRS).tolist(), *(numbers.tolist() for numbers in drawn), strict=True)
    counts = (LabelCounts(tp=tp, fp=fp, fn=labels - no - tp, tn=no - fp) for no, tp, fp in said)
    made = (calibrated("criteria", each, fingerprint="f", at=NOW) for each in counts)
    return sum(bool(why_not({"criteria": each}, "criteria", fingerprints=["f"], now=NOW)) for each in made) / PAIRS


def failing(one: Judge, prevalence: float, queries: int, drop: float, dice: np.random.Generator) -> float:
    """Return how often the gate fails, over many pairs of runs."""
    good = dice.random((PAIRS, queries)) >= prevalence
    redrawn = np.where(dice.random(good.shape) < CHURN, dice.random(good.shape) >= prevalence, good)
    now = redrawn & (dice.random(good.shape) >= drop / (1 - prevalence))
    shares = [(dice.random(good.shape) < np.where(truth, one.good, one.bad)).mean(axis=1) for truth in (good, now)]
    return float((shares[0] - shares[1] > LIMIT + SAME).mean())


def gate() -> Iterator[str]:
    """Yield the lines of the table of gates: one for each accuracy, prevalence and number of queries."""
    yield "| judge is right | bad items | queries | " + " | ".join(LABEL.values()) + " | refused | whole gate |"
    yield "| ---: |" + " ---: |" * (len(LABEL) + 4)
    for accuracy in ACCURACIES:
        judges = {settings: judge(accuracy, settings) for settings in LABEL}
        not_counting = refused(judges[CONFIRMED], np.random.default_rng(1))
        for prevalence, queries in product(PREVALENCES, QUERIES):
            wrong = {}
            for settings, one in judges.items():
                dice = np.random.default_rng(round(1e6 * accuracy) + queries)
                alarms = failing(one, prevalence, queries, 0, dice)
                wrong[settings] = alarms, 1 - failing(one, prevalence, queries, DROP, dice)
            whole = tuple((1 - not_counting) * rate for rate in wrong[CONFIRMED])
            cells = [f"{alarms:.0%} / {misses:.0%}" for alarms, misses in wrong.values()]
            cells += [f"{not_counting:.0%}", f"{whole[0]:.0%} / {whole[1]:.0%}"]
            yield f"| {accuracy:.0%} | {prevalence:.0%} | {queries} | {' | '.join(cells)} |"
    yield ""
    worst = 1.96 * (0.25 / PAIRS) ** 0.5
    yield f"Each number is a share of {PAIRS:,} simulated checks, give or take {worst:.0%} at most."


def random_labels() -> Iterator[str]:
    """Yield the lines of the table of labels: how often a calibration of a random sample does not count."""
    cases = list(product(RANDOM_LABELS, RARE))
    yield "| judge is right | " + " | ".join(f"{labels} labels, {share:.0%} bad" for labels, share in cases) + " |"
    yield "| ---: |" + " ---: |" * len(cases)
    for accuracy in ACCURACIES:
        one = judge(accuracy, CONFIRMED)
        cells = [f"{refused(one, np.random.default_rng(1), *case):.0%}" for case in cases]
        yield f"| {accuracy:.0%} | {' | '.join(cells)} |"


def rules() -> Iterator[str]:
    """Yield the lines of the table of rules: how likely one of many good items is judged bad."""
    yield "| judge is right | queries | " + " | ".join(LABEL.values()) + " |"
    yield "| ---: |" + " ---: |" * (len(LABEL) + 1)
    for accuracy, queries in product(ACCURACIES, QUERIES):
        cells = [f"{1 - judge(accuracy, settings).good ** queries:.0%}" for settings in LABEL]
        yield f"| {accuracy:.0%} | {queries} | {' | '.join(cells)} |"


def main() -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, lines in (("gates", gate()), ("labels", random_labels()), ("rules", rules())):
        begin, text = BEGIN.format(name), "\n".join(lines) + "\n"
        before, found, rest = page.partition(begin)
        if not found:
            sys.exit(f"{PAGE.name} has no {begin.strip()}")
        page = before + begin + text + END + rest.partition(END)[2]
        print(text)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
