"""The Python API: what the command line does, for test suites and exporters."""

import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.errors import InputError
from ragcontract.core.ids import MAX_RANK
from ragcontract.files.opening import resolve
from ragcontract.files.problems import Diagnostics
from ragcontract.model import GoldenQuery, Report
from ragcontract.runs.memory import AtHand, RunInMemory
from ragcontract.runs.run_file import RunRows

Path = str | os.PathLike[str]


def load_golden(*paths: Path) -> dict[str, GoldenQuery]:
    """Read golden files (or globs) as one set: the queries by id, in the files' order.

    Raises :class:`~ragcontract.InputError` with everything that is wrong; what is odd is warned about.
    """
    diagnostics = Diagnostics()
    queries = read_golden(resolve(named(paths, "golden"), diagnostics), diagnostics).queries
    _tell(diagnostics)
    return queries


def load_run(*paths: Path) -> dict[str, list[str]]:
    """Read run files (or globs) as one run: the ids of the documents of each query, best first.

    Raises :class:`~ragcontract.InputError` with everything that is wrong; what is odd is warned about.
    """
    diagnostics = Diagnostics()
    rows = dict(RunRows(resolve(named(paths, "run"), diagnostics), diagnostics))
    _tell(diagnostics)
    return rows


def check(
    *,
    golden: Path | Sequence[Path],
    run: Path | Sequence[Path] | AtHand,
    baseline: Path | Sequence[Path] | None = None,
    config: Path | None = None,
    k: int | None = None,
    repeats: bool = False,
) -> Report:
    """Judge a run against its contract, as ``rag-contract check`` does, and return the report.

    ``report.verdict`` is "pass" or "fail", ``report.failed_checks`` says why, ``report.warnings`` what is odd. Only the
    files that are named are read: a ``baseline.json`` that lies about is none. The run may also be at hand: a mapping
    of query ids to what ``RunWriter.write`` takes. With ``repeats`` files may have several rows a query, which are
    averaged. Raises :class:`~ragcontract.InputError` if it cannot be judged.
    """
    k = valid_k(k)
    rows, files = (RunInMemory(run), ()) if isinstance(run, Mapping) else (None, named(run, "run"))
    paths = pipeline.Paths(
        golden=named(golden, "golden"),
        run=files,
        baseline=None if baseline is None else named(baseline, "baseline"),
        config=None if config is None else os.fspath(config),
        repeats=repeats,
    )
    report = pipeline.check(paths, clock=lambda: datetime.now(UTC), k=k, run=rows)
    return replace(report, warnings=[*(rows.warnings if rows else ()), *report.warnings])


def valid_k(k: int | None) -> int | None:
    """Return a cut-off; raises :class:`InputError` if it is none."""
    if k is not None and (type(k) is not int or not 1 <= k <= MAX_RANK):
        raise InputError([f"k: expected a whole number of at least 1, found {k!r}"])
    return k


def named(paths: Path | Sequence[Path], what: str) -> list[str]:
    """Return the paths that are given as text; raises :class:`InputError` if there are none."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not given:
        raise InputError([f"{what}: names no file"])
    return [os.fspath(path) for path in given]


def _tell(diagnostics: Diagnostics) -> None:
    diagnostics.raise_problems()
    for warning in diagnostics.warnings:
        warnings.warn(warning, stacklevel=3)
