"""Which violations of a query have the same cause: it is reported once."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import listed
from ragcontract.core.rule import Violation, names_of
from ragcontract.rules.ranks import MustInclude, MustRankAtMost, within

ANSWERED = "answered"  # the tag of a rule that contracts of documents do not import
Cause = tuple[tuple[str, ...], Violation]


def by_cause(query: GoldenQuery, violations: Sequence[Violation]) -> Iterator[Cause]:
    """Yield a violation for each cause, with the names of the rules that it violates, in the order of the first.

    If every relevant document is outside the top k, ``must_rank_at_most`` and ``must_include`` break for the same
    reason: one cause. If one document is in the top k but too low and another is missing, there are two. What is
    violated because there is no answer at all has one cause, with ``answered``.
    """
    unanswered = [one for one in violations if one.rule == ANSWERED and not one.warns]
    causes = _with_merged_ranks(query, violations)
    return _with_unanswered(violations, unanswered, causes) if unanswered else causes


def _with_merged_ranks(query: GoldenQuery, violations: Sequence[Violation]) -> Iterator[Cause]:
    by_rule = {violation.rule: violation for violation in violations}
    ranked = by_rule.get(names_of(MustRankAtMost)[0])
    included = next((by_rule[name] for name in names_of(MustInclude) if name in by_rule), None)
    for violation in violations:
        if not ranked or not included or len(included.doc_ids) < len(query.relevant_doc_ids):
            yield (violation.rule,), violation
        elif violation is ranked:
            yield (ranked.rule, included.rule), _merged(ranked, included)
        elif violation is not included:
            yield (violation.rule,), violation


def _with_unanswered(
    violations: Sequence[Violation], unanswered: Sequence[Violation], causes: Iterator[Cause]
) -> Iterator[Cause]:
    from ragcontract.rules.answering import follows_from

    for rules, violation in causes:
        if violation in unanswered:
            because = (one.rule for one in violations if follows_from(one, violation))
            yield tuple(dict.fromkeys((violation.rule, *because))), violation
        elif not any(follows_from(violation, one) for one in unanswered):
            yield rules, violation


def _merged(ranked: Violation, included: Violation) -> Violation:
    """Return one violation for a rank and an inclusion that no relevant document meets."""
    n, k = ranked.limit or 0, included.limit or 0
    all_wanted = included.rule == names_of(MustInclude)[0] and len(included.doc_ids) > 1
    top, conjunction = (k, "and") if all_wanted else (min(n, k), "or")
    besides = f", one of them in top {n}" if all_wanted and n < k else ""
    return replace(
        included, expected=(*listed(included.doc_ids, conjunction), f" {within(top)}{besides}"), limit=max(n, k)
    )
