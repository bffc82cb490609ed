"""Lists the violations of a row: of very many, the first ones, and what the others of each rule have in common.

A conversation of a thousand turns can violate each of a hundred rules in each turn. Nobody reads that, and reports of
it take minutes. The verdict, the waivers and the comparison with a baseline are the same as with all of them.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.rule import Violation

EXPECTED = ("the rule to hold everywhere",)


def listed_first(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the first ``bounds.VIOLATIONS``; the others are one violation a rule, with their number and all causes.

    Violations that only warn stay apart from those that fail.
    """
    listed: list[Violation] = []
    others: dict[tuple[str, bool], list[Violation]] = {}
    for one in violations:
        if len(listed) < bounds.VIOLATIONS:
            listed.append(one)
        else:
            others.setdefault((one.rule, one.warns), []).append(one)
    return (*listed, *map(_as_one, others.values()))


def _as_one(violations: list[Violation]) -> Violation:
    if len(violations) == 1:
        return violations[0]
    causes = dict.fromkeys(cause for one in violations for cause in one.causes)
    found = (f"{len(violations):,} more violations, which are not listed",)
    return replace(violations[0], expected=EXPECTED, found=found, doc_ids=(), limit=None, causes=tuple(causes))
