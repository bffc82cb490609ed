"""The inputs of a check: one record, which the command line, the action, pytest, Python and Spark make.

A way in puts what was named into it. Files that nobody named are searched for in one place, under the names of one
table, and the record is passed on as it is.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.defaults import (
    BASELINE,
    CALIBRATION,
    CONFIG,
    CONFIG_ALIAS,
    GOLDEN,
    JUDGMENTS,
    RUN,
    like_config,
)
from ragcontract.core.rule import Plugin
from ragcontract.evaluation.source import Local, Source
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Problems
from ragcontract.runs.readers import open_baseline, open_run

# The default names by input. A file under the first one is demanded of REQUIRED inputs; others are used if they exist.
DEFAULTS = {
    "golden": (GOLDEN,),
    "run": (RUN,),
    "baseline": (BASELINE,),
    "config": (CONFIG, CONFIG_ALIAS),
    "judgments": (JUDGMENTS,),
    "calibration": (CALIBRATION,),
}
REQUIRED = frozenset({"golden", "run"})
OF_JUDGE = ("judgments", "calibration")  # are used only if the contract needs what a judge said
SINGLE = frozenset({"config", "calibration"})  # one path, not several paths and globs
NAMES = tuple(name for names in DEFAULTS.values() for name in names)
Paths: TypeAlias = Sequence[str]


class Inputs(Struct, frozen=True, kw_only=True):
    """The inputs and options of a check. Nothing is read yet."""

    golden: Paths = ()
    run: Paths | Source = ()
    baseline: Paths | Source | None = None
    scores: Paths = ()  # scores files for the run
    judgments: Paths = ()  # judgments files
    calibration: str | None = None  # the file that says how well the judge agrees with people
    config: str | None = None
    other_configs: Paths = ()  # files that nobody named, but that may be meant as the configuration
    unnamed: frozenset[str] = frozenset()  # the inputs that nobody named, for which default names count
    k: int | None = None
    tags: Sequence[str] = ()  # if any: only golden queries with one of them and the limits of these tags are checked
    repeats: bool = False  # a run may have several rows per query
    decides: bool = True  # if false, the run is only measured, without rules or limits
    gates: bool = True  # if false, only the rules decide
    store: bool = False  # the run must be able to become a baseline, and its document ids are kept
    awaits_baseline: bool = False  # while there is no baseline, limits that need one are left out
    replays: bool = True  # if false, judgments are ignored, with the metrics, limits and second pass that need them
    plugins: Mapping[str, Plugin] = {}  # objects for the rule ``custom``, by class name
    no_answers: bool = False  # no output has a text of the application or of its documents
    progress: Progress = no_progress

    @classmethod
    def named(cls, **values: Any) -> "Inputs":
        """Return the inputs that a way in names; default names count for those that are None or empty."""
        unnamed = frozenset(name for name in DEFAULTS if name in values and values[name] in (None, (), []))
        return cls(**{name: value for name, value in values.items() if name not in unnamed}, unnamed=unnamed)

    @property
    def large(self) -> list[str]:
        """The paths of the inputs that can be large: all but the configuration and the calibration."""
        several = (self.golden, self.run, self.scores, self.baseline, self.judgments)
        return [path for paths in several if isinstance(paths, Sequence) for path in paths]

    @property
    def all(self) -> list[str]:
        """The paths and globs of all inputs."""
        return [*self.large, *(path for path in (self.config, self.calibration) if path)]

    def paths(self, name: str) -> list[str]:
        """Return the paths and globs of an input."""
        value = getattr(self, name)
        if isinstance(value, str):
            return [value]
        return list(value) if isinstance(value, Sequence) else []

    def sources(self) -> tuple[Source, Source | None]:
        """Return where run and baseline are read from, which is this machine unless they are sources already."""
        run, baseline = self.run, self.baseline
        if isinstance(run, Sequence):
            run = Local(open_run(run, self.progress))
        if isinstance(baseline, Sequence):
            baseline = Local(open_baseline(baseline, self.progress))
        return run, baseline


def find_inputs(named: Inputs, folder: str = "") -> Inputs:
    """Return inputs with default files for those that nobody named; paths are relative to ``folder``.

    Golden queries and run must exist; reading them reports it if they do not. Other default files are used if they
    exist. Files that may be meant as the configuration are searched for in the folder and beside the golden files.
    """
    home = Path(folder)

    def inside(paths: Paths) -> list[str]:
        return [path if "://" in path else str(home / path) for path in paths]  # Path would merge the slashes of a URL

    values: dict[str, Any] = {"scores": inside(named.scores)}
    unnamed = set()
    for name, files in DEFAULTS.items():
        paths = named.paths(name)
        if name in named.unnamed:
            # lexists: a broken link is still used, and reading it reports the problem
            existing = (file for file in files if name in REQUIRED or os.path.lexists(home / file))
            paths = [file for file in (next(existing, None),) if file]
            unnamed |= {name} if paths else set()
        values[name] = next((str(home / path) for path in paths), None) if name in SINGLE else inside(paths)
    found = replace(named, **values | {"baseline": values["baseline"] or None}, unnamed=frozenset(unnamed))
    if "config" not in named.unnamed:
        return found
    near = [*like_config(home), *_beside(found.golden, home)]
    others = [str(path) for path in near if found.config is None or not _is_same(path, Path(found.config))]
    return replace(found, other_configs=others)


def of_judge(inputs: Inputs, *, needed: bool) -> tuple[Inputs, Problems]:
    """Return the inputs without the judge's files if nobody named them and the contract does not need what it said.

    A warning names them once. A calibration is needed with judgments that somebody named.
    """
    unused = [name for name in OF_JUDGE if name in inputs.unnamed]
    if needed or not unused or (inputs.judgments and "judgments" not in inputs.unnamed):
        return inputs, Problems()
    files = " and ".join(path for name in unused for path in inputs.paths(name))
    options = " and ".join(f"--{name}" for name in unused)
    are, them, further = ("is", "it", "") if len(unused) == 1 else ("are", "them", "s")
    why = "no limit, metric or second pass of the contract needs what a judge said"
    how = f"to use {them} nevertheless, give {options} (in the action, the input{further} {' and '.join(unused)})"
    without = replace(
        inputs,
        judgments=() if "judgments" in unused else inputs.judgments,
        calibration=None if "calibration" in unused else inputs.calibration,
    )
    return without, Problems(warnings=(f"{files} {are} not used, because {why}; {how}",))


def _beside(golden: Sequence[str], home: Path) -> Iterator[Path]:
    """Yield the files that look like a configuration beside golden files in other folders."""
    files, _ = existing_files(golden)  # reading them reports what is wrong with them
    for folder in dict.fromkeys(Path(file).parent for file in files):
        if not _is_same(folder, home):
            yield from like_config(folder)


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, through links or where case makes no difference."""
    try:
        return path.samefile(other)
    except OSError:
        return path == other
