"""The rule that the code in an answer parses."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from ragcontract.answers.code_blocks import TITLES, Language, code_in, fault_of, sql_fault
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import excerpt
from ragcontract.core.rule import NO_ANSWER, Fault, RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answered import AnswerRule, answer_in, begins


class CodeParses(AnswerRule, frozen=True, kw_only=True, gc=False, tag="code_parses"):
    """The code in the answer parses: each fenced block in the language, or else the whole answer. Nothing is run."""

    language: Annotated[Language, Meta(description="What the code is written in.")]
    dialect: Annotated[str | None, Meta(description="Of SQL, a name that sqlglot knows, such as `postgres`.")] = None

    def faults(self) -> Iterable[Fault]:
        """Return a dialect of another language than SQL, one that is not known, and a missing parser."""
        if self.language != "sql":
            return [(("dialect",), "is only for SQL; leave it out")] if self.dialect is not None else []
        fault = sql_fault(self.dialect)
        return [(("language" if fault.startswith("needs") else "dialect",), fault)] if fault else []

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        answer = answer_in(row)
        title, begun = TITLES[self.language], begins(answer)
        expected = (f"{title} that parses",)
        if not isinstance(row.response, str) or not row.response.strip():
            yield self.broken(expected, NO_ANSWER, "no code")
            return
        blocks = code_in(row.response, self.language)
        if not blocks:
            yield self.broken(expected, (f"an answer without a block of {title}: ", *begun), "no code")
            return
        for block in blocks:
            if fault := fault_of(block, self.language, self.dialect):
                line = "" if fault.line is None else f"line {fault.line:,}: "
                problem = replace(excerpt(fault.problem), quoted=False)  # parsers quote the answer
                yield self.broken(expected, (line, problem) if line else (problem,), "does not parse")
                return
