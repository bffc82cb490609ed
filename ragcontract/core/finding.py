"""A finding: what a person is told about one cause, in the same sentence everywhere."""

from typing import Literal

from msgspec import Struct

from ragcontract.core.phrase import Phrase, Quote, render

FindingStatus = Literal["fail", "warn", "waived"]


class Finding(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One cause that broke a gate, or one or several rules of a query.

    ``ids`` are the gate's, or the rules that one cause violates. ``expected`` and ``found`` say what was wanted and
    what is there, ``found`` with where documents were in the baseline and ``found_now`` without. ``ranks`` and
    ``ranks_before`` are those of the first documents in question, null for one that was not retrieved; the latter is
    null where there is no baseline, and ``more_ranks`` says that there are further documents. ``why`` says why a
    finding does not fail.
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
    why: str = ""


def phrase_of(finding: Finding) -> Phrase:
    """Return the finding as one sentence, for those who quote names in their own way."""
    if finding.kind == "gate":
        return (*finding.found, ", ", *finding.expected)
    return ("expected ", *finding.expected, "; found: ", *finding.found)


def sentence(finding: Finding, name: Quote = str, text: Quote = str) -> str:
    """Return the finding as one sentence."""
    return render(phrase_of(finding), name, text)
