"""The metrics of answers: similarity to the reference, accuracy of the label, and accuracy of the mode.

Similarity is ROUGE-L, BLEU, chrF and equality, if the configuration names them. The metrics of modes are three families
because they apply to different queries. The two errors, an answer where none was possible and a refusal where an answer
was possible, have rates of their own.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import UNSET, Struct

from ragcontract.answers.metric_options import (
    ABSTAIN,
    BleuOptions,
    CannotScoreError,
    NoOptions,
    Tokenizer,
    unknown_mode,
)
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Complaint, Family, Metric, MetricSettings, Missing, OneMetric, SwitchedOn
from ragcontract.core.run import RESPONSE_FIELDS, RunRow, mode_of

ROUGE, BLEU, CHRF, EXACT = "rouge_l", "bleu", "chrf", "exact_match"
REFERENCE = ("reference",)
SACREBLEU = "sacrebleu 2"  # the values of its major versions may differ
OPTIONS: dict[str, type[Struct]] = {ROUGE: NoOptions, BLEU: BleuOptions, CHRF: NoOptions, EXACT: NoOptions}
LACKING = "has no response to compare with its reference; export it, as null if there was none"


def similarity(settings: MetricSettings) -> Iterable[Family]:
    """Return the families of ROUGE-L, BLEU, chrF and of equality."""
    normalise, options = settings.answers.normalise, settings.declared.get(BLEU)
    tokenize = options.words if isinstance(options, BleuOptions) else BleuOptions().words
    return [
        _family(OneMetric, ROUGE, "ROUGE-L", "", _rouge_l),
        _family(OfSacrebleu, BLEU, "BLEU", f"{SACREBLEU}, {tokenize}", partial(_bleu, tokenize=tokenize)),
        _family(OfSacrebleu, CHRF, "chrF", SACREBLEU, _chrf),
        _family(
            *(OneMetric, EXACT, "Exact match", "" if normalise else "normalise: false"),
            partial(_equal, normalise=normalise),
        ),
    ]


def _family(kind: type[OneMetric], key: str, label: str, way: str, function: Callable[[str, str], float]) -> OneMetric:
    metric = Metric(key=key, label=label, asks="reference", references=REFERENCE, fingerprint=way)
    value = partial(_similarity, function)
    return kind(metrics=(metric,), needs=RESPONSE_FIELDS, switch=SwitchedOn.BY_LIMIT, value=value)


class OfSacrebleu(OneMetric, frozen=True, kw_only=True):
    """A family that only sacrebleu can compute."""

    def complaints(self, queries: Iterable[GoldenQuery]) -> Iterator[Complaint]:  # noqa: ARG002 (the seam's)
        """Yield a complaint if sacrebleu is missing."""
        from ragcontract.answers.translation_scores import metric_of

        key = self.metrics[0].key
        try:
            metric_of(key, BleuOptions().words)
        except ImportError as error:
            yield Complaint(option=("metrics", key), message=str(error))


def _similarity(function: Callable[[str, str], float], query: GoldenQuery, row: RunRow) -> float | Missing | None:
    """Return the similarity of the response to the reference, which is 0 if there is no answer."""
    if query.answer is None or query.answer.reference is None:
        return None
    if row.error is not None or row.response is None:
        return 0.0
    if row.response is UNSET:
        return Missing(LACKING)
    try:
        return function(row.response, query.answer.reference)
    except ImportError:
        return None  # a complaint refuses the contract
    except CannotScoreError as error:
        return Missing(str(error))


def _equal(response: str, reference: str, *, normalise: bool) -> float:
    from ragcontract.answers.normalising import Form, normalised

    form = Form(normalise=normalise, ignore_case=normalise)
    return float(normalised(response, form) == normalised(reference, form))


def _rouge_l(response: str, reference: str) -> float:
    from ragcontract.answers.similarity import rouge_l

    return rouge_l(response, reference)


def _bleu(response: str, reference: str, *, tokenize: Tokenizer) -> float:
    from ragcontract.answers.translation_scores import bleu

    return bleu(response, reference, tokenize)


def _chrf(response: str, reference: str) -> float:
    from ragcontract.answers.translation_scores import chrf

    return chrf(response, reference)


def labels(_settings: MetricSettings) -> Iterable[Family]:
    """Return the family of the label's accuracy."""
    metric = Metric(key="label_accuracy", label="Label accuracy", suggested=True)
    return [
        OneMetric(
            metrics=(metric,), needs=frozenset({"label", "error"}), switch="expected_label", value=_label_accuracy
        )
    ]


def _label_accuracy(query: GoldenQuery, row: RunRow) -> float | Missing | None:
    """Return 1 if the row's label is exactly the expected one, else 0, even if the application failed."""
    expected = query.answer.expected_label if query.answer else None
    if expected is None:
        return None
    if row.label is None and row.error is None:
        return Missing("has no label, which expected_label needs; export the class that the application chose")
    return float(row.label == expected)


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


def modes(settings: MetricSettings) -> Iterable[Family]:
    """Return the families of accuracy, of answers where none is possible, and of needless refusals."""
    missing_fails = settings.answers.missing_modes == "fail"
    return [
        OneMetric(
            metrics=(metric,),
            needs=frozenset({"mode", "error"}),
            switch="expected_mode",
            value=partial(_of_mode, metric, missing_fails),
        )
        for metric in (MODE_ACCURACY, FALSE_ANSWERS, OVER_REFUSALS)
    ]


def _of_mode(
    metric: Metric,
    missing_fails: bool,  # noqa: FBT001 (bound when the family is made)
    query: GoldenQuery,
    row: RunRow,
) -> float | Missing | None:
    """Return a metric of the mode, which is 0 or 1; an unknown mode is always wrong input.

    A row of an application that failed has the worst value. A row without a mode has it, too, if ``missing_modes`` is
    ``fail``; otherwise it cannot be judged.
    """
    expected = query.answer.expected_mode if query.answer else None
    of_abstaining = {FALSE_ANSWERS.key: True, OVER_REFUSALS.key: False}.get(metric.key)  # None for any mode
    if expected is None or of_abstaining not in {None, expected == ABSTAIN}:
        return None
    mode = mode_of(row)
    if mode is None and (missing_fails or row.error is not None):
        return metric.worst
    if why := unknown_mode(mode):
        return Missing(why)
    return float(mode == expected if of_abstaining is None else (mode == ABSTAIN) != of_abstaining)
