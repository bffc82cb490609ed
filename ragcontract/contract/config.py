"""``ragcontract.yml``: the limits. Every message about it names a line."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from ragcontract.core.ids import MAX_RANK, Id, Rank
from ragcontract.files.opening import READ_ERRORS, not_readable, read_problem, read_whole
from ragcontract.files.problems import Diagnostics
from ragcontract.files.schema import Mismatch, dotted, mismatches
from ragcontract.files.yaml_tree import Document, load
from ragcontract.metrics.formulas import METRICS, Gain
from ragcontract.model import Rule, SourceFile

DEFAULT_K = 5
MAX_CUTOFFS = 10
MAX_BYTES = 1 << 20

Record = TypeVar("Record", bound=Struct)
Fraction = Annotated[float, Meta(ge=0, le=1, title="a fraction from 0 to 1, as 0.10")]
Percentage = Annotated[
    str, Meta(pattern=r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?) ?%$(?!\n)", title='a percentage of the baseline, as "10%"')
]
Drop = Fraction | Percentage
Milliseconds = Annotated[float, Meta(gt=0, le=MAX_RANK, title="a number of milliseconds above 0, at most a billion")]
Increase = (
    Annotated[float, Meta(ge=0, le=MAX_RANK, title="a number of milliseconds of at least 0, at most a billion")]
    | Annotated[
        str, Meta(pattern=r"^[0-9]{1,5}(\.[0-9]{1,9})? ?%$(?!\n)", title='a percentage of the baseline, as "20%"')
    ]
)
Field = tuple[str, Any, Any]
Text = Annotated[str, Meta(min_length=1)]
_NAMES = "|".join(metric.name for metric in METRICS)


class Drops(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a metric may fall below the baseline: absolute as 0.10, or of the baseline's value as "10%".

    ``recall_drop_gt`` is about the largest cut-off; ``recall_at_1_drop_gt`` about another one of ``k``.
    """

    mrr_drop_gt: Drop | None = None
    recall_drop_gt: Drop | None = None
    precision_drop_gt: Drop | None = None
    hitrate_drop_gt: Drop | None = None
    ndcg_drop_gt: Drop | None = None
    map_drop_gt: Drop | None = None

    schema_extra: ClassVar[dict[str, Any]] = {
        "patternProperties": {f"^({_NAMES})_at_[1-9][0-9]*_drop_gt$": {"$ref": "#/$defs/Drops/properties/mrr_drop_gt"}}
    }


class FailOn(Drops, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on drops, and whether one that noise explains counts."""

    mode: Annotated[
        Literal["strict", "significant"],
        Meta(description="Whether a drop over its limit fails always, or only where it is significant."),
    ] = "strict"
    alpha: Annotated[float, Meta(ge=0.001, lt=1, title="a number from 0.001 up to 1, as 0.05")] = 0.05


class Minimums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a metric must reach, whatever the baseline was.

    ``recall_at_k`` is about the largest cut-off; ``recall_at_1`` about another one of ``k``.
    """

    mrr_at_k: Fraction | None = None
    recall_at_k: Fraction | None = None
    precision_at_k: Fraction | None = None
    hitrate_at_k: Fraction | None = None
    ndcg_at_k: Fraction | None = None
    map_at_k: Fraction | None = None

    schema_extra: ClassVar[dict[str, Any]] = {
        "patternProperties": {f"^({_NAMES})_at_[1-9][0-9]*$": {"$ref": "#/$defs/Minimums/properties/mrr_at_k"}}
    }


class TagLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on the means over the queries with one tag."""

    fail_on: Drops = Drops()
    minimums: Minimums = Minimums()


class Waiver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known failure that is accepted until a date: of a gate, or of a query's or a tag's rules (or one of them)."""

    query: Id | None = None
    tag: Text | None = None
    rule: Rule | None = None
    gate: Annotated[Text | None, Meta(description="As fail_on.mrr_drop_gt or tags.policy.minimums.recall_at_k.")] = None
    reason: Text
    owner: Annotated[Text, Meta(description="Who answers for it.")]
    expires: Annotated[
        str,
        Meta(
            pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$(?!\n)",
            title="a date, as 2026-12-31",
            description="The last day (UTC) on which it counts.",
        ),
    ]


class LatencyLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long retrieving may take, in milliseconds, over the rows of the run that have ``latency_ms``."""

    p50_ms: Annotated[Milliseconds | None, Meta(description="The most that the median may be.")] = None
    p95_ms: Annotated[Milliseconds | None, Meta(description="The most that the 95th percentile may be.")] = None
    max_ms: Annotated[Milliseconds | None, Meta(description="The most that the slowest row may have taken.")] = None
    p95_increase_gt: Annotated[
        Increase | None, Meta(description="How far the 95th percentile may exceed the baseline's.")
    ] = None


class PerQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which of the golden queries' own rules count."""

    enforce_must_rank_at_most: bool = True
    enforce_must_include: bool = True
    enforce_forbidden_docs: bool = True
    forbidden_within: Annotated[
        Rank | None, Meta(description="Look for forbidden documents in the first results only; in all by default.")
    ] = None


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file; every key is optional."""

    k: Annotated[
        Rank
        | Annotated[
            list[Rank],
            Meta(min_length=1, max_length=MAX_CUTOFFS, title=f"a list of up to {MAX_CUTOFFS} of them, as [1, 5, 10]"),
        ],
        Meta(description="The cut-off: how many results count. Of several, rules and limits take the largest."),
    ] = DEFAULT_K
    gain: Annotated[
        Gain, Meta(description="What a grade is worth in nDCG: the grade, or 2^grade - 1 (grades of at most 64 then).")
    ] = "linear"
    fail_on: FailOn = FailOn()
    minimums: Minimums = Minimums()
    tags: Annotated[dict[Text, TagLimits], Meta(description="Limits for the queries with a tag, by the tag.")] = (
        msgspec.field(default_factory=dict)
    )
    latency: LatencyLimits = LatencyLimits()
    per_query: PerQuery = PerQuery()
    waivers: Annotated[list[Waiver], Meta(description="Known failures that are accepted until a date.")] = []
    max_baseline_age: Annotated[
        Rank | None, Meta(description="After how many days a baseline is said to be old; never by default.")
    ] = None
    rank_by: Annotated[
        Literal["results", "documents"],
        Meta(description="Count results as exported, or each document's first result only."),
    ] = "results"
    missing_queries: Annotated[
        Literal["error", "zero"],
        Meta(description="A golden query without a run row: refuse the run, or score it 0."),
    ] = "error"


class LoadedConfig(Struct, frozen=True, kw_only=True):
    """The configuration and where it came from. ``lines`` maps ``fail_on.mrr_drop_gt`` to its 1-based line."""

    config: Config = Config()
    files: list[SourceFile] = []
    lines: dict[str, int] = {}


def read_config(path: str, diagnostics: Diagnostics) -> LoadedConfig:
    """Read the configuration file; the defaults if it cannot be read, which the diagnostics then know."""
    if problem := not_readable(path):
        diagnostics.problem(path, problem)
        return LoadedConfig()
    try:
        data, source = read_whole(path, limit=MAX_BYTES)
    except READ_ERRORS as error:
        diagnostics.problem(path, read_problem(error))
        return LoadedConfig()
    if len(data) > MAX_BYTES:
        diagnostics.problem(path, "is larger than 1 MiB, which no configuration is")
        return LoadedConfig()
    document = load(data, texts={"query"})  # an id: 007 is not 7
    config = _typed(document, path, diagnostics)
    lines = {dotted(key): line for key, line in document.lines.items()}
    return LoadedConfig(config=config, files=[source], lines=lines) if config else LoadedConfig()


def _typed(document: Document, path: str, diagnostics: Diagnostics) -> Config | None:
    """Return the configuration, None if it is none; the diagnostics then know all that is wrong with it."""
    found = [(problem.line, Mismatch(problem.path, problem.message)) for problem in document.problems]
    config = None
    if document.value is not None:
        record = Config if _fits(document.value, Config) else _record_for(_cutoffs(document.value))
        try:
            config = msgspec.convert(document.value, record)
        except msgspec.ValidationError as error:
            told = [*map(_about_cutoffs, mismatches(document.value, record))] or [Mismatch((), str(error))]
            found += [(document.line(mismatch.path), mismatch) for mismatch in told]
    if config:
        found += [(document.line(mismatch.path), mismatch) for mismatch in _wrong_waivers(config.waivers)]
    for line, mismatch in sorted(found, key=lambda one: one[0]):
        diagnostics.mismatch(f"{path}:{line}", mismatch)
    return config


def _about_cutoffs(mismatch: Mismatch) -> Mismatch:
    """Say of a limit at a cut-off that is not scored what is wrong with it: the key is none because of ``k``."""
    group, key = map(str, ("", "", *mismatch.path)[-2:])
    match = re.fullmatch(rf"(?:{_NAMES})_at_([1-9][0-9]*)(_drop_gt)?", key)
    if match and mismatch.message.startswith("unknown key") and group == ("fail_on" if match[2] else "minimums"):
        return Mismatch(mismatch.path, f"{match[1]} is not in k; add it there, or name a cut-off that is")
    return mismatch


def _wrong_waivers(waivers: Sequence[Waiver]) -> Iterator[Mismatch]:
    for number, waiver in enumerate(waivers):
        targets = [name for name in ("query", "tag", "gate") if getattr(waiver, name) is not None]
        if len(targets) != 1:
            yield Mismatch(("waivers", number), "needs one of query, tag and gate, to say what it waives")
        elif waiver.gate is not None and waiver.rule is not None:
            yield Mismatch(("waivers", number, "rule"), "is of a query or a tag; a gate has no rules")
        try:
            date.fromisoformat(waiver.expires)
        except ValueError:
            yield Mismatch(("waivers", number, "expires"), f"expected a date that there is, found {waiver.expires!r}")


def _fits(value: object, record: type[Config]) -> bool:
    try:
        msgspec.convert(value, record)
    except msgspec.ValidationError:
        return False
    return True


def _cutoffs(value: object) -> list[int]:
    """Return the cut-offs of a file that may be wrong in any way."""
    k = value.get("k") if isinstance(value, dict) else None
    given = k if isinstance(k, list) else [k]
    return sorted({cutoff for cutoff in given if type(cutoff) is int and cutoff > 0})[:MAX_CUTOFFS] or [DEFAULT_K]


def _record_for(cutoffs: Sequence[int]) -> type[Config]:
    """Return the record of a file with these cut-offs: limits may name them, and no others."""
    at_k = [f"{metric.name}_at_{k}" for metric in METRICS for k in cutoffs]
    named = [(f"{name}_drop_gt", Drop | None, None) for name in at_k]
    drops, fail_on = _with(Drops, named), _with(FailOn, named)
    minimums = _with(Minimums, [(name, Fraction | None, None) for name in at_k])
    limits = _with(TagLimits, [("fail_on", drops, drops()), ("minimums", minimums, minimums())])
    tags: Field = ("tags", dict[Text, limits], msgspec.field(default_factory=dict))  # type: ignore[valid-type]
    return _with(Config, [("fail_on", fail_on, fail_on()), ("minimums", minimums, minimums()), tags])


def _with(record: type[Record], fields: list[Field]) -> type[Record]:
    made = msgspec.defstruct(
        record.__name__, fields, bases=(record,), frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    return cast("type[Record]", made)
