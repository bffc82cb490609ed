"""How well a judge agrees with people on yes or no: Cohen's kappa, its error, and the judge's rates of being right."""

from math import sqrt

from msgspec import Struct

from ragcontract.core.label_counts import LabelCounts

Z_90 = 1.6448536269514722  # standard errors of a 90 % interval, and of a 95 % bound on one side


class Kappa(Struct, frozen=True):
    """Cohen's kappa and its standard error."""

    value: float
    error: float

    @property
    def low(self) -> float:
        """The lower end of its 90 % interval."""
        return self.value - Z_90 * self.error


def cohen_kappa(counts: LabelCounts) -> Kappa | None:
    """Return how much of the agreement is beyond chance: 1 is all of it, 0 none, below 0 less than chance.

    None if people say the same of all items: every judge then agrees as often as chance, and kappa says nothing.

    Cohen, *A Coefficient of Agreement for Nominal Scales*, Educational and Psychological Measurement 20 (1960). The
    standard error is that of Fleiss, Cohen and Everitt, *Large Sample Standard Errors of Kappa and Weighted Kappa*,
    Psychological Bulletin 72 (1969), for a kappa that is not 0.
    """
    n = counts.n
    if not counts.yes or not counts.no:
        return None
    cells = ((counts.tp / n, counts.fp / n), (counts.fn / n, counts.tn / n))  # by the judge, by people
    judge = [sum(row) for row in cells]
    people = [sum(column) for column in zip(*cells, strict=True)]
    observed = cells[0][0] + cells[1][1]
    chance = sum(one * other for one, other in zip(judge, people, strict=True))
    value = (observed - chance) / (1 - chance)
    agreeing = sum(
        cells[at][at] * ((1 - chance) - (judge[at] + people[at]) * (1 - observed)) ** 2 for at in range(len(cells))
    )
    differing = sum(cells[at][1 - at] * (judge[1 - at] + people[at]) ** 2 for at in range(len(cells)))
    variance = agreeing + (1 - observed) ** 2 * differing - (observed * chance - 2 * chance + observed) ** 2
    return Kappa(value, sqrt(max(0.0, variance) / n) / (1 - chance) ** 2)


class Rate(Struct, frozen=True):
    """A share, with the bounds of its 90 % interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, of: int) -> Rate | None:
    """Return a share and its score interval; None of nothing.

    Wilson, *Probable Inference, the Law of Succession, and Statistical Inference*, Journal of the American Statistical
    Association 22 (1927). It never leaves 0 to 1, and holds for shares near them and for few items, too.
    """
    if not of:
        return None
    share, z2 = successes / of, Z_90**2 / of
    middle = (share + z2 / 2) / (1 + z2)
    half = Z_90 * sqrt(share * (1 - share) / of + z2 / (4 * of)) / (1 + z2)
    return Rate(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def rogan_gladen(observed: float, counts: LabelCounts) -> float | None:
    """Return the share that people would say yes of, estimated from the share that the judge says yes of; 0 to 1.

    Rogan and Gladen, *Estimating Prevalence from the Results of a Screening Test*, American Journal of Epidemiology
    107 (1978). None for a judge that is not better than chance, or whose rates are not known.
    """
    if not counts.yes or not counts.no:
        return None
    right_yes, right_no = counts.tp / counts.yes, counts.tn / counts.no
    if right_yes + right_no <= 1:
        return None
    return min(1.0, max(0.0, (observed + right_no - 1) / (right_yes + right_no - 1)))
