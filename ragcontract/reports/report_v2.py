"""The report that tools and dashboards made for ``run_eval_rag`` read: its schema version 2.

The fields, labels, levels and codes are those of that tool's report contract; what a check knows beyond them (rules
about documents, limits, waivers) is mapped to them: see ``docs/record.md``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.phrase import render as render_phrase
from ragcontract.core.rule import Violation
from ragcontract.core.run import Json
from ragcontract.core.text import shorten
from ragcontract.files.json_document import document
from ragcontract.judging.gate_report import NOT_PROVEN, GateReport, GateStatus
from ragcontract.judging.gate_text import why_not_proven
from ragcontract.judging.policy import QueryStatus
from ragcontract.reports.cases import Case
from ragcontract.reports.report import ErrorReport, Report

TOOL = "rag-contract"
Label = Literal["PASS", "INFO", "WARN", "FAIL", "ERROR"]
SEVERITY: dict[Label, int] = {"PASS": 0, "INFO": 1, "WARN": 2, "FAIL": 3, "ERROR": 4}
EXIT_CODE: dict[Label, int] = {"PASS": 0, "FAIL": 2, "ERROR": 3}
# What is excused, or judged as a share of all queries, is said and does not count.
OF_QUERY: dict[QueryStatus, Label] = {"pass": "PASS", "warn": "WARN", "fail": "FAIL"}
OF_GATE: dict[GateStatus, Label] = {"pass": "PASS", "fail": "FAIL", "unproven": "WARN", "too_few": "WARN"}


class Item(Struct, frozen=True, kw_only=True):
    """One case, gate or problem; a higher ``severity_level`` is worse. ``loc`` says where it is defined."""

    tool: str = TOOL
    title: str
    status_label: Label
    severity_level: int
    message: str
    loc: str = ""


class Summary(Struct, frozen=True, kw_only=True):
    """The items together; ``overall_rc`` is 0, 2 for FAIL, 3 for ERROR. It is not the exit code of the check."""

    overall_status_label: Label
    overall_rc: int
    max_severity_level: int
    counts: dict[str, int]
    total_items: int


class TopResult(Struct, frozen=True, kw_only=True):
    """A result; ``distance`` is always null, because a run has scores, of which more is better."""

    rank: int
    source: str
    distance: None = None
    score: float | None = None


class CaseData(Struct, frozen=True, kw_only=True):
    """A case as that tool lists it; ``violated_rules`` and ``tags`` are additions."""

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
    """The model's name, as the run's rows have it in ``llm_model``; empty if they do not."""

    model_field: str = ""


class PassRate(Struct, frozen=True, kw_only=True):
    """How many cases there are, and how many of them pass: the golden queries that violate no rule."""

    cases: int = 0
    passed_cases: int = 0
    pass_rate: float = 0.0


class Data(Struct, frozen=True, kw_only=True):
    """What that tool lists beside the items; ``k`` is how many results are listed of a case."""

    k: int = 0
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


def render(report: Report, cases: Callable[[], Iterable[Case]], *, answers: bool) -> Iterator[bytes]:
    """Encode the report as UTF-8; items are ordered by severity, the worst first.

    ``cases`` returns them twice, for the items and to be written one by one, so that not all answers are in memory.
    Without ``answers``, no text of an answer or an error is written.
    """
    items = [_item_of_case(case) for case in cases()]
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
    return document(made, {"items": items, "data": {"cases": (_data(case, answers=answers) for case in cases())}})


def render_error(report: ErrorReport) -> bytes:
    """Encode the report on input that cannot be judged: an item for each problem."""
    items = [_item("input", "ERROR", problem) for problem in report.problems]
    made = ReportV2File(generated_at=report.created_at, summary=_summary(items))
    return b"".join(document(made, {"items": items}))


def _item(title: str, label: Label, message: str, location: str = "") -> Item:
    return Item(title=title, status_label=label, severity_level=SEVERITY[label], message=message, loc=location)


def _with_reason(gate: GateReport) -> str:
    """Return the message of a gate; of a change that is over its limit and does not fail, also why not."""
    return f"{gate.message}: {why_not_proven(gate)}" if gate.status in NOT_PROVEN else gate.message


def _item_of_case(case: Case) -> Item:
    label = OF_QUERY.get(case.status, "INFO")
    if label == "FAIL" and case.answered is False:
        label = "ERROR"
    message = shorten("; ".join(map(_sentence, case.violations)) or "holds", bounds.MESSAGE)
    return _item(case.query.id, label, message, case.location)


def _sentence(violation: Violation) -> str:
    expected, found = render_phrase(violation.expected), render_phrase(violation.found)
    excuse = f" (waived: {violation.waived})" if violation.waived else ""
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


def _data(case: Case, *, answers: bool) -> CaseData:
    return CaseData(
        id=case.query.id,
        query=case.query.query,
        tags=case.query.tags,
        passed=case.status == "pass",
        llm_call_ok=case.answered,
        must_include=case.wanted,
        missing=case.missing,
        violated_rules=tuple(dict.fromkeys(one.rule for one in case.violations)),
        context_chars=case.context_chars,
        topk=tuple([TopResult(rank=one.rank, source=one.doc_id, score=one.score) for one in case.results]),
        answer=(case.response or "") if answers else "",
        error=case.error if answers else None,
        error_detail=case.error_detail if answers else None,
    )
