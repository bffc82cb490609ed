"""Kappa beside scikit-learn, and its standard error beside a bootstrap, which assumes nothing of its formula."""

import random
from statistics import stdev

import pytest

from ragcontract.core.config_sections import LabelCounts
from ragcontract.judgments.calibration import cohen_kappa
from tests.oracles.outside import asked

pytestmark = pytest.mark.oracles

Labels = list[bool]


def drawn(chance: random.Random, n: int, prevalence: float, right: float) -> tuple[Labels, Labels]:
    """Return what a judge and people say of n items; both labels occur."""
    people = [True, False, *(chance.random() < prevalence for _ in range(n - 2))]
    return [label == (chance.random() < right) for label in people], people


def counted(judge: Labels, people: Labels) -> LabelCounts:
    pairs = list(zip(judge, people, strict=True))
    cells = [pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))]
    return LabelCounts(tp=cells[0], fp=cells[1], fn=cells[2], tn=cells[3])


def test_kappa_is_that_of_scikit_learn() -> None:
    chance = random.Random(1)
    samples = [
        drawn(chance, chance.randrange(3, 300), chance.random(), chance.choice([0.0, 0.5, 0.7, 0.95, 1.0]))
        for _ in range(500)
    ]
    ours = [cohen_kappa(counted(*sample)) for sample in samples]
    assert all(ours)
    assert asked("kappas", samples) == pytest.approx([one.value for one in ours if one], abs=1e-12)


@pytest.mark.parametrize("prevalence", [0.2, 0.5])
@pytest.mark.parametrize("right", [0.75, 0.9])
def test_the_standard_error_is_that_of_a_bootstrap(prevalence: float, right: float) -> None:
    chance = random.Random(f"{prevalence} {right}")
    judge, people = drawn(chance, 400, prevalence, right)
    table = counted(judge, people)
    cells = [(True, True), (True, False), (False, True), (False, False)]
    sizes = [table.tp, table.fp, table.fn, table.tn]
    kappas = []
    for _ in range(2000):
        sample = chance.choices(cells, sizes, k=table.n)
        resampled = cohen_kappa(counted(*(list(labels) for labels in zip(*sample, strict=True))))
        assert resampled is not None
        kappas.append(resampled.value)
    found = cohen_kappa(table)
    assert found is not None
    assert found.error == pytest.approx(stdev(kappas), rel=0.08)  # five standard errors of a deviation of 2,000
