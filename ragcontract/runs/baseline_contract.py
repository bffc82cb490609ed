"""The contract as a baseline stores it, without texts, and the changes of a contract since then."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.golden import RELEVANT_GRADE, ExpectedAnswer, GoldenQuery, Severity, graded_from
from ragcontract.core.ids import Rank
from ragcontract.core.run import Means

# The fields of a golden row that metrics compare an answer with. With another value, they measure something else.
REFERENCES = (
    "reference",
    "reference_claims",
    "reference_contexts",
    "reference_tool_calls",
    "expected_mode",
    "expected_label",
    "criteria",
)
RunCount: TypeAlias = Annotated[int, Meta(ge=1, le=bounds.GOOD_RUNS)]
DIGEST = 32  # hexadecimal digits: 128 bits, so that nobody finds two contracts with the same digest


Effect = Literal["weaker", "changed", "stricter"]
Value: TypeAlias = bool | int | float | str | None


class _Change(NamedTuple):
    """A kind of change: its effect on the contract, and its words in reports."""

    effect: Effect  # a weaker contract accepts runs that it did not accept before
    noun: str  # of what is counted
    sentence: str = ""  # with a place for the number; without one, each item is shown with its values
    unit: str = ""  # of the values of its items


# The ways in which a contract changes, in the order of reports.
CHANGES: dict[str, _Change] = {
    "queries_removed": _Change("weaker", "query", "{} removed"),
    "questions_changed": _Change("weaker", "question", "{} changed"),
    "references_removed": _Change("weaker", "query", "reference removed from {}"),
    "references_changed": _Change("weaker", "query", "reference changed for {}"),
    "rules_removed": _Change("weaker", "rule", "{} removed"),
    "relabelled_with_fewer": _Change("weaker", "query", "{} relabelled with fewer relevant documents", " documents"),
    "judged_fewer": _Change("weaker", "query", "fewer judged documents for {}", " documents"),
    "must_include_any_added": _Change("weaker", "query", "must_include_any added to {}"),
    "rank_raised": _Change("weaker", "query", "must_rank_at_most raised for {}"),
    "forbidden_fewer": _Change("weaker", "query", "fewer forbidden documents for {}", " documents"),
    "severity_lowered": _Change("weaker", "query", "severity lowered to warn for {}"),
    "as_evaluated_added": _Change("weaker", "query", "as_evaluated added to {}"),
    "limits_removed": _Change("weaker", "limit", "{} removed"),
    "limits_weakened": _Change("weaker", "limit"),
    "settings_weakened": _Change("weaker", "setting"),
    "waivers_added": _Change("weaker", "waiver", "{} added"),
    "waivers_extended": _Change("weaker", "waiver", "{} extended"),
    "relabelled": _Change("changed", "query", "{} relabelled", " documents"),
    "judged_changed": _Change("changed", "query", "other judged documents for {}", " documents"),
    "rules_changed": _Change("changed", "rule", "{} changed"),
    "forbidden_changed": _Change("changed", "query", "other forbidden documents for {}", " documents"),
    "weights_changed": _Change("changed", "query", "weight changed for {}"),
    "tags_changed": _Change("changed", "query", "tags changed for {}"),
    "tiers_changed": _Change("changed", "query", "tier changed for {}"),
    "grades_changed": _Change("changed", "query", "grades changed for {}"),
    "limits_changed": _Change("changed", "limit"),
    "settings_changed": _Change("changed", "setting"),
    "rules_added": _Change("stricter", "rule", "{} added"),
    "references_added": _Change("stricter", "query", "reference added to {}"),
    "must_include_any_removed": _Change("stricter", "query", "must_include_any removed from {}"),
    "rank_lowered": _Change("stricter", "query", "must_rank_at_most lowered for {}"),
    "forbidden_more": _Change("stricter", "query", "more forbidden documents for {}", " documents"),
    "severity_raised": _Change("stricter", "query", "severity raised to error for {}"),
    "as_evaluated_removed": _Change("stricter", "query", "as_evaluated removed from {}"),
    "limits_added": _Change("stricter", "limit", "{} added"),
    "limits_tightened": _Change("stricter", "limit"),
    "settings_tightened": _Change("stricter", "setting"),
    "waivers_removed": _Change("stricter", "waiver", "{} removed"),
    "waivers_shortened": _Change("stricter", "waiver", "{} shortened"),
}
if TYPE_CHECKING:
    ChangeKind: TypeAlias = str
else:
    ChangeKind = Literal[tuple(CHANGES)]


class ChangedItem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A query, a limit, a setting or a waiver that changed; null stands for a value that it does not have.

    The values of a query are what changed: a rank, a weight, or how many documents are relevant, judged or forbidden.
    """

    id: str
    before: Value = None
    after: Value = None


class ContractChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way in which the contract changed; ``weaker`` means that it accepts runs that it did not accept before.

    ``count`` is the number of rules for ``rules_…``, otherwise of ``items``. Queries that were removed are only
    counted, because the report lists them among those that are not compared.
    """

    kind: ChangeKind
    effect: Effect
    count: Annotated[int, Meta(ge=1)]
    items: tuple[ChangedItem, ...] = ()


class Documents(Struct, frozen=True, gc=False, array_like=True):
    """How many documents a query names, and a digest of their ids in any order."""

    count: Annotated[int, Meta(ge=1)]
    digest: str


class Expected(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The expectations of a golden query, without those that have their default."""

    relevant: Documents | None = None
    # Without the labels of these documents, `unjudged: skip` would leave them out of the metrics.
    judged: Annotated[Documents | None, Meta(description="All documents with a grade, if one of them has grade 0.")] = (
        None
    )
    forbidden: Documents | None = None
    must_rank_at_most: Rank | None = None
    must_include_any: bool | None = None
    grades: Annotated[str, Meta(description="A digest; left out if all relevant documents, and no others, have 1.")] = (
        ""
    )
    weight: float | None = None
    tags: Annotated[str, Meta(description="A digest.")] = ""
    tier: Annotated[str, Meta(description="A digest.")] = ""
    severity: Severity = "error"
    rules: Annotated[tuple[str, ...], Meta(description="The type and a digest of each rule.")] = ()
    references: Annotated[
        dict[str, str], Meta(description="A digest of each field that metrics compare the answer with.")
    ] = {}
    as_evaluated: str = ""
    turns: Annotated[
        str, Meta(description="A digest of what the user says in a conversation; older baselines have none.")
    ] = ""


class PastWaiver(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A waiver: the query, limit or rule that it was for, and its last day."""

    query: str | None = None
    tag: str | None = None
    gate: str | None = None
    rule: str | None = None
    expires: str


class PastContract(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The configuration at that time: limits by gate (``"10%"`` of the baseline), settings but defaults, waivers."""

    limits: dict[str, float | str] = {}
    settings: dict[str, Value] = {}
    waivers: list[PastWaiver] = []

    @property
    def relevance_level(self) -> Value:
        """The grade from which documents were relevant."""
        return self.settings.get("relevance_level", RELEVANT_GRADE)

    @property
    def includes_any(self) -> bool:
        """Whether one relevant document in the top k was enough for queries that do not say."""
        return self.settings.get("per_query.must_include") == "any"


class Replaced(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline that this one replaced, and what changed from it to this one.

    Both were scored with the golden files and the configuration at that time.
    """

    sha256: Annotated[str, Meta(description="Digest of its file.")]
    created_at: Annotated[str, Meta(description="When it was made.")]
    shared: Annotated[int, Meta(ge=0, description="How many queries both have.")]
    metrics: Annotated[Means, Meta(description="Its means over these queries.")]
    metrics_shared: Annotated[Means, Meta(description="The means of this baseline over these queries.")]
    accepted: Annotated[
        bool, Meta(description="Whether this needed a reason, which is the last one that the baseline has.")
    ] = False
    runs: Annotated[RunCount, Meta(description="How many good runs it was the mean of.")] = 1
    contract_changes: Annotated[
        list[ContractChange] | None,
        Meta(
            description="At most 100 items of each kind; left out if the older baseline did not remember its contract."
        ),
    ] = None


def expected_of(query: GoldenQuery) -> Expected:
    """Return the expectations of a golden query as a baseline remembers them."""
    return Expected(
        relevant=_documents(query.relevant_doc_ids),
        judged=_judged(query.relevance or {}),
        forbidden=_documents(query.forbidden_doc_ids) if query.forbidden_doc_ids else None,
        must_rank_at_most=query.must_rank_at_most,
        must_include_any=query.must_include_any,
        grades=_grades(query),
        weight=None if query.weight == 1 else query.weight,
        tags=_tags(query.tags) if query.tags else "",
        tier=_text(query.answer.tier) if query.answer else "",
        severity=query.severity,
        rules=_rules(query.rules) if query.rules else (),
        references=_references(query.answer) if query.answer else {},
        as_evaluated=(query.answer.as_evaluated or "") if query.answer else "",
        turns=digest(query.answer.turns) if query.answer and query.answer.turns else "",
    )


def graded_at(query: GoldenQuery, level: Value) -> GoldenQuery:
    """Return a query with the documents that are relevant at a level: a change of it is reported once, as a setting."""
    if query.relevance is None or not isinstance(level, int | float):
        return query
    return replace(query, relevant_doc_ids=graded_from(level, query.relevance))


def has_other_turns(before: Expected, now: Expected) -> bool:
    """Return whether the user's turns were different; False if the baseline does not remember them."""
    return before.turns not in {"", now.turns}


def _grades(query: GoldenQuery) -> str:
    """Return a digest of the grades; empty if all relevant documents, and no others, have grade 1."""
    grades = {doc_id: grade for doc_id, grade in (query.relevance or {}).items() if grade}
    return digest(grades) if grades and grades != dict.fromkeys(query.relevant_doc_ids, 1) else ""


def digest(value: Any) -> str:
    """Return a short digest of a value; the order of keys has no effect."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:DIGEST]


def question_digest(question: str) -> str:
    """Return what stands for a question where its text is private."""
    return f"sha256:{hashlib.sha256(question.encode(errors='surrogatepass')).hexdigest()}"


def digest_with(first: Any) -> Callable[[Any], str]:
    """Return a function that returns ``digest([first, value])`` of a value; ``first`` is encoded only once."""
    start = hashlib.sha256(b"[" + msgspec.json.encode(first, order="sorted") + b",")

    def of(value: Any) -> str:
        both = start.copy()
        both.update(msgspec.json.encode(value, order="sorted") + b"]")
        return both.hexdigest()[:DIGEST]

    return of


@lru_cache(maxsize=1024)  # many queries have the same tags
def _tags(tags: tuple[str, ...]) -> str:
    return digest(sorted(tags))


@lru_cache(maxsize=1024)
def _text(value: str | None) -> str:
    return "" if value is None else digest(value)


def _documents(doc_ids: tuple[str, ...]) -> Documents | None:
    return Documents(len(doc_ids), digest(sorted(doc_ids))) if doc_ids else None


def _judged(relevance: Mapping[str, float]) -> Documents | None:
    return _documents(tuple(relevance)) if 0 in relevance.values() else None


def _references(answer: ExpectedAnswer) -> dict[str, str]:
    fields = {name: getattr(answer, name) for name in REFERENCES}
    return {name: digest(value) for name, value in fields.items() if value is not None}


def _rules(rules: Iterable[Struct]) -> tuple[str, ...]:
    return tuple(sorted(f"{rule.__struct_config__.tag} {digest(rule)}" for rule in rules))
