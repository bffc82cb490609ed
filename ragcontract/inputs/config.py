"""``ragcontract.yml``: the limits. Every message about it names a line."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import READ_ERRORS, not_readable, read_problem, read_whole
from ragcontract.inputs.ids import Rank
from ragcontract.inputs.schema import Misfit, dotted, misfits
from ragcontract.inputs.yaml_tree import Document, load
from ragcontract.model import SourceFile

DEFAULT_K = 5
MAX_BYTES = 1 << 20

Fraction = Annotated[float, Meta(ge=0, le=1, title="a fraction from 0 to 1, as 0.10")]
Percentage = Annotated[
    str, Meta(pattern=r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?) ?%$(?!\n)", title='a percentage of the baseline, as "10%"')
]
Drop = Fraction | Percentage


class FailOn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a metric may fall below the baseline: absolute as 0.10, or of the baseline's value as "10%"."""

    mrr_drop_gt: Drop | None = None
    recall_drop_gt: Drop | None = None
    precision_drop_gt: Drop | None = None
    hitrate_drop_gt: Drop | None = None


class Minimums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a metric must reach, whatever the baseline was."""

    mrr_at_k: Fraction | None = None
    recall_at_k: Fraction | None = None
    precision_at_k: Fraction | None = None
    hitrate_at_k: Fraction | None = None


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

    k: Annotated[Rank, Meta(description="The cut-off: how many results count.")] = DEFAULT_K
    fail_on: FailOn = FailOn()
    minimums: Minimums = Minimums()
    per_query: PerQuery = PerQuery()
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
    document = load(data)
    config = _typed(document, path, diagnostics)
    lines = {dotted(key): line for key, line in document.lines.items()}
    return LoadedConfig(config=config, files=[source], lines=lines) if config else LoadedConfig()


def _typed(document: Document, path: str, diagnostics: Diagnostics) -> Config | None:
    """Return the configuration, None if it is none; the diagnostics then know all that is wrong with it."""
    found = [(problem.line, Misfit(problem.path, problem.message)) for problem in document.problems]
    config = None
    if document.value is not None:
        try:
            config = msgspec.convert(document.value, Config)
        except msgspec.ValidationError as error:
            told = misfits(document.value, Config) or [Misfit((), str(error))]
            found += [(document.line(misfit.path), misfit) for misfit in told]
    for line, misfit in sorted(found, key=lambda one: one[0]):
        diagnostics.misfit(f"{path}:{line}", misfit)
    return config
