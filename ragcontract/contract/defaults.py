"""The names that a contract's files have unless somebody says otherwise, in one folder."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

GOLDEN = "golden.jsonl"
RUN = "current_run.jsonl"
BASELINE = "baseline.json"
CONFIG = "ragcontract.yml"
CONFIG_ALIAS = "ragcontract.yaml"


class InputPaths(Struct, frozen=True, kw_only=True):
    """Where the inputs are: paths or globs. None is what there is not."""

    golden: Sequence[str]
    run: Sequence[str]
    baseline: Sequence[str] | None = None
    config: str | None = None

    @property
    def large(self) -> list[str]:
        """The files that may take long to read."""
        return [*self.golden, *self.run, *(self.baseline or [])]

    @property
    def all(self) -> list[str]:
        """The paths and globs of all inputs."""
        return [*self.large, *([self.config] if self.config else [])]


def find_inputs(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    baseline: Sequence[str] = (),
    config: str | None = None,
    folder: str = "",
) -> InputPaths:
    """Fill in what is not given; paths are relative to ``folder``.

    A path that is given must be there (reading will say so if not), and so must the golden queries and the run; a
    baseline or a configuration that is not given and not there is none.
    """
    home = Path(folder)

    def inside(paths: Sequence[str]) -> list[str]:
        return [path if "://" in path else str(home / path) for path in paths]  # an address keeps its two slashes

    # lexists: a link that leads nowhere was meant, and reading it will say what is wrong
    if not baseline and os.path.lexists(home / BASELINE):
        baseline = [BASELINE]
    if config is None:
        config = next((name for name in (CONFIG, CONFIG_ALIAS) if os.path.lexists(home / name)), None)
    return InputPaths(
        golden=inside(golden or [GOLDEN]),
        run=inside(run or [RUN]),
        baseline=inside(baseline) if baseline else None,
        config=str(home / config) if config else None,
    )
