"""The default file names of a contract, and the search for them in a folder."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.nearest import is_typo
from ragcontract.files.paths import existing_files

GOLDEN = "golden.jsonl"
RUN = "current_run.jsonl"
BASELINE = "baseline.json"
CONFIG = "ragcontract.yml"
CONFIG_ALIAS = "ragcontract.yaml"
NAMES = (GOLDEN, RUN, BASELINE, CONFIG, CONFIG_ALIAS)


class InputPaths(Struct, frozen=True, kw_only=True):
    """The paths or globs of the inputs; None for an input that is not used."""

    golden: Sequence[str]
    run: Sequence[str]
    scores: Sequence[str] = ()
    baseline: Sequence[str] | None = None
    config: str | None = None
    other_configs: Sequence[str] = ()  # files that nobody named, but that may be meant as the configuration
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
    """Return the input paths, with defaults for those that are not named; paths are relative to ``folder``.

    Files of scores, judgments and calibrations are only used if they are named. A baseline or a configuration that is
    not named is used only if the default file exists. All other paths must exist; reading them reports those that do
    not. Files that may be meant as the configuration are searched for in the folder and beside the golden files.
    """
    home = Path(folder)

    def inside(paths: Sequence[str]) -> list[str]:
        return [path if "://" in path else str(home / path) for path in paths]  # Path would merge the slashes of a URL

    # lexists: a broken link is still used, and reading it reports the problem
    if not baseline and os.path.lexists(home / BASELINE):
        baseline = [BASELINE]
    others: list[str] = []
    if config is None:
        config = next((name for name in (CONFIG, CONFIG_ALIAS) if os.path.lexists(home / name)), None)
        near = [*like_config(home), *_beside(inside(golden), home)]
        others = [str(path) for path in near if config is None or not _is_same(path, home / config)]
    return InputPaths(
        golden=inside(golden or [GOLDEN]),
        run=inside(run or [RUN]),
        scores=inside(scores),
        judgments=inside(judgments),
        calibration=str(home / calibration) if calibration else None,
        baseline=inside(baseline) if baseline else None,
        config=str(home / config) if config else None,
        other_configs=others,
    )


def _beside(golden: Sequence[str], home: Path) -> Iterator[Path]:
    """Yield the files that look like a configuration beside golden files in other folders."""
    files, _ = existing_files(golden)  # reading them reports what is wrong with them
    for folder in dict.fromkeys(Path(file).parent for file in files):
        if not _is_same(folder, home):
            yield from like_config(folder)


def like_config(folder: Path) -> Iterator[Path]:
    """Yield the default names of a configuration that a folder has, and names there that look like them."""
    elsewhere = (f".github/{name}" for name in (CONFIG, CONFIG_ALIAS))
    yield from (folder / name for name in (CONFIG, CONFIG_ALIAS, *elsewhere) if os.path.lexists(folder / name))
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, bounds.CONFIG_SEARCHED + 1))
    except OSError:  # reading the inputs reports what is wrong with the folder
        return
    if len(names) <= bounds.CONFIG_SEARCHED:
        yield from (folder / name for name in names if name not in {CONFIG, CONFIG_ALIAS} and _lookslike_config(name))


def _lookslike_config(name: str) -> bool:
    """Return whether a name differs from a configuration's only in case, separators, format or one typing error."""
    path, meant = Path(name.lower().removesuffix(".txt").lstrip(".")), Path(CONFIG).stem
    letters = "".join(filter(str.isalnum, path.stem))
    is_config = path.suffix in {".yml", ".yaml", ".json", ".toml"}
    return is_config and (letters == meant or is_typo(letters, meant))


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, through links or where case makes no difference."""
    try:
        return path.samefile(other)
    except OSError:
        return path == other
