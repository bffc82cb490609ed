"""The records of ``ragcontract.yml``, and the line of each of its keys.

The sections with limits are generated from the registry. Only :func:`~ragcontract.contract.limits.gates_of` reads the
generated fields.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta, Struct

from ragcontract.contract.declared import Metrics, metrics_record
from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings, JudgeSettings
from ragcontract.core.gate import FailMode, Fraction, LimitKey
from ragcontract.core.golden import RELEVANT_GRADE
from ragcontract.core.ids import Id, Rank, Tag
from ragcontract.core.metric import Gain, RankBy, Unjudged
from ragcontract.core.phrase import Location, Place
from ragcontract.core.rule import Rule, switch_of
from ragcontract.core.safe_text import encodable
from ragcontract.registry import Registry


class Locations(Struct, frozen=True, kw_only=True):
    """Where the keys of a configuration are."""

    path: str = ""  # of the file
    lines: dict[tuple[str | int, ...], int] = {}  # by the path of the key in the document

    def of(self, *keys: str | int) -> Place:
        """Return the file and line of a key, as ``ragcontract.yml:4`` for "fail_on", "alpha"; empty if unknown."""
        line = self.lines.get(keys)
        return Location(encodable(self.path), line) if line else ""


DEFAULT_K = 5

Text = Annotated[str, Meta(min_length=1)]
GateId = Annotated[
    Annotated[str, Meta(min_length=1, max_length=bounds.KEY, title=f"text of 1 to {bounds.KEY} characters")] | None,
    Meta(description="The gate's id: fail_on.mrr_drop_gt, tags.policy.minimums.recall_at_k."),
]


Day = Annotated[
    str, Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$(?!\n)", title="a date, as 2026-12-31")
]
Switch = Annotated[bool | Literal["new"], Meta(title="true, false or new")]


class FailOn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on how far metrics may get worse, and how sure that has to be."""

    mode: Annotated[
        FailMode,
        Meta(
            description="Whether every change over its limit fails, only a significant one, or every change that may "
            "be over it."
        ),
    ] = "strict"
    alpha: Annotated[float, Meta(ge=bounds.ALPHA_LEAST, lt=1, title="a number from 0.001 up to 1, as 0.05")] = 0.05


class HistoryLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on how far metrics may be below the best level that recorded runs had, which needs a history.

    A level is the mean of 5 runs in a row. These limits notice a loss that no single change made.
    """

    window: Annotated[
        int,
        Meta(
            ge=bounds.WINDOW_LEAST,
            le=bounds.WINDOW,
            title=f"a whole number from {bounds.WINDOW_LEAST} to {bounds.WINDOW}",
            description="How many recorded runs of the branch count.",
        ),
    ] = 30
    since: Annotated[
        Day | None,
        Meta(description="The first day (UTC) whose runs count: with a later day, a loss is accepted."),
    ] = None


class TagLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on the means over the queries with one tag."""


class Waiver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known failure that is accepted until a date: of a gate, or of one or all rules of a query or a tag."""

    query: Id | None = None
    tag: Tag | None = None
    rule: str | None = None
    gate: GateId = None
    reason: Text
    owner: Annotated[Text, Meta(description="Who is responsible for it.")]
    expires: Annotated[
        Day,
        Meta(description="The last day (UTC) on which it counts."),
    ]


class Tier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of golden queries, those with this ``tier``, and the share of them whose rules must hold."""

    name: Annotated[Tag, Meta(description="The tier of golden rows.")]
    minimum: Annotated[Fraction, Meta(description="The pass rate that the tier must reach.")]
    gates: Annotated[list[Tag], Meta(description="The tiers that are skipped where this one misses its minimum.")] = []


class PerQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rules of the golden queries are enforced.

    ``enforce_…`` turns a rule on or off; with ``new``, only what the baseline does not break already fails the check.
    """

    fail_on: Annotated[
        Literal["any", "new", "pass_rate"],
        Meta(
            description="Whether every broken rule fails, only one that the baseline does not break already, or only "
            "a limit on the pass rate, for the queries that one covers."
        ),
    ] = "any"

    must_include: Annotated[
        Literal["all", "any"],
        Meta(
            description="Whether all relevant documents must be in the top k, or any of them; `must_include_any` of a "
            "golden query wins."
        ),
    ] = "all"
    forbidden_within: Annotated[
        Rank | None, Meta(description="How many results are searched for forbidden documents; all by default.")
    ] = None
    different_documents: Annotated[
        list[Id],
        Meta(description="Ids of documents that are not forbidden, although they look like a forbidden one."),
    ] = []

    @property
    def includes_any(self) -> bool:
        """Whether one relevant document is enough for queries that do not say."""
        return self.must_include == "any"


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file; every key is optional."""

    k: Annotated[
        Rank
        | Annotated[
            list[Rank],
            Meta(
                min_length=1,
                max_length=bounds.CUTOFFS,
                title=f"a list of up to {bounds.CUTOFFS} of them, as [1, 5, 10]",
            ),
        ],
        Meta(description="The cut-off: how many results count. Of several, rules and limits use the largest."),
    ] = DEFAULT_K
    gain: Annotated[
        Gain, Meta(description="What a grade is worth in nDCG: the grade, or 2^grade - 1 (grades of at most 64 then).")
    ] = "linear"
    relevance_level: Annotated[
        float,
        Meta(
            gt=0,
            le=bounds.GRADE,
            title="a number over 0, at most a billion",
            description="The grade from which a document in relevance is relevant; nDCG uses the grades themselves.",
        ),
    ] = RELEVANT_GRADE
    unjudged: Annotated[
        Unjudged,
        Meta(
            description="What documents that nobody has judged are for ranking metrics: not relevant (count), or left "
            "out of the list (skip)."
        ),
    ] = "count"
    fail_on: FailOn = FailOn()
    history: HistoryLimits = HistoryLimits()
    tags: dict[Tag, TagLimits] = msgspec.field(default_factory=dict)
    per_query: PerQuery = PerQuery()
    tiers: Annotated[
        list[Tier], Meta(max_length=bounds.TIERS, description="Pass rates of groups of queries that gate each other.")
    ] = []
    waivers: list[Waiver] = []
    max_baseline_age: Annotated[
        Rank | None, Meta(description="The age in days beyond which a baseline is reported as old; none by default.")
    ] = None
    rank_by: Annotated[RankBy, Meta(description="Count results as exported, or each document's first result only.")] = (
        "results"
    )
    missing_queries: Annotated[
        Literal["error", "zero"],
        Meta(description="A golden query without a run row: refuse the run, or score it 0."),
    ] = "error"
    missing_scores: Annotated[
        Literal["error", "zero"],
        Meta(description="A query without a declared score: refuse the run, or count the score's worst value."),
    ] = "error"
    allow_fields: Annotated[
        list[Text],
        Meta(description="Fields of your own in golden rows: they are not read, and cause no warning."),
    ] = []
    metrics: Metrics = Metrics()

    answers: AnswerSettings = AnswerSettings()

    judge: JudgeSettings = JudgeSettings()

    schema_extra: ClassVar[dict[str, Any]] = {}

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The cut-offs, largest first."""
        return tuple(sorted({self.k} if isinstance(self.k, int) else set(self.k), reverse=True))


SECTIONS = {
    "minimums": ("Minimums", "What a metric must reach, whatever the baseline was."),
    "maximums": ("Maximums", "What a metric must not exceed, whatever the baseline was."),
    "latency": (
        "LatencyLimits",
        "How long retrieval may take, in milliseconds, over the rows of the run that have ``latency_ms``.",
    ),
}
ALWAYS = {"minimums", "maximums"}  # sections that exist without keys, too, because declared scores may be limited there
DROPS = (
    "Drops",
    'How far a metric may get worse than in the baseline: absolute as 0.10, or of the baseline\'s value as "10%".',
)
LEVEL_DROPS = ("LevelDrops", 'How far a metric may be below its best level: absolute as 0.03, or of the level as "5%".')
CUTOFFS = "``recall{0}`` is about the largest cut-off; ``recall_at_1{1}`` about another one of ``k``."


def config_record(registry: Registry, keys: Sequence[LimitKey], declared: Iterable[str] = ()) -> type[Config]:
    """Return the record of a configuration file with these limit keys and ``declared`` scores."""
    changes = _section(*DROPS, [key for key in keys if key.section == "fail_on"])
    of_levels = _section(*LEVEL_DROPS, [key for key in keys if key.section == "history"])
    sections = {
        name: _section(title, about, [key for key in keys if key.section == name])
        for name, (title, about) in SECTIONS.items()
        if name in ALWAYS or any(key.section == name for key in keys)
    }
    tagged = {}
    for name, made in sections.items():
        title, about = SECTIONS[name]
        of_section = [key for key in keys if key.section == name]
        of_tag = [key for key in of_section if key.by_tag]
        if of_tag or name in ALWAYS:  # two records of one schema need two names
            tagged[name] = made if of_tag == of_section else _section(f"Tag{title}", about, of_tag)
    of_tags = _section(*DROPS, [key for key in keys if key.section == "fail_on" and key.by_tag])
    tag_limits = _extended(TagLimits, {"fail_on": (of_tags, of_tags()), **_fields(tagged)})
    fail_on, history = [
        msgspec.defstruct(
            record.__name__,
            [(own.name, record.__annotations__[own.name], own.default) for own in msgspec.structs.fields(record)],
            bases=(limits,),
            namespace={"__doc__": record.__doc__},
            **_STRICT,
        )
        for record, limits in ((FailOn, changes), (HistoryLimits, of_levels))
    ]
    names = [name for line in registry.rules for name in line.names]
    waiver = _extended(Waiver, {"rule": (Literal[tuple(names)] | None, None)})
    switches = dict.fromkeys(f"enforce_{line.names[0]}" for line in registry.rules)
    per_query = _extended(PerQuery, dict.fromkeys(switches, (Switch, True)))
    about_tags = Meta(description="Limits for the queries with a tag, by the tag.")
    about_waivers = Meta(description="Failures that are accepted until a date.")
    metrics = metrics_record(registry, declared)
    made = _extended(
        Config,
        {
            "metrics": (metrics, metrics()),
            "fail_on": (fail_on, fail_on()),
            "history": (history, history()),
            **_fields(sections),
            "tags": (Annotated[dict[Tag, tag_limits], about_tags], msgspec.field(default_factory=dict)),  # type: ignore[valid-type]
            "per_query": (per_query, per_query()),
            "waivers": (Annotated[list[waiver], about_waivers], []),  # type: ignore[valid-type]
        },
    )
    return cast("type[Config]", made)


_STRICT: dict[str, Any] = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}


def _section(name: str, about: str, keys: Iterable[LimitKey]) -> type[Struct]:
    listed = list(keys)
    if any(key.quantity.unit == "points" for key in listed):
        ends = ("_drop_gt", "_drop_gt") if name in {DROPS[0], LEVEL_DROPS[0]} else ("_at_k", "")
        about = f"{about}\n\n    {CUTOFFS.format(*ends)}\n    "
    fields = [(key.name, key.type, None) for key in listed]
    return msgspec.defstruct(name, fields, namespace={"__doc__": about}, **_STRICT)


def _fields(sections: dict[str, type[Struct]]) -> dict[str, tuple[Any, Any]]:
    return {name: (made, made()) for name, made in sections.items()}


def _extended(record: type[Struct], fields: dict[str, tuple[Any, Any]]) -> type[Struct]:
    listed = [(name, kind, default) for name, (kind, default) in fields.items()]
    return msgspec.defstruct(record.__name__, listed, bases=(record,), namespace={"__doc__": record.__doc__}, **_STRICT)


def enforced(config: Config, rule: type[Rule]) -> bool:
    """Return whether a rule is enforced: all are unless ``per_query`` turns them off."""
    return getattr(config.per_query, f"enforce_{switch_of(rule)}", True) is not False


def only_new(config: Config, rule: type[Rule]) -> bool:
    """Return whether violations of a rule count only if the baseline does not have them already."""
    return config.per_query.fail_on == "new" or getattr(config.per_query, f"enforce_{switch_of(rule)}", True) == "new"
