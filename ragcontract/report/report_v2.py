"""The report for tools and dashboards that read the output of ``run_eval_rag``, in its schema version 2.

The fields, labels, levels and codes are those of that tool's report contract. Everything else that a check knows
(rules about documents, limits, waivers) is mapped to them: see ``docs/guides/record.md``.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.phrase import render as render_phrase
from ragcontract.core.rule import Violation
from ragcontract.core.run import Json, RunRow
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.decision.decide import Decision
from ragcontract.decision.gate_report import NOT_PROVEN, GateReport, GateStatus, why_not_proven
from ragcontract.decision.policy import QueryStatus
from ragcontract.files.writing import document
from ragcontract.report.formats import Reported
from ragcontract.report.record import ErrorReport
from ragcontract.rules.text import Contains
from ragcontract.runs.baseline_contract import digest

TOOL = "rag-contract"
Label = Literal["PASS", "INFO", "WARN", "FAIL", "ERROR"]
SEVERITY: dict[Label, int] = {"PASS": 0, "INFO": 1, "WARN": 2, "FAIL": 3, "ERROR": 4}
EXIT_CODE: dict[Label, int] = {"PASS": 0, "FAIL": 2, "ERROR": 3}
# What is excused, or counts in a pass rate, is listed as INFO.
OF_QUERY: dict[QueryStatus, Label] = {"pass": "PASS", "warn": "WARN", "fail": "FAIL"}
OF_GATE: dict[GateStatus, Label] = {"pass": "PASS", "fail": "FAIL", "unproven": "WARN", "too_few": "WARN"}


class Item(Struct, frozen=True, kw_only=True):
    """One case, gate or problem."""

    tool: str = TOOL
    title: str
    status_label: Label
    severity_level: int  # a higher one is worse
    message: str
    loc: str = ""  # where it is defined


class Summary(Struct, frozen=True, kw_only=True):
    """The items together."""

    overall_status_label: Label
    overall_rc: int  # 0, 2 for FAIL, 3 for ERROR; not the exit code of the check
    max_severity_level: int
    counts: dict[str, int]
    total_items: int


class TopResult(Struct, frozen=True, kw_only=True):
    """A result."""

    rank: int
    source: str
    distance: None = None  # always null, because a run has scores, and a higher score is better
    score: float | None = None


class CaseData(Struct, frozen=True, kw_only=True):
    """A case as that tool lists it; ``violated_rules`` and ``tags`` are ours."""

    id: str
    query: str
    tags: tuple[str, ...]
    passed: bool
    llm_call_ok: bool | None
    must_include: tuple[str, ...]
    missing: tuple[str, ...]
    violated_rules: tuple[str, ...]
    context_chars: int | None
    topk: tuple[TopResult, ...]
    answer: str
    error: str | None
    error_detail: Json | None


class Model(Struct, frozen=True, kw_only=True):
    """The model's name, from ``llm_model`` of the run's rows; empty if they have none."""

    model_field: str = ""


class PassRate(Struct, frozen=True, kw_only=True):
    """How many cases there are, and how many of them pass: the golden queries that violate no rule."""

    cases: int = 0
    passed_cases: int = 0
    pass_rate: float = 0.0


class Data(Struct, frozen=True, kw_only=True):
    """What that tool lists beside the items."""

    k: int = 0  # how many results of a case are listed
    llm: Model = Model()
    metrics: PassRate = PassRate()
    cases: list[CaseData] = []


class ReportV2File(Struct, frozen=True, kw_only=True):
    """The whole file."""

    schema_version: Literal[2] = 2
    generated_at: str
    tool: str = TOOL
    root: str = ""
    summary: Summary
    items: list[Item] = []
    data: Data = Data()


def file_of(outcome: Reported) -> Iterator[bytes]:
    """Encode the report of a check as UTF-8: an item for each query and gate, and a case for each query.

    Items are ordered by severity, the worst first. The run is read twice, for the items and to write the cases one by
    one, so that not all answers are in memory. Without answers, no text of an answer or an error is written.
    """
    report = outcome.report
    items = [_item_of_case(outcome.decision, query, row) for query, row in outcome.answered()]
    passed = sum(item.status_label == "PASS" for item in items)
    total = len(items)
    items += [
        _item(gate.id, OF_GATE.get(gate.status, "INFO"), _with_reason(gate), gate.location) for gate in report.gates
    ]
    items.sort(key=lambda item: -item.severity_level)
    data = Data(
        k=max(report.k),
        llm=Model(model_field=", ".join(report.inputs.run.versions.get("llm_model", ()))),
        metrics=PassRate(cases=total, passed_cases=passed, pass_rate=passed / total if total else 0.0),
    )
    made = ReportV2File(generated_at=report.created_at, summary=_summary(items), data=data)
    return document(made, {"items": items, "data": {"cases": (_data(outcome, *case) for case in outcome.answered())}})


def file_of_error(report: ErrorReport) -> bytes:
    """Encode the report on input that cannot be judged: an item for each problem."""
    items = [_item("input", "ERROR", problem) for problem in report.problems]
    made = ReportV2File(generated_at=report.created_at, summary=_summary(items))
    return b"".join(document(made, {"items": items}))


def _item(title: str, label: Label, message: str, location: str = "") -> Item:
    return Item(title=title, status_label=label, severity_level=SEVERITY[label], message=message, loc=location)


def _with_reason(gate: GateReport) -> str:
    """Return the message of a gate, with the reason if a change is over its limit and does not fail."""
    return f"{gate.message}: {why_not_proven(gate)}" if gate.status in NOT_PROVEN else gate.message


def _item_of_case(decision: Decision, query: GoldenQuery, row: RunRow | None) -> Item:
    label = OF_QUERY.get(decision.status(query), "INFO")
    if label == "FAIL" and _is_answered(row) is False:
        label = "ERROR"
    violations = decision.violations.get(query.id, ())
    message = shorten("; ".join(map(_sentence, violations)) or "holds", bounds.MESSAGE)
    return _item(query.id, label, message, encodable(str(query.location)))


def _is_answered(row: RunRow | None) -> bool | None:
    """Return whether a query was answered; None if its row has neither a response nor an error."""
    if row is None:
        return False
    if row.response is UNSET and row.error is None:
        return None
    return isinstance(row.response, str) and row.error is None


def _sentence(violation: Violation) -> str:
    expected, found = render_phrase(violation.expected), render_phrase(violation.actual)
    excuse = f" (waived: {violation.why})" if violation.status == "waived" else ""
    return f"{violation.rule}: expected {expected}; found: {found}{excuse}"


def _summary(items: list[Item]) -> Summary:
    worst = max((item.severity_level for item in items), default=0)
    overall: Label = "ERROR" if worst == SEVERITY["ERROR"] else "FAIL" if worst == SEVERITY["FAIL"] else "PASS"
    counts = Counter(item.status_label for item in items)
    return Summary(
        overall_status_label=overall,
        overall_rc=EXIT_CODE[overall],
        max_severity_level=worst,
        counts={label: counts[label] for label in SEVERITY},
        total_items=len(items),
    )


def _data(outcome: Reported, query: GoldenQuery, row: RunRow | None) -> CaseData:
    violations = outcome.decision.violations.get(query.id, ())
    causes = {cause for violation in violations for cause in violation.causes}
    wanted = [(rule, text) for rule in query.rules if isinstance(rule, Contains) for text in rule.texts]
    shown = row if outcome.shows_answers else None
    return CaseData(
        id=query.id,
        query=query.query,
        tags=query.tags,
        passed=outcome.decision.status(query) == "pass",
        llm_call_ok=_is_answered(row),
        must_include=tuple([text for _, text in wanted]),
        missing=tuple([text for rule, text in wanted if digest([rule, text]) in causes]),
        violated_rules=tuple(dict.fromkeys(violation.rule for violation in violations)),
        context_chars=row.context_chars if row else None,
        topk=tuple(_top(row, max(outcome.report.k))) if row else (),
        answer=(shown.response if shown and isinstance(shown.response, str) else ""),
        error=shown.error if shown else None,
        error_detail=shown.error_detail if shown else None,
    )


def _top(row: RunRow, k: int) -> Iterator[TopResult]:
    for rank, result in enumerate(row.results[:k], 1):
        yield TopResult(rank=rank, source=as_id(result.doc_id), score=result.score)
