"""Builds the report on what a judge said: its verdicts with their quotes, and how far it can be relied on."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import TypeAlias

from ragcontract.core import bounds
from ragcontract.core.config_sections import Task
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.safe_text import encodable
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.policy import Distrusted, judged_limits
from ragcontract.judgments.calibration import Calibration, rogan_gladen
from ragcontract.judgments.check import CONFIRMATION, JudgeFiles, UsedJudgments
from ragcontract.judgments.items import Item
from ragcontract.judgments.judged_metrics import JudgedShare
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.judgments.second_pass import FlaggedAnswer
from ragcontract.report.parts import JudgedItem, JudgedQuery, JudgeReport, TaskReport

FLAGGED = "What rules flagged"

Rows: TypeAlias = Sequence[Sequence[Judgment]]  # the judgments on each row of a query


def judge_report(evaluation: Evaluation, distrusted: Distrusted) -> JudgeReport | None:
    """Return the report on what a judge said; None if no judgments are given.

    ``distrusted`` has the reasons why limits on it do not count.
    """
    judge, by_task = evaluation.judge, evaluation.run.judged
    if judge is None or not judge.files or by_task is None:
        return None
    why_not: dict[Task, tuple[str, ...]] = {CONFIRMATION: judge.clears_nothing}
    for gate, of_gate in judged_limits(evaluation.contract).items():
        if gate.id in distrusted:
            why_not.setdefault(of_gate, distrusted[gate.id])
    families = [family for family in evaluation.contract.families if isinstance(family, JudgedShare)]
    tasks = [
        _of_metric(evaluation, by_task, family, _calibration(judge, by_task, family.task), why_not.get(family.task, ()))
        for family in families
    ]
    if judge.second_pass is not None:
        calibration = _calibration(judge, by_task, CONFIRMATION)
        tasks.append(_of_flagged(evaluation, by_task, calibration, why_not[CONFIRMATION]))
    used = [judgment for task in tasks for judgment in by_task.of(task.task)]
    times = [judgment.at.astimezone(UTC).isoformat() for judgment in used]
    sessions = [judgment.session for judgment in used if judgment.session is not None]
    usd = [judgment.usd for judgment in used if judgment.usd is not None]
    return JudgeReport(
        models=sorted({encodable(judgment.model) for judgment in used if judgment.model}),
        fingerprints=sorted({encodable(judgment.fingerprint) for judgment in used if judgment.votes}),
        judgments=len(used),
        unused=max(0, judge.read - len(used)),
        without_verdict=dict(sorted(judge.without_verdict.items())),
        oldest=min(times, default=None),
        newest=max(times, default=None),
        cached=sum(1 for session in sessions if session < max(sessions)),
        calls=sum(judgment.calls for judgment in used),
        retried=sum(judgment.retried for judgment in used),
        compromised=sum(judgment.compromised for judgment in used),
        tokens_in=sum(judgment.tokens_in for judgment in used),
        tokens_out=sum(judgment.tokens_out for judgment in used),
        usd=sum(usd) if usd else None,
        tasks=tasks,
    )


def _calibration(judge: JudgeFiles, used: UsedJudgments, task: Task) -> Calibration | None:
    """Return the calibration of the judge that was used; None if there is only one of another judge."""
    calibration = judge.calibrations.get(task)
    return calibration if calibration is not None and used.fingerprints(task) <= {calibration.fingerprint} else None


def _of_metric(
    evaluation: Evaluation,
    used: UsedJudgments,
    family: JudgedShare,
    calibration: Calibration | None,
    why_not: Sequence[str],
) -> TaskReport:
    metric = family.metric
    mean, judged = evaluation.aggregates.comparison(metric.key, None).current, used.by_task.get(family.task, {})
    return TaskReport(
        task=family.task,
        metric=metric.key,
        label=metric.label,
        judgments=len(used.of(family.task)),
        unjudged=0,
        why_not=list(map(encodable, why_not)),
        kappa=calibration.kappa if calibration else None,
        kappa_low=calibration.kappa_low if calibration else None,
        mean=mean,
        estimate=_estimate(evaluation, judged, mean, calibration),
        queries=list(_queries(evaluation, judged, family)),
    )


def _estimate(
    evaluation: Evaluation,
    judged: Mapping[str, Rows],
    mean: float | None,
    calibration: Calibration | None,
) -> float | None:
    """Return the mean that people would give. A row with nothing to judge is 0, whoever judges it."""
    if calibration is None or mean is None:
        return None
    weights = [(query.weight, judged[query.id]) for query in _of(evaluation, judged)]
    whole = sum(weight for weight, _ in weights)
    asked = sum(weight * sum(map(bool, rows)) / len(rows) for weight, rows in weights)
    if not asked:
        return None
    estimate = rogan_gladen(mean * whole / asked, calibration.counts)
    return None if estimate is None else estimate * asked / whole


def _of(evaluation: Evaluation, query_ids: Mapping[str, object]) -> Iterator[GoldenQuery]:
    """Yield the golden queries with these ids, in their order."""
    yield from (query for query in evaluation.contract.queries.values() if query.id in query_ids)


def _queries(evaluation: Evaluation, judged: Mapping[str, Rows], family: JudgedShare) -> Iterator[JudgedQuery]:
    listed = len(judged) <= bounds.ALL_QUERIES
    for query in _of(evaluation, judged):
        rows, texts = judged[query.id], family.texts(query)
        passed, of = sum(1 for row in rows for judgment in row if judgment.verdict is True), len(rows) * len(texts)
        if listed or passed < of:
            items = [
                _item(judgment, text, row=number if len(rows) > 1 else None)
                for number, judgments in enumerate(rows, 1)
                for judgment, text in zip(judgments, texts, strict=False)  # not strict: none is judged
            ]
            yield JudgedQuery(id=query.id, location=encodable(str(query.location)), passed=passed, of=of, items=items)


def _item(judgment: Judgment, text: str, row: int | None) -> JudgedItem:
    has_quote = judgment.verdict is True  # nothing can be quoted for what is not in a text
    return JudgedItem(
        item=judgment.item,
        row=row,
        text=text,
        verdict=judgment.verdict,
        quote=judgment.quote if has_quote else None,
        context=judgment.context if has_quote else None,
        reason=judgment.reason,
    )


def _of_flagged(
    evaluation: Evaluation, used: UsedJudgments, calibration: Calibration | None, why_not: Sequence[str]
) -> TaskReport:
    listed = len(used.flagged) <= bounds.ALL_QUERIES
    queries, unjudged = [], 0
    for query in _of(evaluation, used.flagged):
        items = [item for answer in used.flagged[query.id] for item in _flagged(answer)]
        unjudged += sum(1 for item in items if item.verdict is None)
        passed = sum(1 for item in items if not item.stands)
        if items and (listed or passed < len(items)):
            queries.append(
                JudgedQuery(
                    id=query.id, location=encodable(str(query.location)), passed=passed, of=len(items), items=items
                )
            )
    return TaskReport(
        task=CONFIRMATION,
        metric=None,
        label=FLAGGED,
        judgments=len(used.of(CONFIRMATION)),
        unjudged=unjudged,
        why_not=list(map(encodable, why_not)),
        kappa=calibration.kappa if calibration else None,
        kappa_low=calibration.kappa_low if calibration else None,
        mean=None,
        estimate=None,
        queries=queries,
    )


def _flagged(answer: FlaggedAnswer) -> Iterator[JudgedItem]:
    """Yield what was flagged in an answer. A text stands if any violation that it is part of stands."""
    for item in answer.items:
        yield _flagged_item(item, answer.judgments.get(item.name), stands=item.name in answer.standing)


def _flagged_item(item: Item, judgment: Judgment | None, *, stands: bool) -> JudgedItem:
    return JudgedItem(
        item=item.name,
        text=encodable(item.text),
        verdict=judgment.verdict if judgment else None,
        stands=stands,
        quote=judgment.quote if judgment else None,
        context=judgment.context if judgment else None,
        reason=judgment.reason if judgment else "",
    )
