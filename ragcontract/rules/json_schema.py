"""The rule that an answer is JSON and fits a schema: json_schema."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, excerpt
from ragcontract.core.rule import Fault, RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import shorten
from ragcontract.rules.answered import NO_ANSWER, AnswerRule, answer_in, begins, quoted

_EXPECTED = ("JSON that fits the schema",)


class JsonSchema(AnswerRule, frozen=True, kw_only=True, gc=False, tag="json_schema"):
    """The answer is JSON, alone or in one fenced block, has no key twice, and fits the schema (draft 2020-12)."""

    schema: Annotated[dict[str, Any] | bool, Meta(description="A JSON Schema.")]

    def __hash__(self) -> int:
        """Return the hash of the schema, which is an object."""
        return hash(msgspec.json.encode(self.schema, order="deterministic"))

    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the schema."""
        from ragcontract.answers.json_fit import schema_fault

        fault = schema_fault(self.schema)
        return [(("schema",), fault)] if fault else []

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation that says where the answer does not fit."""
        from ragcontract.answers.json_answer import NotJsonError, parsed, unfenced
        from ragcontract.answers.json_fit import TooMuchWorkError, first_failure
        from ragcontract.files.json_text import doubled_key

        answer = answer_in(row)
        try:
            document = parsed(answer.text)
            if (key := doubled_key(unfenced(answer.text).encode())) is not None:
                yield Violation(
                    rule="json_schema",
                    expected=("each key once in an object",),
                    actual=(
                        "the key ",
                        excerpt(key),
                        " twice: some programs read its first value and some its last",
                    ),
                    causes=("duplicate key",),
                )
                return
            failure = first_failure(document, self.schema)
        except NotJsonError as error:
            begun = begins(answer)
            found_text = begun if begun == NO_ANSWER else (f"an answer that {error}: ", *begun)
            yield Violation(rule="json_schema", expected=_EXPECTED, actual=found_text, causes=("no JSON",))
            return
        except TooMuchWorkError:
            steps = (f"an answer that takes more than {bounds.SCHEMA_STEPS:,} steps to check",)
            yield Violation(rule="json_schema", expected=_EXPECTED, actual=steps, causes=("too much work",))
            return
        if failure:
            place = ("at ", Name(shorten(failure.path, bounds.EXCERPT), said=True), ": ") if failure.path else ()
            yield Violation(
                rule="json_schema",
                expected=(*_EXPECTED, ": ", quoted(f"{failure.keyword}: {failure.wanted}")),
                actual=(*place, replace(excerpt(failure.actual), quoted=False)),  # it is JSON
                causes=(f"{failure.path} {failure.keyword}",),
            )
