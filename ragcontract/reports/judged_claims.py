"""Builds the report on what a judge said: by which quote of which text, and how far it can be relied on."""

from collections.abc import Iterator, Sequence

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.text import encodable
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.replayed import Replayed
from ragcontract.metrics.judged_recall import KEY
from ragcontract.reports.judge_report import ClaimReport, JudgedQuery, JudgeReport
from ragcontract.runs.calibration import Calibration
from ragcontract.runs.judgments import Judgment
from ragcontract.statistics.agreement import rogan_gladen


def judge_report(evaluation: Evaluation) -> JudgeReport | None:
    """Return what a judge said; None if no judgments are given."""
    replayed = evaluation.replayed
    if replayed is None or not replayed.files:
        return None
    used, calibration = replayed.judgments, replayed.calibration
    times = [one.at for one in used]
    return JudgeReport(
        models=sorted({encodable(one.model) for one in used if one.model}),
        fingerprints=sorted({encodable(one.fingerprint) for one in used if one.votes}),
        why_not=[encodable(why) for why in replayed.why_not],
        kappa=calibration.kappa if calibration else None,
        kappa_low=calibration.kappa_low if calibration else None,
        mean=evaluation.aggregates.comparison(KEY, None).current,
        estimate=_estimate(evaluation, replayed, calibration),
        judgments=len(used),
        unused=max(0, replayed.read - len(used)),
        without_verdict=dict(sorted(replayed.without_verdict.items())),
        oldest=min(times).isoformat() if times else None,
        newest=max(times).isoformat() if times else None,
        tokens_in=sum(one.tokens_in for one in used),
        tokens_out=sum(one.tokens_out for one in used),
        queries=list(_queries(evaluation, replayed)),
    )


def _estimate(evaluation: Evaluation, replayed: Replayed, calibration: Calibration | None) -> float | None:
    """Return the mean that people would give; a query for which nothing was retrieved is 0 whoever judges."""
    if calibration is None or not replayed.judgments:
        return None
    judged = weight = 0.0
    for query, said in _said(evaluation, replayed):
        weight += query.weight
        judged += query.weight if said else 0.0
    mean = evaluation.aggregates.comparison(KEY, None).current
    if mean is None or not judged:
        return None
    estimate = rogan_gladen(mean * weight / judged, calibration.counts)
    return None if estimate is None else estimate * judged / weight


def _said(evaluation: Evaluation, replayed: Replayed) -> Iterator[tuple[GoldenQuery, Sequence[Judgment]]]:
    for query in evaluation.contract.queries.values():
        if query.id in replayed.found:
            yield query, replayed.found[query.id]


def _queries(evaluation: Evaluation, replayed: Replayed) -> Iterator[JudgedQuery]:
    listed = len(replayed.found) <= bounds.ALL_QUERIES
    for query, said in _said(evaluation, replayed):
        texts = (query.answer and query.answer.reference_claims) or ()
        supported = sum(1 for one in said if one.verdict is True)
        if listed or supported < len(texts):
            claims = [_claim(one, text) for one, text in zip(said, texts, strict=False)]  # not strict: none is judged
            location = encodable(query.location)
            yield JudgedQuery(id=query.id, location=location, supported=supported, of=len(texts), claims=claims)


def _claim(judgment: Judgment, text: str) -> ClaimReport:
    supported = judgment.verdict is True
    return ClaimReport(
        item=judgment.item,
        text=text,
        supported=supported,
        quote=judgment.quote if supported else None,
        context=judgment.context if supported else None,
        reason=judgment.reason,
    )
