"""Similarity of the answer to ``reference``: ROUGE-L and equality, if the configuration names them."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import UNSET, Struct

from ragcontract.answers.metric_options import NoOptions
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, SwitchedOn
from ragcontract.core.run import RESPONSE_FIELDS, RunRow
from ragcontract.core.scores import Values

ROUGE, EXACT = "rouge_l", "exact_match"
OPTIONS: dict[str, type[Struct]] = {ROUGE: NoOptions, EXACT: NoOptions}


def similarity(settings: MetricSettings) -> Iterable[Family]:
    """Return both families."""
    normalise = settings.answers.normalise

    def equal(response: str, reference: str) -> float:
        from ragcontract.answers.normalising import Form, normalised

        form = Form(normalise=normalise, ignore_case=normalise)
        return float(normalised(response, form) == normalised(reference, form))

    way = "" if normalise else "normalise: false"
    return [
        Similarity(Metric(key=ROUGE, label="ROUGE-L", asks="reference"), _rouge_l),
        Similarity(Metric(key=EXACT, label="Exact match", asks="reference", fingerprint=way), equal),
    ]


LACKING = "has no response to compare with its reference; export it, as null if there was none"


class Similarity:
    """A function of the response and the reference."""

    needs = RESPONSE_FIELDS
    from_ids = False
    switch = SwitchedOn.BY_LIMIT

    def __init__(self, metric: Metric, function: Callable[[str, str], float]) -> None:
        """Store the metric and what computes it."""
        self.metrics: Sequence[Metric] = (metric,)
        self._function = function

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the similarity; 0 where the application gave no answer. A query without a reference does not count."""
        if query.answer is None or query.answer.reference is None:
            return ()
        if row.error is not None or row.response is None:
            return (0.0,)
        if row.response is UNSET:
            return Missing(LACKING)
        from ragcontract.answers.cannot_score import CannotScoreError

        try:
            return (self._function(row.response, query.answer.reference),)
        except CannotScoreError as error:
            return Missing(str(error))


def _rouge_l(response: str, reference: str) -> float:
    from ragcontract.answers.subsequence import rouge_l

    return rouge_l(response, reference)
