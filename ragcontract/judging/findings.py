"""Makes the findings: the descriptions of broken rules and gates that all reports share."""

from collections.abc import Iterator, Sequence
from itertools import islice

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, FindingStatus
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, Phrase, listed
from ragcontract.core.rule import Violation
from ragcontract.core.scores import RanksById, ranks_by_id
from ragcontract.core.text import encodable
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.gates import GateReport, observed_and_allowed
from ragcontract.judging.outcomes import fails
from ragcontract.judging.violations import Violations
from ragcontract.rules.ranks import MISSING, NOT_THERE, located, within

KNOWN = "already broken in the baseline"
# Why a violation that counts does not fail the check by itself.
WHY: dict[FindingStatus, str] = {"counted": "counts in the pass rate", "warn": "severity warn"}


def findings_of(evaluation: Evaluation, reports: Sequence[GateReport], violations: Violations) -> list[Finding]:
    """Return the findings: gates in the order of the configuration, then queries in the order of the golden set."""
    found = [
        _of_gate(gate, report, evaluation)
        for gate, report in zip(evaluation.contract.gates, reports, strict=True)
        if report.status not in {"pass", "skipped"}
    ]
    for query_id, broken in violations.items():
        found += _of_query(evaluation, evaluation.contract.queries[query_id], broken)
    return found


def _of_gate(gate: Gate, report: GateReport, evaluation: Evaluation) -> Finding:
    seen, _ = observed_and_allowed(gate, report.observed)
    return Finding(
        kind="gate",
        ids=(gate.id,),
        status="waived" if report.waived is not None else "fail",
        location=gate.location,
        expected=(report.message.removeprefix(f"{seen}, "),),
        found=(seen,) if report.of is None else (Name(report.of), f": {seen}"),
        why="" if report.waived is None else f"waived {report.waived}",
        details=tuple(_reasons(gate, evaluation)),
    )


def _reasons(gate: Gate, evaluation: Evaluation) -> Iterator[Phrase]:
    """Yield why the worst scores are as they are, where the tool that computed them says so."""
    given, queries = evaluation.given, evaluation.contract.queries
    reasons = given.reasons.get(gate.quantity.key, ()) if given else ()
    tagged = (one for one in reasons if gate.tag is None or gate.tag in queries[one.query_id].tags)
    for one in islice(tagged, bounds.NAMES):
        yield (f"{gate.quantity.label} of ", Name(one.query_id), f" is {one.value:.4g}: ", Name(one.text, said=True))


def _of_query(evaluation: Evaluation, query: GoldenQuery, violations: Sequence[Violation]) -> Iterator[Finding]:
    """Yield the findings that count, new ones first, then excused ones; only violations of one status are merged."""
    for in_baseline in (False, True):
        same = [one for one in violations if one.in_baseline is in_baseline]
        counting: dict[FindingStatus, list[Violation]] = {"fail": [], "counted": [], "warn": []}
        for one in same:
            if one.counts:
                counting["warn" if not fails(query, one) else "counted" if one.tallied else "fail"].append(one)
        for status, same_status in counting.items():
            only_warn = ", ".join(dict.fromkeys(one.rule for one in same_status)) + " only warns"
            why = only_warn if status == "warn" and query.severity != "warn" else WHY.get(status, "")
            yield from _by_cause(evaluation, query, same_status, status, why)
    known = [one for one in violations if one.known]
    yield from _by_cause(evaluation, query, known, "known", KNOWN)
    skipped = [one for one in violations if one.skipped is not None]
    yield from _by_cause(
        evaluation, query, skipped, "skipped", "".join(f"skipped: {one.skipped}" for one in skipped[:1])
    )
    waived = [one for one in violations if one.waived is not None]
    reasons = dict.fromkeys(f"waived {one.waived}" for one in waived)
    yield from _by_cause(evaluation, query, waived, "waived", "; ".join(reasons))


def _by_cause(
    evaluation: Evaluation, query: GoldenQuery, violations: Sequence[Violation], status: FindingStatus, why: str
) -> Iterator[Finding]:
    """Yield a finding for each cause; none without violations.

    If every relevant document is outside the top k, ``must_rank_at_most`` and ``must_include`` break for the same
    reason: one finding. If one document is in the top k but too low and another is missing, there are two.
    """
    of_query = _QueryFindings(evaluation, query, violations, status, why)
    rules = {violation.rule: violation for violation in violations}
    forbidden = rules.pop("forbidden_docs", None)
    ranked = rules.pop("must_rank_at_most", None)
    included = rules.pop("must_include", None) or rules.pop("must_include_any", None)
    if forbidden:
        yield of_query.forbidden(forbidden)
    if ranked and included and len(included.doc_ids) == len(query.relevant_doc_ids):
        yield of_query.rank_and_inclusion(ranked, included)
    else:
        yield from (of_query.relevant(violation) for violation in (ranked, included) if violation)
    yield from (of_query.other(violation) for violation in violations if violation.rule in rules)


class _QueryFindings:
    """Makes the findings of one query."""

    def __init__(
        self,
        evaluation: Evaluation,
        query: GoldenQuery,
        violations: Sequence[Violation],
        status: FindingStatus,
        why: str,
    ) -> None:
        self._query, self._status, self._why = query, status, why
        self._in_baseline = all(violation.in_baseline for violation in violations)
        self._k = evaluation.contract.k
        self._now = evaluation.run.scores[query.id]
        self._before = evaluation.baseline.scores.get(query.id) if evaluation.baseline else None

    def forbidden(self, violation: Violation) -> Finding:
        ids = self._query.forbidden_doc_ids
        before = ranks_by_id(ids, self._before.forbidden_ranks) if self._before else None
        return self._finding(
            (violation.rule,),
            violation.expected,
            violation.doc_ids,
            (ranks_by_id(ids, self._now.forbidden_ranks), before),
            self._k,
            absent=NOT_THERE,
        )

    def relevant(self, violation: Violation) -> Finding:
        depth = max(self._k, violation.limit or 0)
        return self._finding((violation.rule,), violation.expected, violation.doc_ids, self._relevant_ranks(), depth)

    def rank_and_inclusion(self, ranked: Violation, included: Violation) -> Finding:
        n, k = ranked.limit or 0, included.limit or 0
        all_wanted = included.rule == "must_include" and len(included.doc_ids) > 1
        top, conjunction = (k, "and") if all_wanted else (min(n, k), "or")
        besides = f", one of them in top {n}" if all_wanted and n < k else ""
        expected = (*listed(included.doc_ids, conjunction), f" {within(top)}{besides}")
        rules = (ranked.rule, included.rule)
        return self._finding(rules, expected, included.doc_ids, self._relevant_ranks(), max(n, k))

    def other(self, violation: Violation) -> Finding:
        return self._make((violation.rule,), violation.expected, violation.found)

    def _relevant_ranks(self) -> tuple[RanksById, RanksById | None]:
        ids = self._query.relevant_doc_ids
        return ranks_by_id(ids, self._now.ranks), ranks_by_id(ids, self._before.ranks) if self._before else None

    def _finding(  # noqa: PLR0917 (a finding about documents needs all of these)
        self,
        rules: tuple[str, ...],
        expected: tuple[str | Name, ...],
        doc_ids: Sequence[str],
        ranks: tuple[RanksById, RanksById | None],
        depth: int,
        absent: str = MISSING,
    ) -> Finding:
        now, before = ranks
        first = doc_ids[: bounds.LISTED]
        return self._make(
            rules,
            expected,
            located(doc_ids, now, depth, before=before, absent=absent),
            found_now=located(doc_ids, now, depth),
            ranks=tuple([now.get(doc_id) for doc_id in first]),
            ranks_before=None if before is None else tuple([before.get(doc_id) for doc_id in first]),
            more_ranks=len(doc_ids) > bounds.LISTED,
        )

    def _make(
        self,
        rules: tuple[str, ...],
        expected: tuple[str | Name, ...],
        found: tuple[str | Name, ...],
        *,
        found_now: tuple[str | Name, ...] = (),
        ranks: tuple[int | None, ...] = (),
        ranks_before: tuple[int | None, ...] | None = None,
        more_ranks: bool = False,
    ) -> Finding:
        return Finding(
            kind="rule",
            ids=rules,
            query_id=self._query.id,
            location=encodable(self._query.location),
            status=self._status,
            why=self._why,
            expected=expected,
            found=found,
            found_now=found_now or found,
            ranks=ranks,
            ranks_before=ranks_before,
            more_ranks=more_ranks,
            in_baseline=self._in_baseline,
        )
