"""The records of the report about its inputs: golden set, run, baseline and configuration."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import encodable
from ragcontract.evaluation.observations import Depth
from ragcontract.runs.baseline_contract import ContractChange, Replaced, RunCount
from ragcontract.runs.baseline_file import Accepted

Count = Annotated[int, Meta(ge=0)]


class GoldenInput(Struct, frozen=True, kw_only=True):
    """The golden set."""

    files: list[SourceFile]
    queries: Count
    answerable: Annotated[Count, Meta(description="How many queries have relevant documents.")]


class RunInput(Struct, frozen=True, kw_only=True):
    """The run."""

    files: list[SourceFile]
    queries: Count
    versions: dict[str, list[str]]
    missing: Annotated[list[str], Meta(description="Golden queries without a row, which score 0.")]
    unknown: Annotated[
        list[str], Meta(description="Ids of rows without a golden query, at most 10,000; queries counts all.")
    ]
    duplicate_rate: Annotated[
        float, Meta(description="The share of results in the exported top k that repeat a document of their row.")
    ] = 0.0
    depth: Annotated[Depth | None, Meta(description="How many results its rows have.")] = None


class ScoresInput(Struct, frozen=True, kw_only=True):
    """The scores files for the run; what computed the scores is ``scored_by`` among the run's versions."""

    files: list[SourceFile]


class JudgmentsInput(Struct, frozen=True, kw_only=True):
    """The judgments files for the run."""

    files: list[SourceFile]
    calibration: Annotated[str | None, Meta(description="The path of the judge's calibration.")] = None


class BaselineInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline, and how its queries differ from the current golden set.

    A baseline that is itself a run has no ``created_at`` and no ``k``.
    """

    files: list[SourceFile]
    queries: Count
    runs: Annotated[RunCount, Meta(description="How many good runs it is the mean of; left out for one.")] = 1
    versions: dict[str, list[str]]
    created_at: str | None
    k: list[int] | None
    shared: Annotated[Count, Meta(description="How many queries both sides have.")]
    new: Annotated[list[str], Meta(description="Queries that the baseline does not have.")]
    changed: Annotated[list[str], Meta(description="Queries with another question, which cannot be compared.")]
    gone: Annotated[list[str], Meta(description="Queries that only the baseline has.")]
    age_days: Annotated[int | None, Meta(description="Null if the date is unknown.")]
    too_old: Annotated[bool, Meta(description="The age exceeds max_baseline_age.")]
    depth: Depth | None = None
    accepted: Annotated[
        list[Accepted], Meta(description="Broken contracts that became the baseline, the latest last.")
    ] = []
    replaces: Annotated[Replaced | None, Meta(description="The baseline that was replaced by this one.")] = None
    contract_changes: Annotated[
        list[ContractChange] | None,
        Meta(
            description="How the contract changed since the baseline was made, weaker first. Empty if nothing changed; "
            "omitted if that is not known, because the baseline is a run or was made by an older rag-contract."
        ),
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


def shown_files(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return files with paths that can be written into a report, whatever bytes are in their names."""
    return [SourceFile(path=encodable(file.path), sha256=file.sha256) for file in files]
