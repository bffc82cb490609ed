"""The note below the verdict on what a check with ``--tag`` did not judge."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Name, Phrase, Quote, joined, listed, render
from ragcontract.reports.report import Report, ScopeReport


def scope_note(report: Report, name: Quote = str, text: Quote = str) -> str | None:
    """Return the note with names passed through ``name`` and other text through ``text``; None if all was judged."""
    phrase = scope_phrase(report)
    return render(phrase, name, text) if phrase else None


def scope_phrase(report: Report) -> Phrase:
    """Return the same as a phrase, for reports that format names differently; empty if all was judged."""
    scope = report.scope
    if scope is None:
        return ()
    tags = f"the tag{'s' if len(scope.tags) > 1 else ''} "
    judged = f"Judged only: {count(report.inputs.golden.queries, 'query')} with {tags}"
    own = ", and the limits of these tags" if len(scope.tags) > 1 else ", and its limits"
    return (judged, *listed(scope.tags, "or"), own, *_rest(scope), ".")


def _rest(scope: ScopeReport) -> Iterator[str | Name]:
    """Yield how many queries and which gates are not judged."""
    queries, gates = scope.queries_not_judged, scope.gates_not_judged
    rest = [count(len(queries), "query")] if queries else []
    if gates:
        rest.append(f"{count(len(gates), 'gate')} (")
    if rest:
        yield f". Not judged: {' and '.join(rest)}"
    if gates:
        yield from joined(([Name(gate)] for gate in gates[: bounds.LISTED]), len(gates) - bounds.LISTED)
        yield ")"
