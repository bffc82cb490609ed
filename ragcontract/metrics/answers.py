"""The metrics of answers: similarity to the reference, accuracy of the label, and accuracy of the mode.

Similarity is ROUGE-L and equality, if the configuration names them. The metrics of modes are three families because
they apply to different queries. The two errors, an answer where none was possible and a refusal where an answer was
possible, have rates of their own.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import UNSET, Struct

from ragcontract.answers.metric_options import ABSTAIN, CannotScoreError, NoOptions, unknown_mode
from ragcontract.core.answer_settings import AnswerSettings
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, SwitchedOn
from ragcontract.core.run import RESPONSE_FIELDS, RunRow, Values, mode_of

ROUGE, EXACT = "rouge_l", "exact_match"
REFERENCE = ("reference",)
OPTIONS: dict[str, type[Struct]] = {ROUGE: NoOptions, EXACT: NoOptions}


def similarity(settings: MetricSettings) -> Iterable[Family]:
    """Return the families of ROUGE-L and of equality."""
    normalise = settings.answers.normalise

    def equal(response: str, reference: str) -> float:
        from ragcontract.answers.normalising import Form, normalised

        form = Form(normalise=normalise, ignore_case=normalise)
        return float(normalised(response, form) == normalised(reference, form))

    way = "" if normalise else "normalise: false"
    return [
        Similarity(Metric(key=ROUGE, label="ROUGE-L", asks="reference", references=REFERENCE), _rouge_l),
        Similarity(
            Metric(key=EXACT, label="Exact match", asks="reference", references=REFERENCE, fingerprint=way), equal
        ),
    ]


LACKING = "has no response to compare with its reference; export it, as null if there was none"


class Similarity:
    """A metric that is a function of the response and the reference."""

    needs = RESPONSE_FIELDS
    from_ids = False
    switch = SwitchedOn.BY_LIMIT

    def __init__(self, metric: Metric, function: Callable[[str, str], float]) -> None:
        self.metrics: Sequence[Metric] = (metric,)
        self._function = function

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the similarity, which is 0 if there is no answer. A query without a reference does not count."""
        if query.answer is None or query.answer.reference is None:
            return ()
        if row.error is not None or row.response is None:
            return (0.0,)
        if row.response is UNSET:
            return Missing(LACKING)
        try:
            return (self._function(row.response, query.answer.reference),)
        except CannotScoreError as error:
            return Missing(str(error))


def _rouge_l(response: str, reference: str) -> float:
    from ragcontract.answers.similarity import rouge_l

    return rouge_l(response, reference)


ACCURACY = Metric(key="label_accuracy", label="Label accuracy", suggested=True)


class LabelAccuracy:
    """The metric that is 1 if the row's label is exactly the expected one, else 0, even if the application failed."""

    metrics = (ACCURACY,)
    needs = frozenset({"label", "error"})
    from_ids = False
    switch = "expected_label"

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the value of a row; a row with neither a label nor an error cannot be judged."""
        expected = query.answer.expected_label if query.answer else None
        if expected is None:
            return ()
        if row.label is None and row.error is None:
            return Missing("has no label, which expected_label needs; export the class that the application chose")
        return (float(row.label == expected),)


def labels(_settings: MetricSettings) -> Iterable[Family]:
    """Return the family of the label's accuracy."""
    return [LabelAccuracy()]


MODE_ACCURACY = Metric(key="mode_accuracy", label="Mode accuracy", suggested=True)
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
    """A metric of the mode, which is 0 or 1 for a row of a query that it applies to.

    A row of an application that failed has the worst value. A row without a mode has it, too, if ``missing_modes`` is
    ``fail``; otherwise it cannot be judged.
    """

    needs = frozenset({"mode", "error"})
    from_ids = False
    switch = "expected_mode"

    def __init__(self, metric: Metric, settings: AnswerSettings) -> None:
        self.metrics = (metric,)
        self._missing_fails = settings.missing_modes == "fail"

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the value of a row; an unknown mode is always wrong input."""
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
    """Return the families of accuracy, of answers where none is possible, and of needless refusals."""
    return [ModeFamily(metric, settings.answers) for metric in (MODE_ACCURACY, FALSE_ANSWERS, OVER_REFUSALS)]


def _applies(metric: Metric, expected: str) -> bool:
    """Return whether a metric applies to a query that expects this mode."""
    return metric is MODE_ACCURACY or (metric is FALSE_ANSWERS) == (expected == ABSTAIN)
