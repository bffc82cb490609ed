"""The record of a line of ``golden.jsonl``."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial, reduce
from operator import or_
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.config_sections import AsWritten
from ragcontract.core.golden import ExpectedAnswer, Mode
from ragcontract.core.ids import Id, Rank, Tag, TextId
from ragcontract.core.rule import Fault, Rule
from ragcontract.core.run import AnswerText, CallJson
from ragcontract.files.schema import Mismatch
from ragcontract.registry import BUILT_IN, Registry

Question = Annotated[
    str, Meta(min_length=1, max_length=bounds.QUESTION, title=f"text of 1 to {bounds.QUESTION:,} characters")
]
Text = Annotated[AnswerText, Meta(min_length=1, title=f"text of 1 to {bounds.ANSWER:,} characters")]
# The fields of a turn beside its question and its rules.
TURN_FIELDS = (
    "answer_must_include", "forbidden_claims", "allowed_phrases", "required_elements", "min_required",
    "forbidden_elements",
)  # fmt: skip
# Names that other tools give to a good answer, in the form of :attr:`RunRow.other_names`.
REFERENCES = dict.fromkeys(("expected_answer", "reference_answer"), ("reference", "did you mean 'reference'?"))
# The bounds keep sums from overflowing and products from underflowing to 0.
Weight = Annotated[float, Meta(ge=bounds.WEIGHT_LEAST, le=bounds.WEIGHT, title="a number from 1e-9 to a billion")]
Grade = Annotated[float, Meta(ge=0, le=bounds.GRADE, title="a number of at least 0, at most a billion")]


class CriterionJson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A criterion with a name of its own."""

    id: Annotated[Tag, Meta(description="Its name; its number where there is none.")]
    text: Annotated[Question, Meta(description="What the answer must be, such as: Says that returns are free.")]


class GoldenRow(Struct, frozen=True, kw_only=True):
    """A line of the golden file."""

    id: Annotated[Id, Meta(description="Stable id of the query; runs refer to it.")]
    query: Annotated[Question, Meta(description="The question.")]
    relevant_doc_ids: Annotated[
        list[Id] | None,
        Meta(description="The documents that must be found. Empty: nothing answers the question."),
    ] = None
    must_rank_at_most: Annotated[
        Rank | None, Meta(description="At least one relevant document must be at this rank or better.")
    ] = None
    must_include_any: Annotated[
        bool | None,
        Meta(description="One relevant document in the top k is enough, instead of all; false: all of them."),
    ] = None
    forbidden_doc_ids: Annotated[list[Id] | None, Meta(description="Documents that must not be retrieved.")] = None
    weight: Annotated[Weight | None, Meta(description="Importance of the query in the means; 1 by default.")] = None
    tags: Annotated[list[Tag] | None, Meta(description="Labels to report metrics by.")] = None
    severity: Annotated[
        Literal["error", "warn"] | None, Meta(description="With warn, broken rules are reported but do not fail.")
    ] = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="Anything; not read.")] = None
    relevance: Annotated[
        dict[TextId, Grade] | None,
        Meta(description="Grades of documents; with it, relevant_doc_ids may be left out: those of the level or more."),
    ] = None
    answer_must_include: Annotated[list[Text] | None, Meta(description="Texts that the answer must contain.")] = None
    forbidden_claims: Annotated[
        list[AsWritten] | None, Meta(description="What the answer must not claim: patterns (RE2), or matchers.")
    ] = None
    allowed_phrases: Annotated[
        list[AsWritten] | None, Meta(description="Patterns within which a forbidden claim is allowed.")
    ] = None
    required_elements: Annotated[
        list[AsWritten] | None, Meta(description="What the answer must contain: texts, or matchers.")
    ] = None
    min_required: Annotated[
        Rank | None, Meta(description="How many of the required elements are enough; all by default.")
    ] = None
    forbidden_elements: Annotated[
        list[AsWritten] | None, Meta(description="What the answer must not contain: texts, or matchers.")
    ] = None
    expected_mode: Annotated[Mode | None, Meta(description="How the application must answer.")] = None
    expected_label: Annotated[Tag | None, Meta(description="The class that the application must choose.")] = None
    reference: Annotated[Text | None, Meta(description="A good answer.")] = None
    reference_claims: Annotated[list[Text] | None, Meta(description="What the reference says, one statement each.")] = (
        None
    )
    reference_contexts: Annotated[list[Text] | None, Meta(description="Texts that must be retrieved.")] = None
    reference_tool_calls: Annotated[
        list[CallJson] | None, Meta(description="The tool calls that are wanted; empty: none is.")
    ] = None
    criteria: Annotated[
        list[Question | CriterionJson] | None,
        Meta(description="What the answer must be, one statement each; a judge says whether it is."),
    ] = None
    rules: Annotated[list[Any] | None, Meta(description="Further rules.")] = None
    turns: Annotated[list[Any] | None, Meta(description="The turns of a conversation, each with its rules.")] = None
    tier: Annotated[Tag | None, Meta(description="The tier of the query; `tiers` in the config has its limit.")] = None
    as_evaluated: Annotated[
        Literal["fitz-gov-4.1.0"] | None, Meta(description="Match as this benchmark does, for comparison with it.")
    ] = None

    own_fields: ClassVar[str] = "put a field of your own into metadata, or name it in allow_fields of the configuration"


OPTIONS = ("tier", "as_evaluated", "allowed_phrases", "min_required")
OF_DOCUMENTS = GoldenRow.__struct_fields__[: GoldenRow.__struct_fields__.index("answer_must_include")]
ANSWER_FIELDS = tuple(
    dict.fromkeys(name for name in ("rules", *GoldenRow.__struct_fields__) if name not in {*OF_DOCUMENTS, *OPTIONS})
)
ENOUGH = ("relevant_doc_ids", "relevance", *ANSWER_FIELDS)  # a row needs any: documents, or what the answer must be
# The fields and types that rules are written with. If one is misspelled, its rule is off.
RULE_FIELDS = frozenset(
    (
        *ENOUGH, "must_rank_at_most", "must_include_any", "forbidden_doc_ids", "as_evaluated", "allowed_phrases",
        "min_required", *(name for line in BUILT_IN.entries for name in line.names),
    )
)  # fmt: skip


class RuleEntry(ABC):
    """An entry of ``rules`` in a row: a rule, of the class that its ``type`` names."""

    @abstractmethod
    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the rule as it is written."""


RuleEntry.register(Rule)


def golden_record(registry: Registry) -> type[GoldenRow]:
    """Return the record of a line. The module of a rule is imported when an entry of ``rules`` names it.

    The record has the types of all rules in ``explained_by``, which explains rows that are wrong.
    """
    lines = {name: line for line in registry.entries for name in line.names}

    def rule(_kind: type, entry: object) -> Rule:
        name = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in lines:
            raise ValueError("not a rule")
        return msgspec.convert(entry, lines[name].load())

    return _record(RuleEntry, lines, made_by=staticmethod(rule), explained_by=partial(typed_record, registry))


def typed_record(registry: Registry) -> type[GoldenRow]:
    """Return the record of a line with the types of all rules, for schemas and for the reasons why a row is wrong."""
    rules = {line.names[0]: line.load() for line in registry.entries}
    union = reduce(or_, cast("Iterable[Any]", rules.values()))
    return _record(union, rules)


def _record(rule: Any, names: Iterable[str], **more: Any) -> type[GoldenRow]:
    """Return the record of a line whose entries of ``rules`` are of a type, with further attributes of the class."""
    about = Meta(description="Further rules of this query, each an object with its `type`.")
    rules = ("rules", Annotated[list[rule] | None, about], None)
    several = Meta(min_length=1, max_length=bounds.TURNS, title=f"a list of 1 to {bounds.TURNS:,} turns")
    turns = GenericAlias(list, (_turn_record(rules),))
    about = Meta(description="The turns of a conversation, each with its rules.")
    entries = {name: ("rules", f'write {{"type": "{name}", …}} into rules') for name in names}
    return cast(
        "type[GoldenRow]",
        msgspec.defstruct(
            GoldenRow.__name__,
            [rules, ("turns", Annotated[Annotated[turns, several] | None, about], None)],
            bases=(GoldenRow,),
            namespace={
                "__doc__": GoldenRow.__doc__,
                "other_names": REFERENCES,
                "entries": entries,
                "schema_extra": {"anyOf": [_has(name) for name in ENOUGH]},
                **more,
            },
            frozen=True,
            kw_only=True,
        ),
    )


def _has(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def _turn_record(rules: Any) -> type[Struct]:
    """Return the record of a turn: what the user says, and the fields of a row about the answer to it."""
    question = ("query", Annotated[Question, Meta(description="What the user says.")])
    fields = [(name, GoldenRow.__annotations__[name], None) for name in TURN_FIELDS]
    about = {"__doc__": "A turn of a conversation."}
    return msgspec.defstruct(
        "Turn", [question, rules, *fields], namespace=about, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


class AnswerFields(Struct, frozen=True, kw_only=True):
    """The rules made from the fields of a row and what it expects of the answer; ``mismatches`` if it is invalid."""

    rules: tuple[Rule, ...] = ()
    answer: ExpectedAnswer | None = None
    mismatches: tuple[Mismatch, ...] = ()


NO_FIELDS = AnswerFields()


def present(row: GoldenRow) -> list[str]:
    """Return the names of the row's fields about the answer, then their options; an empty list of rules is none."""
    names = (*ANSWER_FIELDS, *OPTIONS)
    return [name for name in names if getattr(row, name) is not None and (name != "rules" or row.rules)]
