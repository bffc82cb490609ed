"""The rules that other code decides: custom, by a plugin, and check, by the row's ``checks``.

Only whoever runs the check can name a plugin.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from ragcontract.core import bounds
from ragcontract.core.config_sections import Wanted
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Message, Name, excerpt, private
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow, has_failed
from ragcontract.core.safe_text import shorten
from ragcontract.rules.answered import AnswerRule, quoted

HOW = "name it with `--plugin module:Class`, or export `checks` and use the rule `check`"


class Custom(AnswerRule, frozen=True, kw_only=True, gc=False, tag="custom"):
    """A plugin accepts the answer. It is an object with ``evaluate(output, tool_calls, rule)`` → (bool, reason).

    ``rule`` is the rule as the golden row has it. An exception makes the run impossible to judge; it does not break the
    rule.
    """

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"tool_calls", "messages"}
    plugin: Annotated[Wanted, Meta(description="The name of the plugin's class.")]
    options: Annotated[dict[str, Any] | None, Meta(description="Anything; the plugin gets it as part of the rule.")] = (
        None
    )

    def __hash__(self) -> int:
        """Return the hash of the plugin's name; options may be anything."""
        return hash(self.plugin)

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:
        """Return that the plugin is not there, or what it did instead of deciding."""
        if self.plugin not in context.settings.plugins:
            return f"needs the plugin {self.plugin!r}; {HOW}"
        lacks = super().lacking(query, row, context)
        outcome = context.once.made(self._outcome, row, context) if lacks is None else ""
        return lacks or (outcome if isinstance(outcome, str) else None)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        known = self.plugin in context.settings.plugins
        outcome = context.once.made(self._outcome, row, context) if known else (False, "")
        passed, reason = outcome if isinstance(outcome, tuple) else (False, outcome)
        if not passed:
            why: tuple[str | Name, ...] = (excerpt(reason),) if reason.strip() else ("it did not",)
            yield self.broken(("the plugin ", quoted(self.plugin), " to accept it"), why)

    def _outcome(self, row: RunRow, context: RowContext) -> tuple[bool, str] | str:
        """Return whether the plugin accepts the answer, and its reason; or a message if it does not decide."""
        rule = {**(self.options or {}), "type": "custom", "plugin": self.plugin}
        response = row.response if isinstance(row.response, str) else ""
        cannot = f"cannot be judged by the plugin {self.plugin!r}"
        try:
            returned: Any = context.settings.plugins[self.plugin].evaluate(response, _calls(row), rule)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (code of the user may raise anything, or end the program)
            why = shorten(f"{type(error).__name__}: {error}", bounds.VALUE)
            return Message.quoting(cannot, ", which failed: ", private(why))
        match returned:
            case (bool(passed), str(reason)):
                return passed, reason
        return Message.quoting(cannot, ", which must return (bool, str)")


def _calls(row: RunRow) -> list[dict[str, Any]]:
    """Return the tool calls, each with its name and arguments under the names that plugins know.

    Arguments that cannot be read stay as they are written, so that a plugin does not take the call for one without any.
    """
    from ragcontract.answers.tool_calls import arguments_of, written

    calls = []
    for call in row.tool_calls or []:
        name, as_written = written(call)
        read = arguments_of(as_written)
        arguments = as_written if read is None else read
        calls.append({"name": name, "tool": name, "arguments": arguments, "args": arguments})
    return calls


def checks_read(query: GoldenQuery) -> frozenset[str]:
    """Return the names of the checks that the rules of a query read."""
    return frozenset(rule.name for rule in query.rules if isinstance(rule, Check))


class Check(RowRule, frozen=True, kw_only=True, gc=False, tag="check"):
    """A check that other code made passed: ``checks`` of the row has it, as true or as ``{"passed": true}``."""

    needs: ClassVar[frozenset[str]] = frozenset({"checks"})
    name: Annotated[Wanted, Meta(description="The name of the check.")]

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return that the row does not have the check, or not its result."""
        check = (row.checks or {}).get(self.name)
        if check is None:
            return f'has no check {self.name!r} in checks; export it as true, false or {{"passed": …, "reason": …}}'
        if not isinstance(check, bool) and not isinstance(check.get("passed"), bool):
            return f"has a check {self.name!r} whose passed is neither true nor false"
        return None

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        check: bool | dict[str, Any] = (row.checks or {}).get(self.name, False)
        if has_failed(check):
            reason = "" if isinstance(check, bool) else str(check.get("error") or check.get("reason") or "")
            why: tuple[str | Name, ...] = ("it failed: ", excerpt(reason)) if reason.strip() else ("it failed",)
            yield self.broken(("the check ", quoted(self.name), " to pass"), why)
