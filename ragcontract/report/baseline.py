"""Makes ``baseline.json`` from a known-good run, and the output of ``rag-contract baseline``.

The file has one query per line, so that diffs are easy to read. The output says what the new baseline already breaks
and, with ``--update``, what it accepts, the verdict, and what was written.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from ragcontract.core import bounds
from ragcontract.core.finding import sentence
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import Id, as_id, first_of, pool_of
from ragcontract.core.numbers import count, more
from ragcontract.core.phrase import listed
from ragcontract.core.phrase import render as render_phrase
from ragcontract.core.rule import Violation
from ragcontract.core.run import Confusion, ranks_by_id
from ragcontract.core.safe_text import clipped, encodable, visible
from ragcontract.decision.contract_changes import contract_changes, past_contract
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import GateReport
from ragcontract.evaluation.observations import Versions
from ragcontract.files.writing import document
from ragcontract.judgments.judged_metrics import JudgedShare
from ragcontract.report.blocks import Block, Note
from ragcontract.report.build import TOOL
from ragcontract.report.headline import not_compared
from ragcontract.report.notes import fewer_runs
from ragcontract.report.queries import broken_queries
from ragcontract.report.rank_changes import rank_changes
from ragcontract.report.record import QueryReport, Report
from ragcontract.report.sections.changes import apart, changes, sizes
from ragcontract.report.terminal import FORM, check, page
from ragcontract.runs.baseline_contract import Replaced, expected_of
from ragcontract.runs.baseline_file import FORMAT_VERSION, Accepted, BaselineFile, BaselineQuery, digests_of

LEFT_OUT: dict[str, object] = {
    "repeats": [],
    "broken": {},
    "pool": None,
    "labels": [],
}  # an empty pool is one without labels
DAYS = 90  # until the waivers expire; a team changes it as it likes


def render_baseline(evaluation: Evaluation, now: datetime, replaces: Replaced | None = None) -> Iterator[bytes]:
    """Render the baseline file for the run of an evaluation, which must have retained the document ids."""
    return _written(head_of(evaluation, now, replaces=replaces), stored_queries(evaluation))


def baseline_of(evaluation: Evaluation, now: datetime, accepted: Sequence[Accepted] = ()) -> BaselineFile:
    """Return the content of the file that replaces the evaluation's baseline, with the last 20 of ``accepted``."""
    replaces = replaced_by(evaluation, accepted)
    return replace(head_of(evaluation, now, accepted, replaces), queries=list(stored_queries(evaluation)))


def head_of(
    evaluation: Evaluation, now: datetime, accepted: Sequence[Accepted] = (), replaces: Replaced | None = None
) -> BaselineFile:
    """Return the content of the baseline file without its queries."""
    contract, aggregates, stored = evaluation.contract, evaluation.aggregates, _stored(evaluation)
    return BaselineFile(
        format_version=FORMAT_VERSION,
        created_at=now.isoformat(timespec="seconds"),
        created_by=TOOL,
        golden_sha256=fingerprint(contract.queries.values()),
        k=sorted(contract.config_file.cutoffs),
        versions=evaluation.run.observed(Versions),
        metrics={key: aggregates.comparisons[key].current for key in stored},
        tags={tag: {key: of_tag[key].current for key in stored} for tag, of_tag in sorted(aggregates.tags.items())},
        accepted=list(accepted[-bounds.ACCEPTED :]),
        latency=evaluation.run.latency,
        fingerprints=fingerprints_of(evaluation),
        contract=past_contract(contract.config_file),
        replaces=replaces,
        runs=evaluation.run.rows.runs,
        golden_files=digests_of(contract.golden.files),
        queries=[],
    )


def fingerprints_of(evaluation: Evaluation) -> dict[str, str]:
    """Return what metrics were computed with, by their keys; for a judged metric, it names all judges."""
    families = evaluation.contract.every_family
    prints = {metric.key: metric.fingerprint for family in families for metric in family.metrics}
    for family in families:
        if isinstance(family, JudgedShare) and (used := evaluation.run.judged):
            judges, query_ids = used.fingerprints(family.task), used.by_task.get(family.task, {})
            prints[family.metric.key] = family.stored_fingerprint(judges, query_ids)
    return {key: digest for key, digest in prints.items() if digest}


def _stored(evaluation: Evaluation) -> list[str]:
    """Return the keys of the metrics that are stored; those about labels and changes depend on the earlier baseline."""
    return [metric.key for metric in evaluation.contract.metrics if not metric.diagnostic]


def replaced_by(evaluation: Evaluation, accepted: Sequence[Accepted] = ()) -> Replaced | None:
    """Return the record of the stored baseline that the run is to replace; None without one.

    ``accepted`` are the acceptances of the new baseline.
    """
    baseline = evaluation.baseline
    if baseline is None or baseline.stored is None:
        return None
    compared = evaluation.aggregates.comparisons
    changes = contract_changes(evaluation, cutoff=True)
    return Replaced(
        sha256=baseline.files[0].sha256,
        created_at=baseline.stored.head.created_at,
        shared=len(baseline.scores),
        runs=baseline.rows.runs,
        metrics={key: compared[key].baseline for key in _stored(evaluation)},
        metrics_shared={key: compared[key].current_shared for key in _stored(evaluation)},
        accepted=list(accepted[-1:]) != baseline.stored.head.accepted[-1:] and bool(accepted),
        contract_changes=None
        if changes is None
        else [replace(change, items=change.items[: bounds.CHANGED_ITEMS]) for change in changes],
    )


def encode(file: BaselineFile) -> Iterator[bytes]:
    """Encode a baseline file, one query per line."""
    return _written(replace(file, queries=[]), file.queries)


def _written(head: BaselineFile, queries: Iterable[BaselineQuery]) -> Iterator[bytes]:
    return document(head, {"queries": map(row_of, queries)})


def row_of(query: BaselineQuery) -> dict[str, Any]:
    """Return a query without empty ``repeats`` and ``broken`` and a ``pool`` of the first k, to keep lines short."""
    return {name: value for name, value in asdict(query).items() if value != LEFT_OUT.get(name, ...)}


def acceptance(report: Report, reason: str) -> Accepted:
    """Return the record of a broken contract that is accepted as the baseline for a ``reason``."""
    failed = [
        f"{check.id if check.query_id is None else check.query_id}: {check.message}" for check in report.failed_checks
    ]
    waived = {gate.id for gate in waived_changes(report)}
    failed += [
        f"{finding.ids[0]}: {sentence(finding)} ({finding.why})"
        for finding in report.findings
        if finding.kind == "gate" and finding.ids[0] in waived
    ]
    return Accepted(
        reason=encodable(reason),
        at=report.created_at,
        by_version=report.tool.version,
        failed=len(failed),
        # Several rules that one cause breaks have the same message.
        failed_checks=[*dict.fromkeys(failed)][: bounds.FAILED_CHECKS],
    )


def waived_changes(report: Report) -> list[GateReport]:
    """Return the waived gates on changes. With this run as the baseline, they would hold even without the waiver."""
    return [gate for gate in report.gates if gate.status == "waived" and gate.compares]


def is_same(stored: BaselineFile, new: BaselineFile) -> bool:
    """Return whether two baselines are equal except for their time, their creator, and what they replaced."""
    return new == replace(stored, created_at=new.created_at, created_by=new.created_by, replaces=new.replaces)


def stored_queries(evaluation: Evaluation) -> Iterator[BaselineQuery]:
    """Yield the queries of the baseline file for the run of an evaluation, which must have retained the ids."""
    run, stored, expected = evaluation.run, _stored(evaluation), {name for name, _ in evaluation.run.labels}
    for query in evaluation.contract.queries.values():
        rows, (metrics,) = run.ids.doc_ids.get(query.id, []), evaluation.metrics(run, [query.id])
        yield BaselineQuery(
            id=query.id,
            query=query.query,
            doc_ids=[*rows[0]] if rows else [],
            repeats=[[*row] for row in rows[1:]],
            ranks=ranks_by_id(query.relevant_doc_ids, run.scores[query.id].ranks),
            metrics={key: metrics[key] for key in stored},
            pool=_pool(evaluation, query.id, rows),
            expects=expected_of(query),
            broken=_broken(run.violations.get(query.id, ())),
            labels=[*_labels(run.labels_of_queries.get(query.id, {}), expected)],
        )


def _labels(confusion: Confusion, expected: Collection[str]) -> Iterator[str | None]:
    """Yield the label of each row of a query; None for one that no golden query expects, which may be any text."""
    for (_, label), rows in sorted(confusion.items(), key=lambda item: item[0][1] or ""):
        yield from [label if label in expected else None] * rows


def _pool(evaluation: Evaluation, query_id: str, rows: Sequence[Sequence[str]]) -> list[Id] | None:
    """Return the judged pool that the earlier baseline has for a query.

    None if it has none, or if readers can derive it from the results. The first results of this run are not added,
    because nobody has judged them since.
    """
    before = evaluation.baseline.ids.pools.get(query_id) if evaluation.baseline else None
    if before is None:
        return None
    ranking, pool = evaluation.contract.ranking, pool_of(before)
    k = ranking.k
    first = {doc_id for row in rows for doc_id in first_of(row, k, by_document=ranking.by_document)}
    return None if pool == first else [*sorted(pool)]


def _broken(violations: Iterable[Violation]) -> dict[str, list[str]]:
    """Return the causes of violations by rule. They are digests, because a baseline has no texts."""
    causes_of: dict[str, set[str]] = {}
    for violation in violations:
        causes_of.setdefault(violation.rule, set()).update(violation.causes)
    return {rule: sorted(causes) for rule, causes in sorted(causes_of.items())}


def fingerprint(queries: Iterable[GoldenQuery]) -> str:
    """Return a hash of the golden queries that ignores order, files, formatting and explicit defaults."""
    rows = sorted(msgspec.json.encode(_meaning(query), order="sorted") for query in queries)
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


def _meaning(query: GoldenQuery) -> dict[str, Any]:
    """Return the fields that do not have their default, so that fields of later versions change no fingerprint."""
    empty = asdict(GoldenQuery(id="", query="", relevant_doc_ids=(), location=query.location))
    return {name: value for name, value in asdict(query).items() if value != empty[name]}


def already_broken_text(report: Report, *, only_new: Collection[str], config: str, today: date) -> str:
    """Return the queries that the new baseline breaks, with waivers to paste for those that would fail each check.

    ``only_new`` are the rules that fail only for what is new, ``config`` is the name of the configuration. The text is
    empty if nothing is broken.
    """
    broken = broken_queries(report)
    if not broken:
        return ""
    failing = [(query, rule) for query in broken for rule in _rules(query) if rule not in only_new]
    names = [clipped(query.id, bounds.TERMINAL_QUESTION) for query in broken[: bounds.BROKEN_LISTED]]
    head = f"{count(len(broken), 'query')} {'is' if len(broken) == 1 else 'are'} already broken in it: "
    lines = [head + ", ".join(filter(None, [*names, more(len(broken), len(names))]))]
    if not failing:
        return "\n".join([*lines, "A check shows this and fails only for what is new."]) + "\n"
    lines += [
        f"A check fails if its run breaks this too. To fail only for what is new, write into {visible(config)}:",
        "",
        "per_query:",
        "  fail_on: new",
        "",
        "Or accept it until a date, here or with `rag-contract waive`:",
        "",
    ]
    return "\n".join(lines) + "\n" + _waivers(failing, today)


def _rules(query: QueryReport) -> Iterable[str]:
    return dict.fromkeys(violation.rule for violation in query.violations if violation.waived is None)


def _waivers(failing: list[tuple[QueryReport, str]], today: date) -> str:
    from ragcontract.contract.config_edits import as_yaml

    waivers = [
        {
            "query": query.id,
            "rule": rule,
            "reason": f"broken in the baseline of {today}",
            "owner": "your-name",
            "expires": str(today + timedelta(days=DAYS)),
        }
        for query, rule in failing[: bounds.BROKEN_LISTED]
    ]
    return as_yaml(waivers) + more(len(failing), len(waivers), "waiver", "  # … and {}\n")


def update_text(
    report: Report, stored: BaselineFile, new: BaselineFile, *, out: str, reason: str | None, written: bool
) -> str:
    """Render an update of the baseline in ``out``; ``reason`` is why a broken contract is accepted, if it is."""
    ranks = rank_changes(report)
    baseline = report.inputs.baseline
    groups = not_compared(baseline) if baseline else {}
    listed = {query_id for query_ids in groups.values() for query_id in query_ids}
    fewer = fewer_runs(stored.runs, new.runs) if written else None  # so that nobody loses them by accident
    return page(
        [
            *changes(report, ranks, FORM),
            *_golden_changes(stored, new, listed),
            Note(sizes(ranks)),
            *check(_without_past(report)),
            Note(_outcome(report, len(new.queries), visible(out), reason, written=written)),
            *([Note(f"Fewer good runs: {fewer}")] if fewer else []),
        ]
    )


def _without_past(report: Report) -> Report:
    """Return the report without what the stored baseline itself replaced, which is not about this update."""
    if report.inputs.baseline is None:
        return report
    return replace(report, inputs=replace(report.inputs, baseline=replace(report.inputs.baseline, replaces=None)))


def _golden_changes(stored: BaselineFile, new: BaselineFile, listed: set[str]) -> Sequence[Block]:
    """Return what else changed in the golden set; the queries in ``listed`` are listed already.

    It is empty for a baseline that remembers its contract, because the verdict then lists the changes.
    """
    if stored.contract is not None:
        return []
    wanted = {as_id(query.id): query.ranks.keys() for query in stored.queries}
    shared = [(as_id(query.id), query.ranks.keys()) for query in new.queries if as_id(query.id) not in listed]
    if changed := [query_id for query_id, documents in shared if documents != wanted[query_id]]:
        return [*apart({"with other relevant documents": changed}, FORM)]
    # Another version may hash other fields, so its fingerprint says nothing.
    if listed or stored.golden_sha256 == new.golden_sha256 or stored.created_by != new.created_by:
        return []
    return [Note("The golden set has other rules, weights, tags or grades than the baseline's.")]


def _outcome(report: Report, queries: int, out: str, reason: str | None, *, written: bool) -> str:
    drops = waived_changes(report)
    if report.verdict == "pass" and drops and not written:
        ids = render_phrase(listed([gate.id for gate in drops], "and"), visible)
        return (
            f"refused: {out} is left unchanged: what is waived ({ids}) would be forgotten. Fix the retriever, or "
            'store the run anyway with --accept-regressions "reason"'
        )
    if report.verdict == "fail" and not written:
        return (
            f"refused: {out} is left unchanged. Fix the retriever or the contract, or store the run anyway "
            'with --accept-regressions "reason"'
        )
    if not written:
        return f"nothing changed: {out} is left unchanged"
    stored = f"baseline of {count(queries, 'query')} in {out}"
    if reason is None:
        return stored
    if report.verdict == "pass" and not drops:
        return f"{stored}; nothing is broken, so no reason is stored"
    checks = count(len(report.failed_checks) + len(drops), "failed check")
    return f"{stored}, with {checks} accepted: {clipped(reason, bounds.TERMINAL_REASON)}"
