"""What a run breaks that becomes the baseline, and how a team can live with it."""

from collections.abc import Collection, Iterable
from datetime import date, timedelta

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import clipped, visible
from ragcontract.reports.broken import broken_queries
from ragcontract.reports.report import QueryReport, Report

DAYS = 90  # until the waivers expire; a team changes it as it likes


def already_broken_text(report: Report, *, only_new: Collection[str], config: str, today: date) -> str:
    """Return which queries the new baseline breaks, with waivers to paste for those that would fail each check.

    ``only_new`` are the rules that fail only for what is new, ``config`` is the name of the configuration. Empty if
    nothing is broken.
    """
    broken = broken_queries(report)
    if not broken:
        return ""
    failing = [(query, rule) for query in broken for rule in _rules(query) if rule not in only_new]
    names = [clipped(query.id, bounds.TERMINAL_QUESTION) for query in broken[: bounds.BROKEN_LISTED]]
    more = [f"{len(broken) - len(names):,} more"] if len(broken) > len(names) else []
    head = f"{count(len(broken), 'query')} {'is' if len(broken) == 1 else 'are'} already broken in it: "
    lines = [head + ", ".join(names + more)]
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
    from ragcontract.contract.waiver_text import as_yaml  # PyYAML is imported only if something is broken

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
    more = len(failing) - len(waivers)
    return as_yaml(waivers) + (f"  # … and {count(more, 'more waiver')}\n" if more else "")
