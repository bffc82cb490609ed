"""Findings: one message per cause, rendered with the same wording in every output."""

from typing import Literal

from msgspec import Struct

from ragcontract.core.phrase import Phrase, Quote, render

FindingStatus = Literal["fail", "warn", "counted", "skipped", "waived", "known", "unproven", "too_few"]


class Finding(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One cause that broke a gate, or one or more rules of a query.

    ``ids`` holds the id of the gate, or of all rules that the cause violates. ``expected`` and ``found`` describe the
    expected and the actual result. ``found`` includes the baseline ranks of documents, ``found_now`` does not.
    ``ranks`` and ``ranks_before`` are the current and baseline ranks of the first documents involved, null for a
    document that was not retrieved; ``ranks_before`` is null without a baseline. ``more_ranks`` is true if there are
    further documents. ``in_baseline`` says that the baseline breaks the same rules already. ``why`` explains why a
    finding does not fail the check, or why it does although only the pass rate decides. ``details`` are further lines
    about it, such as why scores are low.
    """

    kind: Literal["gate", "rule"]
    ids: tuple[str, ...]
    status: FindingStatus
    location: str
    query_id: str | None = None
    expected: Phrase
    found: Phrase
    found_now: Phrase = ()
    ranks: tuple[int | None, ...] = ()
    ranks_before: tuple[int | None, ...] | None = None
    more_ranks: bool = False
    in_baseline: bool = False
    why: str = ""
    details: tuple[Phrase, ...] = ()


def phrase_of(finding: Finding) -> Phrase:
    """Return the finding as one sentence with the names still marked, for outputs that quote names themselves."""
    if finding.kind == "gate":
        return (*finding.found, ", ", *finding.expected)
    why = (f"; {finding.why}",) if finding.why and finding.status == "fail" else ()
    return ("expected ", *finding.expected, "; found: ", *finding.found, *why)


def sentence(finding: Finding, name: Quote = str, text: Quote = str, *, marks: str = '"') -> str:
    """Return the finding as one sentence, with names passed through ``name`` and other text through ``text``."""
    return render(phrase_of(finding), name, text, marks=marks)
