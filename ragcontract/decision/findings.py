"""Findings: the descriptions of broken rules and gates that all reports share.

Violations of a query that have the same cause are reported as one finding.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, FindingStatus
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, Phrase, excerpt, listed
from ragcontract.core.rule import Violation, ViolationStatus, follows_from, names_of
from ragcontract.core.run import QueryScore, RanksById, ranks_by_id
from ragcontract.core.safe_text import encodable
from ragcontract.decision.evaluated import Evaluation, Violations
from ragcontract.decision.gate_report import NOT_PROVEN, GateReport, GateStatus, found_and_allowed, why_not_proven
from ragcontract.decision.policy import ONLY_WARNS
from ragcontract.rules.ranks import ABSENT, MustInclude, MustRankAtMost, located, within

ANSWERED = "answered"  # the name of a rule that contracts about documents only do not import
OF_GATE: dict[GateStatus, FindingStatus] = {"unproven": "unproven", "too_few": "too_few", "waived": "waived"}
BEFORE_WHY: dict[FindingStatus, str] = {"skipped": "skipped: ", "waived": "waived "}
# The findings of a query are in this order: those that count, new ones first, then those that something excuses.
GROUPS: tuple[tuple[ViolationStatus, bool | None], ...] = (
    *((status, in_baseline) for in_baseline in (False, True) for status in ("fail", "counted", "warn")),
    *((status, None) for status in ("known", "skipped", "waived")),
)
Cause = tuple[tuple[str, ...], Violation]


def findings_of(evaluation: Evaluation, reports: Sequence[GateReport], violations: Violations) -> Iterator[Finding]:
    """Yield the findings: gates in the order of the configuration, then queries in the order of the golden set.

    Of a query, those that count come first, new ones before others. Only violations of one status are merged.
    """
    for gate, report in zip(evaluation.contract.gates, reports, strict=True):
        if report.status not in {"pass", "skipped"}:
            yield _of_gate(gate, report, evaluation)
    for query_id, broken in violations.items():
        query = evaluation.contract.queries[query_id]
        for status, in_baseline in GROUPS:
            group = [each for each in broken if each.status == status and in_baseline in {None, each.in_baseline}]
            for rules, violation in by_cause(query, group) if group else ():
                yield _finding(evaluation, query, group, rules, violation)


def by_cause(query: GoldenQuery, violations: Sequence[Violation]) -> Iterator[Cause]:
    """Yield a violation for each cause, with the names of the rules that it breaks, in the order of the violations.

    If every relevant document is outside the top k, ``must_rank_at_most`` and ``must_include`` have the same cause. If
    one document is in the top k but too low and another is missing, there are two causes. All rules that are broken
    because there is no answer at all have one cause, together with ``answered``.
    """
    unanswered = [violation for violation in violations if violation.rule == ANSWERED and not violation.warns]
    by_rule = {violation.rule: violation for violation in violations}
    ranked = by_rule.get(names_of(MustRankAtMost)[0])
    included = next((by_rule[name] for name in names_of(MustInclude) if name in by_rule), None)
    if not ranked or not included or len(included.doc_ids) < len(query.relevant_doc_ids):
        ranked = included = None  # they have different causes
    for violation in violations:
        if violation in unanswered:
            because = (other.rule for other in violations if follows_from(other, violation))
            yield tuple(dict.fromkeys((violation.rule, *because))), violation
        elif ranked and included and violation is ranked:
            yield (ranked.rule, included.rule), _merged(ranked, included)
        elif violation is not included and not any(follows_from(violation, cause) for cause in unanswered):
            yield (violation.rule,), violation


def _of_gate(gate: Gate, report: GateReport, evaluation: Evaluation) -> Finding:
    seen, *allowed = found_and_allowed(gate, report, evaluation.contract.config.fail_on.mode)
    why = "" if report.waived is None else f"waived {report.waived}"
    if report.status in NOT_PROVEN:
        why = why_not_proven(report)
    return Finding(
        kind="gate",
        ids=(gate.id,),
        status=OF_GATE.get(report.status, "fail"),
        location=str(gate.location),
        expected=(", ".join(allowed),),
        found=(seen,) if report.of is None else (Name(report.of), f": {seen}"),
        why=why,
        details=tuple(_reasons(gate, evaluation)),
    )


def _reasons(gate: Gate, evaluation: Evaluation) -> Iterator[Phrase]:
    """Yield the reasons for the worst scores, as the tool that computed them states them."""
    scores_files, queries = evaluation.scores_files, evaluation.contract.queries
    reasons = scores_files.reasons.get(gate.quantity.key, ()) if scores_files else ()
    tagged = (reason for reason in reasons if gate.tag is None or gate.tag in queries[reason.query_id].tags)
    for reason in islice(tagged, bounds.NAMES):
        yield (
            f"{gate.quantity.label} of ",
            Name(reason.query_id),
            f" is {reason.value:.4g}: ",
            Name(reason.text, said=True),
        )


def _finding(
    evaluation: Evaluation, query: GoldenQuery, group: Sequence[Violation], rules: tuple[str, ...], violation: Violation
) -> Finding:
    """Return the finding for a violation among those of one status.

    A finding about documents has their ranks now and in the baseline. A finding about scores has the reasons that the
    tool that computed them states.
    """
    documents, doc_ids = violation.documents, violation.doc_ids
    score_before = evaluation.baseline.scores.get(query.id) if evaluation.baseline else None
    before: RanksById | None = None
    if documents is None:
        shown = shown_now = (*violation.actual, *_reasons_of(violation, evaluation, query.id))
        now: RanksById = {}
        doc_ids = ()
    else:
        depth = max(evaluation.contract.k, violation.limit or 0)
        now = _ranks(query, documents, evaluation.run.scores[query.id])
        before = _ranks(query, documents, score_before) if score_before else None
        shown = located(doc_ids, now, depth, before=before, absent=ABSENT[documents])
        shown_now = located(doc_ids, now, depth)
    first = doc_ids[: bounds.LISTED]
    return Finding(
        kind="rule",
        ids=rules,
        query_id=query.id,
        location=encodable(str(query.location)),
        status=violation.status,
        why=_why_of(group),
        expected=violation.expected,
        found=shown,
        found_now=shown_now,
        ranks=tuple([now.get(doc_id) for doc_id in first]),
        ranks_before=None if before is None else tuple([before.get(doc_id) for doc_id in first]),
        more_ranks=len(doc_ids) > bounds.LISTED,
        in_baseline=all(violation.in_baseline for violation in group),
    )


def _why_of(violations: Sequence[Violation]) -> str:
    """Return the reasons for the status of the violations of a query."""
    before = BEFORE_WHY.get(violations[0].status, "")
    why = "; ".join(dict.fromkeys(before + violation.why for violation in violations if violation.why))
    if why == ONLY_WARNS:
        return f"{', '.join(dict.fromkeys(violation.rule for violation in violations))} {why}"
    return why


def _reasons_of(violation: Violation, evaluation: Evaluation, query_id: str) -> Iterator[str | Name]:
    before = ": "
    for metric in violation.metrics:
        if reason := evaluation.scores_files and evaluation.scores_files.reason(metric, query_id):
            yield from (before, excerpt(reason))
            before = "; "


def _ranks(query: GoldenQuery, documents: Literal["relevant", "forbidden"], score: QueryScore) -> RanksById:
    if documents == "forbidden":
        return ranks_by_id(query.forbidden_doc_ids, score.forbidden_ranks)
    return ranks_by_id(query.relevant_doc_ids, score.ranks)


def _merged(ranked: Violation, included: Violation) -> Violation:
    """Return one violation for ``must_rank_at_most`` and ``must_include``, where no relevant document meets either."""
    n, k = ranked.limit or 0, included.limit or 0
    all_wanted = included.rule == names_of(MustInclude)[0] and len(included.doc_ids) > 1
    top, conjunction = (k, "and") if all_wanted else (min(n, k), "or")
    besides = f", one of them in top {n}" if all_wanted and n < k else ""
    return replace(
        included, expected=(*listed(included.doc_ids, conjunction), f" {within(top)}{besides}"), limit=max(n, k)
    )
