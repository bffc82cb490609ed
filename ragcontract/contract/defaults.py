"""The default file names of a contract, and the search for them in a folder."""

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
    """The paths or globs of the inputs; None for an input that is not used."""

    golden: Sequence[str]
    run: Sequence[str]
    scores: Sequence[str] = ()
    baseline: Sequence[str] | None = None
    config: str | None = None
    judgments: Sequence[str] = ()
    calibration: str | None = None

    @property
    def large(self) -> list[str]:
        """The paths of the inputs that can be large: all but the configuration and the calibration."""
        return [*self.golden, *self.run, *self.scores, *(self.baseline or []), *self.judgments]

    @property
    def all(self) -> list[str]:
        """The paths and globs of all inputs."""
        return [*self.large, *(path for path in (self.config, self.calibration) if path)]


def find_inputs(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    scores: Sequence[str] = (),
    judgments: Sequence[str] = (),
    calibration: str | None = None,
    baseline: Sequence[str] = (),
    config: str | None = None,
    folder: str = "",
) -> InputPaths:
    """Return the input paths with defaults for those not given; paths are relative to ``folder``.

    Files of scores, judgments and calibrations are only used if they are given. A baseline or a configuration that is
    not given is used only if the default file exists. All other paths must exist; reading them reports those that do
    not.
    """
    home = Path(folder)

    def inside(paths: Sequence[str]) -> list[str]:
        return [path if "://" in path else str(home / path) for path in paths]  # Path would merge the slashes of a URL

    # lexists: a broken link is still used, and reading it reports the problem
    if not baseline and os.path.lexists(home / BASELINE):
        baseline = [BASELINE]
    if config is None:
        config = next((name for name in (CONFIG, CONFIG_ALIAS) if os.path.lexists(home / name)), None)
    return InputPaths(
        golden=inside(golden or [GOLDEN]),
        run=inside(run or [RUN]),
        scores=inside(scores),
        judgments=inside(judgments),
        calibration=str(home / calibration) if calibration else None,
        baseline=inside(baseline) if baseline else None,
        config=str(home / config) if config else None,
    )
