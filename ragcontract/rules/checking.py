"""Rules about what other code found: check, by the row's ``checks``."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from ragcontract.answers.matcher_records import Wanted
from ragcontract.core.excerpt import excerpt
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answering import quoted


def checks_read(query: GoldenQuery) -> frozenset[str]:
    """Return the names of the checks that the rules of a query read."""
    return frozenset(rule.name for rule in query.rules if isinstance(rule, Check))


class Check(RowRule, frozen=True, kw_only=True, gc=False, tag="check"):
    """A check that other code made passed: ``checks`` of the row has it, as true or as ``{"passed": true}``."""

    needs: ClassVar[frozenset[str]] = frozenset({"checks"})
    name: Annotated[Wanted, Meta(description="The name of the check.")]

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return that the row has no such check, or no result of it."""
        found = (row.checks or {}).get(self.name)
        if found is None:
            return f'has no check {self.name!r} in checks; export it as true, false or {{"passed": …, "reason": …}}'
        if not isinstance(found, bool) and not isinstance(found.get("passed"), bool):
            return f"has a check {self.name!r} whose passed is neither true nor false"
        return None

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation with the reason if the check failed."""
        found: bool | dict[str, Any] = (row.checks or {}).get(self.name, False)
        passed = found if isinstance(found, bool) else found.get("passed") is True
        if not passed:
            reason = "" if isinstance(found, bool) else str(found.get("reason") or "")
            why: tuple[str | Name, ...] = ("it failed: ", excerpt(reason)) if reason.strip() else ("it failed",)
            yield Violation(rule="check", expected=("the check ", quoted(self.name), " to pass"), found=why)
