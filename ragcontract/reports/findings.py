"""What people read of a broken query: rules that are broken by one cause, merged into one finding."""

from collections.abc import Sequence

from msgspec import Struct

from ragcontract.judging.words import MISSING, NOT_THERE, Quote, Where, listed, whereabouts, within
from ragcontract.model import QueryReport, Violation


class Finding(Struct, frozen=True, kw_only=True):
    """Documents that are not where they should be.

    ``top`` is where they should (or must not) be, ``depth`` how far down we looked before calling one missing;
    ``one_in`` is where at least one of them should be besides.
    """

    doc_ids: Sequence[str]
    word: str
    top: int | None
    depth: int
    ranks: Where
    before: Where | None
    one_in: int | None = None

    def expected(self, quote: Quote = str) -> str:
        """As ``a and b in top 5``."""
        if self.word == "no":
            return f"no {listed(self.doc_ids, 'or', quote)} {within(self.top)}"
        besides = f", one of them in top {self.one_in}" if self.one_in else ""
        return f"{listed(self.doc_ids, self.word, quote)} {within(self.top)}{besides}"

    def found(self, quote: Quote = str, *, with_before: bool = True) -> str:
        """As ``missing from top 5 (was rank 1)``."""
        before = self.before if with_before else None
        return whereabouts(self.doc_ids, self.ranks, self.depth, before=before, absent=self.absent, quote=quote)

    @property
    def absent(self) -> str:
        """The word for a document of this finding that is not in a run."""
        return NOT_THERE if self.word == "no" else MISSING


def findings(query: QueryReport, k: int) -> list[Finding]:
    """Return what is wrong with a query; ``k`` is the largest cut-off.

    Where every relevant document is out of the top k, that breaks ``must_rank_at_most`` and ``must_include`` alike:
    one finding. Where one is in the top k and too low, and another is missing, those are two.
    """
    counts = [violation for violation in query.violations if violation.waived is None] or query.violations
    return _of(query, counts, k)


def tolerated_findings(query: QueryReport, k: int) -> list[Finding]:
    """Return what is wrong with a query and does not fail: of one that fails for something else, what is waived."""
    fails = query.status == "fail"
    return _of(query, [broken for broken in query.violations if not fails or broken.waived is not None], k)


def _of(query: QueryReport, violations: Sequence[Violation], k: int) -> list[Finding]:
    broken = {violation.rule: violation for violation in violations}
    found = []
    if forbidden := broken.get("forbidden_docs"):
        found.append(
            Finding(
                doc_ids=forbidden.doc_ids,
                word="no",
                top=forbidden.limit,
                depth=k,
                ranks=query.forbidden_ranks,
                before=query.baseline_forbidden_ranks,
            )
        )
    ranked = broken.get("must_rank_at_most")
    included = broken.get("must_include") or broken.get("must_include_any")
    if ranked and included and len(included.doc_ids) == len(query.ranks):
        found.append(_merged(query, ranked, included))
    else:
        found += [_relevant(query, violation, k) for violation in (ranked, included) if violation]
    return found


def _merged(query: QueryReport, ranked: Violation, included: Violation) -> Finding:
    n, k = ranked.limit or 0, included.limit or 0
    all_wanted = included.rule == "must_include" and len(included.doc_ids) > 1
    return Finding(
        doc_ids=included.doc_ids,
        word="and" if all_wanted else "or",
        top=k if all_wanted else min(n, k),
        one_in=n if all_wanted and n < k else None,
        depth=max(n, k),
        ranks=query.ranks,
        before=query.baseline_ranks,
    )


def _relevant(query: QueryReport, violation: Violation, k: int) -> Finding:
    return Finding(
        doc_ids=violation.doc_ids,
        word="and" if violation.rule == "must_include" else "or",
        top=violation.limit,
        depth=max(k, violation.limit or 0),
        ranks=query.ranks,
        before=query.baseline_ranks,
    )
