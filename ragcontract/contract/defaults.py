"""Where the files of a contract are if nobody says so: the names of the README, in one folder."""

import os
from collections.abc import Sequence
from pathlib import Path

from ragcontract.pipeline import Paths

GOLDEN = "golden.jsonl"
RUN = "current_run.jsonl"
BASELINE = "baseline.json"
CONFIG = "ragcontract.yml"
CONFIG_ALIAS = "ragcontract.yaml"
REPORT_MD = "report.md"
REPORT_JSON = "report.json"
JUNIT = "junit.xml"


def find_inputs(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    baseline: Sequence[str] = (),
    config: str | None = None,
    folder: str = "",
    repeats: bool = False,
) -> Paths:
    """Fill in what is not given; paths are relative to ``folder``.

    A path that is given must be there (reading will say so if not), and so must the golden queries and the run; a
    baseline or a configuration that is not given and not there is none.
    """
    home = Path(folder)

    def inside(paths: Sequence[str]) -> list[str]:
        return [path if "://" in path else str(home / path) for path in paths]  # an address has two slashes for good

    # lexists: a link that leads nowhere was meant, and reading it will say what is wrong
    if not baseline and os.path.lexists(home / BASELINE):
        baseline = [BASELINE]
    if config is None:
        config = next((name for name in (CONFIG, CONFIG_ALIAS) if os.path.lexists(home / name)), None)
    return Paths(
        golden=inside(golden or [GOLDEN]),
        run=inside(run or [RUN]),
        baseline=inside(baseline) if baseline else None,
        config=str(home / config) if config else None,
        repeats=repeats,
    )


def named(paths: Paths) -> list[str]:
    """Return the paths and globs of all inputs."""
    return [*paths.golden, *paths.run, *(paths.baseline or []), *([paths.config] if paths.config else [])]
