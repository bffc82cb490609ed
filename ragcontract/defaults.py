"""Where the files of a contract are if nobody says so: the names of the README, in one folder."""

from collections.abc import Sequence
from pathlib import Path

from ragcontract.pipeline import Paths

GOLDEN = "golden.jsonl"
RUN = "current_run.jsonl"
BASELINE = "baseline.json"
CONFIG = "ragcontract.yml"
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
) -> Paths:
    """Fill in what is not given; paths are relative to ``folder``.

    A path that is given must be there (reading will say so if not), and so must the golden queries and the run; a
    baseline or a configuration that is not given and not there is none.
    """
    home = Path(folder)

    def inside(paths: Sequence[str]) -> list[str]:
        return [str(home / path) for path in paths]

    if not baseline and (home / BASELINE).exists():
        baseline = [BASELINE]
    if config is None and (home / CONFIG).exists():
        config = CONFIG
    return Paths(
        golden=inside(golden or [GOLDEN]),
        run=inside(run or [RUN]),
        baseline=inside(baseline) if baseline else None,
        config=str(home / config) if config else None,
    )
