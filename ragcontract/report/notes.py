"""The notes under the verdict: what was not checked, what was averaged, and how baseline and contract changed.

Without the last, a pull request that replaces the baseline or weakens the contract looks like one without any change.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from math import inf

from ragcontract.core import bounds
from ragcontract.core.gate import OF_LEVEL, written
from ragcontract.core.numbers import SAME, count, digits_for, fixed, more, percent
from ragcontract.core.phrase import Name, Phrase, joined, listed
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import clipped
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.history_report import compared_with
from ragcontract.report.limit_text import digits_of, limited_by
from ragcontract.report.metric_table import at_largest_k
from ragcontract.report.parts import BaselineInput
from ragcontract.report.record import Report, ScopeReport
from ragcontract.runs.baseline_contract import (
    CHANGES,
    ChangedItem,
    ChangeKind,
    ContractChange,
    Replaced,
    Value,
)
from ragcontract.runs.baseline_file import Accepted


def scope_note(report: Report) -> Phrase:
    """Return the note on what a check with ``--tag`` left out; empty if it left nothing out."""
    scope = report.scope
    if scope is None:
        return ()
    tags = f"the tag{'s' if len(scope.tags) > 1 else ''} "
    start = f"Checked only: {count(report.inputs.golden.queries, 'query')} with {tags}"
    own = ", and the limits of these tags" if len(scope.tags) > 1 else ", and its limits"
    return (start, *listed(scope.tags, "or"), own, *_rest(scope), ".")


def _rest(scope: ScopeReport) -> Iterator[str | Name]:
    """Yield how many queries and which gates are left out."""
    queries, gates = scope.queries_not_judged, scope.gates_not_judged
    rest = [count(len(queries), "query")] if queries else []
    if gates:
        rest.append(f"{count(len(gates), 'gate')} (")
    if rest:
        yield f". Not checked: {' and '.join(rest)}"
    if gates:
        yield from joined(([Name(gate)] for gate in gates[: bounds.LISTED]), len(gates) - bounds.LISTED)
        yield ")"


def fewer_runs(before: int, now: int) -> str | None:
    """Return a clause on a baseline that is of fewer good runs than the one before; None if it is not.

    Limits that come from the variation between runs are made for the number of runs that there were.
    """
    if now >= before:
        return None
    is_now = f"is the mean of {now}" if now > 1 else "is a single run"
    return f"the older one was the mean of {before} good runs, and this one {is_now}"


def worst_ranks(report: Report) -> str:
    """Return a clause that says what the ranks of a query with several rows are."""
    if _against_good_runs(report):
        return "its rank in the worst of the good runs, and now"
    return "the worst ranks of its rows"


def row_shown(report: Report) -> str:
    """Return a sentence on which of a query's rows is shown, if there are several."""
    if _against_good_runs(report):
        return "Before is the first of the good runs."
    return "Of several rows, the first that breaks a rule is shown, and the first of the baseline."


def _against_good_runs(report: Report) -> bool:
    """Return whether only the baseline has several rows of a query: those of its good runs."""
    return report.inputs.baseline is not None and report.inputs.baseline.runs > 1 and report.repeats is None


def repeats_note(report: Report) -> str | None:
    """Return the note on how many exports or good runs were averaged, and how far one export's means differ."""
    baseline = report.inputs.baseline
    runs = f"The baseline is the mean of {baseline.runs} good runs." if baseline and baseline.runs > 1 else None
    return " ".join(filter(None, [runs, _of_exports(report)])) or None


def _of_exports(report: Report) -> str | None:
    repeats = report.repeats
    if repeats is None:
        return None
    exports = str(repeats.most) if repeats.fewest == repeats.most else f"{repeats.fewest} to {repeats.most}"
    start = f"Means over {exports} exports of each query"
    if not repeats.metrics:
        why = "as a query has one row only" if repeats.fewest == 1 else "as their rows have no order"
        return f"{start}; their spread is not known, {why}."
    largest, digits = at_largest_k(report), digits_of(report)
    deviations = ", ".join(
        f"{largest[key].label} {fixed(spread.deviation, digits)}"
        for key, spread in repeats.metrics.items()
        if key in largest
    )
    return f"{start}; standard deviation of one export's means: {deviations}."


UNSAID = "The baseline was changed in this pull request and names no older one, so how it differs is not known"
Gates = dict[str, GateReport]
SECONDS_A_DAY = 24 * 60 * 60


def change_notes(report: Report, *, replaced_here: bool | None = None) -> Iterator[Phrase]:
    """Yield the notes on a baseline from the history, and on changes of baseline and contract.

    ``replaced_here`` says whether this pull request changes the baseline's file; None if that is not known.
    """
    yield from compared_with(report.history, report.inputs.baseline)
    yield from replaced_notes(report, replaced_here=replaced_here)
    if (baseline := report.inputs.baseline) and baseline.contract_changes:
        yield ("Contract changed since the baseline: ", *_changes(baseline.contract_changes, report))


def replaced_notes(report: Report, *, replaced_here: bool | None = None) -> Iterator[Phrase]:
    """Yield how the baseline differs from the one before, and how the contract changed with it.

    If it is not known whether this pull request replaced it, only a baseline of the last days gets a note.
    """
    baseline = report.inputs.baseline
    replaced = baseline.replaces if baseline else None
    if baseline is None:
        return
    if replaced is None:
        if replaced_here:
            yield (UNSAID,)
        return
    is_recent = baseline.age_days is None or baseline.age_days <= bounds.REPLACED_DAYS
    if not (is_recent if replaced_here is None else replaced_here):
        return
    when = "in this pull request" if replaced_here else f"on {_day(baseline.created_at or '')}"
    means = "".join(_means(baseline, replaced, report))
    runs = fewer_runs(replaced.runs, baseline.runs)
    fewer = f"; {runs}" if runs else ""
    yield (f"The baseline was replaced {when}{means}{fewer}{_reason(baseline, replaced)}",)
    if replaced.contract_changes:
        yield ("Contract changed with that baseline: ", *_changes(replaced.contract_changes, report))


def about_inputs(report: Report) -> Iterator[tuple[str, Sequence[SourceFile], list[Phrase]]]:
    """Yield each input, with its files and facts about it."""
    inputs, run, baseline = report.inputs, report.inputs.run, report.inputs.baseline
    yield "golden", inputs.golden.files, [(count(inputs.golden.queries, "query"),)]
    missing = [f"{len(run.missing):,} missing"] if run.missing else []
    repeated = [f"{percent(run.duplicate_rate)} of the results repeat a document"] if run.duplicate_rate else []
    yield "run", run.files, [(fact,) for fact in (count(run.queries, "query"), *missing, *repeated)]
    if inputs.scores:
        yield "scores", inputs.scores.files, []
    if inputs.judgments:
        yield "judgments", inputs.judgments.files, []
    if baseline:
        yield "baseline", baseline.files, list(_about(baseline))
    if inputs.config:
        yield "config", inputs.config.files, [(count(len(report.gates), "gate"),)]


def _about(baseline: BaselineInput) -> Iterator[Phrase]:
    """Yield facts about the baseline without those under the verdict."""
    yield (count(baseline.queries, "query"),)
    yield (f"{baseline.shared:,} shared",)
    if baseline.created_at:
        yield "made ", Name(baseline.created_at)
    if baseline.runs > 1:
        yield (f"the mean of {baseline.runs} good runs",)
    if baseline.replaces:
        yield (f"replaced the one of {_day(baseline.replaces.created_at)}",)
    if baseline.contract_changes is None:
        yield ("its contract is not known",)


def _day(time: str) -> str:
    """Return the date of a time; of a hand-made baseline, whatever it has instead of a time."""
    try:
        return datetime.fromisoformat(time).date().isoformat()
    except ValueError:
        return clipped(time, bounds.BASELINE_TIME)


def _means(baseline: BaselineInput, replaced: Replaced, report: Report) -> Iterable[str]:
    """Yield the means that were worse than in the older baseline, over the queries that both baselines have."""
    worse: list[tuple[float, str]] = []
    compared = 0
    for key, metric in at_largest_k(report).items():
        before, now = replaced.metrics.get(key), replaced.metrics_shared.get(key)
        if before is None or now is None:
            continue
        compared += 1
        change = before - now if metric.better == "higher" else now - before
        verb = "fell" if metric.better == "higher" else "rose"
        amount = fixed(change, digits_for([(change, 0.0)]))
        worse.append((change, f"{clipped(metric.label, bounds.NAME)} {verb} by {amount}"))
    if not compared:
        return
    texts = [text for change, text in sorted(worse, key=lambda change: -change[0]) if change > SAME]
    some = f", over {count(replaced.shared, 'shared query')}" if replaced.shared < baseline.queries else ""
    if not texts:
        yield f": no mean fell against the older one{some}"
        return
    rest = more(len(texts), bounds.NAMES, "metric", " and {}")
    yield f": {', '.join(texts[: bounds.NAMES])}{rest} against the older one{some}"


def _reason(baseline: BaselineInput, replaced: Replaced) -> str:
    """Return why regressions were accepted with this baseline, or with one that it soon replaced.

    Otherwise, a second update in a pull request would hide what was accepted with the first.
    """
    earlier = [*baseline.accepted]
    now = earlier.pop() if earlier and replaced.accepted else None
    text = f"; accepted: {_short(now)}" if now else ""
    recent = [
        accepted
        for accepted in earlier
        if _days_between(accepted.at, baseline.created_at or "") <= bounds.REPLACED_DAYS
    ]
    if recent:
        others = more(len(recent), 1, form=" (and {} in report.json)")
        text += f"; accepted with a baseline before it, on {_day(recent[-1].at)}: {_short(recent[-1])}{others}"
    return text


def _short(accepted: Accepted) -> str:
    return clipped(accepted.reason, bounds.NOTE_REASON)


def _days_between(earlier: str, later: str) -> float:
    """Return the days between two times; infinity if one of them, in a hand-made baseline, is not a time."""
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / SECONDS_A_DAY
    except (ValueError, TypeError):  # TypeError: only one of them has a time zone
        return inf


def _changes(changes: Sequence[ContractChange], report: Report) -> Phrase:
    gates = {gate.id: gate for gate in report.gates}
    return joined(_named(change) if CHANGES[change.kind].sentence else _bare(change, gates) for change in changes)


def _named(change: ContractChange) -> Iterator[str | Name]:
    """Yield how many items changed, and their names with a changed number or date: ``(q1: 3 → 5, q2: 1 → 2)``."""
    about = CHANGES[change.kind]
    yield about.sentence.format(count(change.count, about.noun))
    if change.items:
        yield " ("
        yield from joined((Name(item.id), _values(change.kind, item)) for item in change.items[: bounds.LISTED])
        yield more(len(change.items), bounds.LISTED, form=" and {} in report.json") + ")"


def _values(kind: ChangeKind, item: ChangedItem) -> str:
    before, after = _shown(item.before), _shown(item.after)
    if kind in {"limits_added", "waivers_added"}:
        return f" until {after}" if kind == "waivers_added" else f" {after}"
    if kind == "limits_removed":
        return f" {before}"
    if before == after or item.after is None:
        return ""
    return f": {before} → {after}{CHANGES[kind].unit}"


def _bare(change: ContractChange, gates: Gates) -> Iterator[str | Name]:
    """Yield changed limits or settings: ``minimum of Recall@5 0.90 → 0.80``, ``missing_queries error → zero``."""
    noun, first = CHANGES[change.kind].noun, change.items[: bounds.LISTED]
    yield from joined(_limit(item, gates.get(item.id)) if noun == "limit" else _setting(item) for item in first)
    if (rest := len(change.items) - bounds.LISTED) > 0:
        yield f" and {count(rest, noun)} more in report.json"


def _limit(item: ChangedItem, gate: GateReport | None) -> Iterator[str | Name]:
    if gate is None:
        yield Name(item.id)
    else:
        allowed = "allowed " if gate.compares or gate.kind in OF_LEVEL or gate.unit == "ms" else ""
        yield f"{allowed}{clipped(limited_by(gate), bounds.NAME)}"
        if gate.of is not None:
            yield " of "
            yield Name(gate.of)
    unit = gate.unit if gate else "points"
    shown = [
        written(value, unit) if isinstance(value, int | float) else _shown(value) for value in (item.before, item.after)
    ]
    yield f" {' → '.join(shown)}"


def _setting(item: ChangedItem) -> Iterator[str | Name]:
    yield Name(item.id)
    if isinstance(item.before, bool) and isinstance(item.after, bool):
        yield f" turned {'on' if item.after else 'off'}"
    else:
        yield f" {_shown(item.before)} → {_shown(item.after)}"


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else clipped(str(value), bounds.NAME)
