"""Reads what `label` asks and what `init --from-run` lists: the questions to label, with what runs returned."""

from collections.abc import Sequence

from msgspec.structs import replace

from ragcontract.cli.console import progress_over, warn
from ragcontract.contract import defaults
from ragcontract.contract.config import Config
from ragcontract.contract.golden_file import contract_warnings
from ragcontract.core.errors import InputError
from ragcontract.files.problems import Collector
from ragcontract.labelling.golden_rows import GoldenRows, read_golden_rows
from ragcontract.labelling.pool import read_pool
from ragcontract.labelling.sheet import Sheet, left_out, nothing_to_label, sheet_of


def read_sheet(
    golden_path: str | None, asked: Sequence[str], runs: Sequence[str], top: int, *, may_add: bool, config: Config
) -> tuple[GoldenRows, Sheet]:
    """Return the rows of the golden file, if one is named and exists, and the questions to label; prints the warnings.

    The ``config`` says which documents are relevant, and which fields are allowed. Unless rows ``may_add`` questions,
    those in the runs only count without a golden file. Raises :class:`InputError` with all problems, or if there is
    nothing to label.
    """
    golden, problems = GoldenRows(defaults.GOLDEN, b"", {}, config.relevance_level), Collector()
    if golden_path is not None:
        level, own = config.relevance_level, config.allow_fields
        golden, of_golden = read_golden_rows(golden_path, must_exist=False, level=level, allow_fields=own)
        problems.include(of_golden)
    with progress_over(runs) as progress:
        pool = read_pool(runs, top, problems, progress)
    found = problems.found()
    found.raise_if_any()
    sheet = sheet_of(golden, asked, replace(pool, questions={}) if golden.queries and not may_add else pool)
    if problem := nothing_to_label(sheet):
        raise InputError([f"{runs[0]}: {problem}"])
    to_label = set(contract_warnings(golden.queries.values()))
    warn([*(warning for warning in found.warnings if warning not in to_label), *left_out(sheet, golden.path)])
    return golden, sheet
