"""The records of the report about its inputs: golden set, run, baseline and configuration."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.finding import ContractChange
from ragcontract.core.run import SourceFile
from ragcontract.evaluation.observations import Depth
from ragcontract.runs.baseline_contract import Replaced, RunCount
from ragcontract.runs.baseline_file import Accepted

Count = Annotated[int, Meta(ge=0)]


class GoldenInput(Struct, frozen=True, kw_only=True):
    """The golden set. ``answerable`` counts the queries that have relevant documents."""

    files: list[SourceFile]
    queries: Count
    answerable: Count


class RunInput(Struct, frozen=True, kw_only=True):
    """The run: ``missing`` are golden queries without a row (scored 0), ``unknown`` rows without a golden query.

    At most 10,000 ``unknown`` ids are listed; ``queries`` counts all. ``depth`` is the number of results of its rows.

    ``duplicate_rate`` is the share of results in the exported top k that repeat a document of their row.
    """

    files: list[SourceFile]
    queries: Count
    versions: dict[str, list[str]]
    missing: list[str]
    unknown: list[str]
    duplicate_rate: float = 0.0
    depth: Depth | None = None


class ScoresInput(Struct, frozen=True, kw_only=True):
    """The scores files for the run; what computed the scores is ``scored_by`` among the run's versions."""

    files: list[SourceFile]


class JudgmentsInput(Struct, frozen=True, kw_only=True):
    """The judgments files, which say what a judge said of what the run retrieved, and the path of its calibration."""

    files: list[SourceFile]
    calibration: str | None = None


class BaselineInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline, and how its queries differ from the current golden set.

    ``shared`` counts the queries that both sides have. ``new`` and ``changed`` queries cannot be compared; ``gone``
    ones are only in the baseline. A baseline that is itself a run has no ``created_at`` and no ``k``. ``age_days`` is
    null if the date is unknown; ``too_old`` says whether the age exceeds ``max_baseline_age``. ``accepted`` is omitted
    if it is empty, ``replaces`` if the baseline replaced none. ``contract_changes`` is empty if nothing changed, and
    omitted if that is not known, because the baseline is a run or was made by an older rag-contract.
    """

    files: list[SourceFile]
    queries: Count
    runs: Annotated[RunCount, Meta(description="How many good runs it is the mean of; left out for one.")] = 1
    versions: dict[str, list[str]]
    created_at: str | None
    k: list[int] | None
    shared: Count
    new: list[str]
    changed: list[str]
    gone: list[str]
    age_days: int | None
    too_old: bool
    depth: Depth | None = None
    accepted: Annotated[
        list[Accepted], Meta(description="Broken contracts that became the baseline, the latest last.")
    ] = []
    replaces: Annotated[Replaced | None, Meta(description="The baseline that was replaced by this one.")] = None
    contract_changes: Annotated[
        list[ContractChange] | None,
        Meta(description="How the contract changed since the baseline was made, weaker first."),
    ] = None


class ConfigInput(Struct, frozen=True, kw_only=True):
    """The configuration file."""

    files: list[SourceFile]


class Inputs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The inputs of the check; ``scores`` and ``judgments`` are omitted without such files."""

    golden: GoldenInput
    run: RunInput
    baseline: BaselineInput | None
    config: ConfigInput | None
    scores: ScoresInput | None = None
    judgments: JudgmentsInput | None = None
