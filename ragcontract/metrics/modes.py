"""Whether the application answers in the mode that a golden query expects: it abstains where it must, and only there.

These are three families because they apply to different queries: the two errors, an answer where none was possible and
a refusal where one was, have rates of their own.
"""

from collections.abc import Iterable

from ragcontract.answers.known_modes import ABSTAIN, unknown_mode
from ragcontract.core.answer_settings import AnswerSettings
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing
from ragcontract.core.run import RunRow, mode_of
from ragcontract.core.scores import Values

ACCURACY = Metric(key="mode_accuracy", label="Mode accuracy", suggested=True)
FALSE_ANSWERS = Metric(
    key="false_answer_rate", label="False-answer rate", better="lower", suggested=True, asks=f"expected_mode: {ABSTAIN}"
)
OVER_REFUSALS = Metric(
    key="over_refusal_rate",
    label="Over-refusal rate",
    better="lower",
    suggested=True,
    asks=f"expected_mode other than {ABSTAIN}",
)


class ModeFamily:
    """One metric of the mode: 0 or 1 for a row of a query that it applies to.

    A row of an application that failed has the worst value, and so has a row without a mode if ``missing_modes`` says
    ``fail``; it cannot be judged otherwise.
    """

    needs = frozenset({"mode", "error"})
    from_ids = False
    switch = "expected_mode"

    def __init__(self, metric: Metric, settings: AnswerSettings) -> None:
        """Compute one of the three metrics."""
        self.metrics = (metric,)
        self._missing_fails = settings.missing_modes == "fail"

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the value of a row; a mode that is none of the known ones is always wrong input."""
        expected = query.answer.expected_mode if query.answer else None
        if expected is None or not _applies(self.metrics[0], expected):
            return ()
        mode = mode_of(row)
        if mode is None and (self._missing_fails or row.error is not None):
            return (self.metrics[0].worst,)
        if why := unknown_mode(mode):
            return Missing(why)
        abstains = float(mode == ABSTAIN)
        match self.metrics[0].key:
            case FALSE_ANSWERS.key:
                return (1 - abstains,)
            case OVER_REFUSALS.key:
                return (abstains,)
        return (float(mode == expected),)


def modes(settings: MetricSettings) -> Iterable[Family]:
    """Return the families: accuracy, the rate of answers where none is possible, the rate of needless refusals."""
    return [ModeFamily(metric, settings.answers) for metric in (ACCURACY, FALSE_ANSWERS, OVER_REFUSALS)]


def _applies(metric: Metric, expected: str) -> bool:
    """Return whether a metric applies to a query that expects this mode."""
    return metric is ACCURACY or (metric is FALSE_ANSWERS) == (expected == ABSTAIN)
