"""The headline of a report, its summary as one line of plain text, and sentences that may explain the result.

These are about mistakes in the input, about what else changed since the baseline, and about which queries are compared.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, more
from ragcontract.core.phrase import Code, Name, Phrase, joined, render
from ragcontract.core.run import COMPARED_VERSIONS, VERSION_FIELDS
from ragcontract.core.safe_text import clipped, encodable, shorten, visible
from ragcontract.decision.gate_report import NOT_PROVEN, GateStatus
from ragcontract.report.history_report import newer_baseline
from ragcontract.report.limit_text import limited_by
from ragcontract.report.metric_table import differs, table_rows
from ragcontract.report.parts import BaselineInput
from ragcontract.report.queries import IN_BASELINE, NEW, sizes_since
from ragcontract.report.record import BrokenQueries, ErrorReport, Report


def drift(report: Report) -> Iterator[Phrase]:
    """Yield sentences on differences that make run and baseline hard to compare."""
    run, baseline = report.inputs.run.versions, report.inputs.baseline
    mixed = {field: run[field] for field in VERSION_FIELDS if len(run.get(field, ())) > 1}
    for field, values in mixed.items():
        first = joined(([Name(value)] for value in values[: bounds.NAMES]), len(values) - bounds.NAMES)
        yield (f"The run's rows disagree about the {_spoken(field)}: ", *first)
    if baseline is None:
        return
    changed = changed_versions(run, baseline.versions)
    if changed and not any(cause.kind == "versions" for cause in report.causes):
        steps = ((f"{_spoken(field)} ", Name(old), " → ", Name(new)) for field, (old, new) in changed.items())
        yield ("Changed since the baseline: ", *joined(steps))
    if baseline.too_old:
        age = f"The baseline is {count(baseline.age_days or 0, 'day')} old, more than max_baseline_age allows"
        update = ("update it with ", Code("rag-contract baseline --update"))
        yield (f"{age}; ", *(newer_baseline(report.history) or update))
    if baseline.k is not None and max(baseline.k) != max(report.k):
        yield (f"The baseline was made with k = {max(baseline.k)} and is compared here at k = {max(report.k)}",)


def as_warning(mistake: Phrase) -> str:
    """Return a likely mistake as plain text, as the warnings of the report have it."""
    return encodable(render(mistake))


def other_warnings(report: Report) -> list[str]:
    """Return the warnings that are not likely mistakes, for reports that show the mistakes at the top."""
    return report.warnings[len(report.likely_mistakes) :]  # the mistakes are the first warnings


def _spoken(field: str) -> str:
    return field.replace("_", " ")


def changed_versions(run: Mapping[str, list[str]], baseline: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Return the version fields that both sides have and that differ, as ``{field: (baseline's, run's)}``."""
    return {
        field: (", ".join(before), ", ".join(now))
        for field in COMPARED_VERSIONS
        if (now := run.get(field)) and (before := baseline.get(field)) and set(before) != set(now)
    }


def not_compared(baseline: BaselineInput) -> dict[str, list[str]]:
    """Return the ids of the queries that only one side has, or that have another question, by the name of the group."""
    groups = {"new": baseline.new, "with another question": baseline.changed, "gone": baseline.gone}
    return {name: query_ids for name, query_ids in groups.items() if query_ids}


VERDICTS = {"pass": "holds", "fail": "broken"}


def headline(report: Report) -> str:
    """Return what broke, queries first, in at most ``bounds.HEADLINE`` characters; further facts only if they fit."""
    gates = Counter(gate.status for gate in report.gates)
    facts = _what_held(report, gates["pass"]) if report.verdict == "pass" else _what_broke(report, gates["fail"])
    return _that_fit([*filter(None, facts)], _further(report, gates))


def _what_held(report: Report, limits: int) -> list[str]:
    number = report.inputs.golden.queries
    holding = max(0, number - sum(query.status != "pass" for query in report.queries))
    queries, broken = count(number, "query"), report.broken
    held = f"{count(limits, 'limit')} {'holds' if limits == 1 else 'hold'}" if limits else ""
    if counted := sum(query.status == "counted" for query in report.queries):
        return [f"{counted:,} of {queries} broken, which the pass rate allows", held]
    if broken.queries:
        return [f"Nothing new broken in {queries}, {broken.in_baseline:,} {IN_BASELINE}", held]
    if limits:
        return [f"{count(holding, 'query')} and {count(limits, 'limit')} hold"]
    return [
        f"{count(holding, 'query')} {'holds' if holding == 1 else 'hold'}",
        "" if report.gates else _no_limits(report),
    ]


def _no_limits(report: Report) -> str:
    left_out = 0 if report.history is UNSET else report.history.limits_left_out
    return f"{count(left_out, 'limit')} not checked" if left_out else "no limits are set"


NO_QUERY = "no query is broken"


def _what_broke(report: Report, limits: int) -> list[str]:
    broken, of_limits = report.broken, f"{count(limits, 'limit')} broken" if limits else ""
    if not broken.queries:
        first = next((gate for gate in report.gates if gate.status == "fail"), None)
        named = f": {visible(limited_by(first))}" if limits == 1 and first and first.of is None else ""
        whole = f"{of_limits}{named}; {NO_QUERY}"
        return [whole if len(whole) <= bounds.HEADLINE else f"{of_limits}; {NO_QUERY}"]
    start = f"{broken.queries:,} of {count(report.inputs.golden.queries, 'query')} broken"
    sizes = sizes_since(report, broken.new, broken.in_baseline)
    forms = (f"{start}{_in_answers(broken)}{sizes}", f"{start}{sizes}", f"{start}, {broken.new:,} {NEW}")
    return [next((form for form in forms if len(f"{form}; {of_limits}") <= bounds.HEADLINE), start), of_limits]


def _that_fit(start: Sequence[str], further: Iterable[str]) -> str:
    """Join the facts of a headline, without those that would make it too long."""
    text = "; ".join(start)
    for fact in further:
        text = longer if len(longer := f"{text}; {fact}") <= bounds.HEADLINE else text
    return text


def _further(report: Report, gates: Counter[GateStatus]) -> Iterator[str]:
    """Yield how many queries are fixed, and how much is broken, or over its limit, and does not fail."""
    queries = Counter(query.status for query in report.queries)
    tiers = sum(tier.status == "skipped" for tier in report.tiers or [])
    not_proven = sum(gates[status] for status in NOT_PROVEN)
    sizes = {
        f"{report.broken.fixed:,} fixed": report.broken.fixed,
        f"{count(tiers, 'tier')} skipped": tiers,
        f"{count(not_proven, 'change')} over the limit, not proven": not_proven,
        f"{queries['waived'] + gates['waived']:,} waived": queries["waived"] + gates["waived"],
        f"{queries['skipped']:,} skipped": 0 if tiers else queries["skipped"],
        f"{queries['warn']:,} to warn": queries["warn"],
    }
    yield from (text for text, size in sizes.items() if size)


def subject(report: Report | ErrorReport) -> str:
    """Return the subject of a report: a contract with rules about answers is not only a retrieval contract."""
    about_answers = isinstance(report, Report) and report.broken.answers is not UNSET
    return "Contract" if about_answers else "Retrieval contract"


def _in_answers(broken: BrokenQueries) -> str:
    """Return how many of the broken queries break rules that are not about ranks."""
    answers = min(broken.answers or 0, broken.queries)  # a report that somebody else wrote may have more
    if not answers:
        return ""
    their = "its answer" if answers == 1 else "their answers"
    return f" in {their}" if answers == broken.queries else f" ({answers:,} in {their})"


def shared_note(report: Report) -> str | None:
    """Return a sentence on which queries are compared; None if all are."""
    baseline = report.inputs.baseline
    if baseline is None or not (groups := not_compared(baseline)):
        return None
    apart = [f"{len(ids):,} {name}" for name, ids in groups.items()]
    rows = [row for row in table_rows(report) if row.tag is None]
    alone = {row.label for row in rows if row.over}  # has a row of its own
    others = [
        f"{row.label} {fixed(row.metric.current, row.digits)}"
        for row in rows
        if row.metric and differs(row.metric) and row.label not in alone
    ]
    end = f"; current over all {count(report.inputs.golden.queries, 'query')}: {', '.join(others)}" if others else ""
    shared = f"the {count(baseline.shared, 'query')} that both sides have ({', '.join(apart)})"
    return f"Compared over {shared}{end}."


def summary_of(report: Report | ErrorReport) -> str:
    """Return the contract's name if it has one, and the headline, on one line; control characters visible."""
    name = report.source.contract if report.source else None
    named = f"{clipped(name, bounds.MARKDOWN_NAME)}: " if name else ""
    if isinstance(report, Report):
        return shorten(f"{named}{visible(headline(report))}", bounds.SUMMARY_LINE)
    first = visible(report.problems[0]) if report.problems else "no problem is known"
    others = more(len(report.problems) + report.more_problems, 1, "problem", " (and {})")
    return shorten(f"{named}could not be judged: {first}{others}", bounds.SUMMARY_LINE)
