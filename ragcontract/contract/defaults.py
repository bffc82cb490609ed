"""The default file names of a contract, the search for one, and for files that may be meant as its configuration."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ragcontract.core import bounds
from ragcontract.core.nearest import is_typo
from ragcontract.files.paths import nearest_name

GOLDEN = "golden.jsonl"
RUN = "current_run.jsonl"
BASELINE = "baseline.json"
CONFIG = "ragcontract.yml"
CONFIG_ALIAS = "ragcontract.yaml"
# Where editors find the schema of CONFIG: a file of the site. `org` stands for the owner, as in org/rag-contract.
CONFIG_SCHEMA = "https://org.github.io/rag-contract/schemas/config.json"
JUDGMENTS = "judgments.jsonl"
CALIBRATION = "judge-calibration.json"
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
OF_CONTRACTS = (GOLDEN, CONFIG, CONFIG_ALIAS, BASELINE)
START = "there is no contract in this folder: start with `rag-contract init`"
NAMES = tuple(name for names in DEFAULTS.values() for name in names)
# What browsers, editors and people add to the name of a copy.
_OF_COPY = re.compile(r"(?:[ _-]+copy)?(?: ?\(\d+\))?(?=\.[a-z]+$)")
_OF_BACKUP = re.compile(r"(?:\.(?:bak|backup|old|orig|save)|~)+$")


def lacks_contract(folder: Path, above: Sequence[Path] = ()) -> bool:
    """Return whether no file of a contract is in a folder, nor in those ``above``.

    A file whose name is nearly that of golden queries is one: reading them proposes it.
    """
    if any(os.path.lexists(way / name) for way in (folder, *above) for name in OF_CONTRACTS):
        return False
    with suppress(OSError):  # the folder was deleted, which is reported where a file in it is read
        return folder.resolve().is_dir() and not nearest_name(folder / GOLDEN)
    return False


def like_config(folder: Path) -> Iterator[Path]:
    """Yield the default names of a configuration that a folder has, and names there that look like them.

    Copies, such as ``ragcontract (1).yml``, are of no concern where there is a configuration.
    """
    has_own = any(os.path.lexists(folder / name) for name in (CONFIG, CONFIG_ALIAS))
    elsewhere = (f".github/{name}" for name in (CONFIG, CONFIG_ALIAS))
    yield from (folder / name for name in (CONFIG, CONFIG_ALIAS, *elsewhere) if os.path.lexists(folder / name))
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, bounds.CONFIG_SEARCHED + 1))
    except OSError:  # reading the inputs reports what is wrong with the folder
        return
    if len(names) <= bounds.CONFIG_SEARCHED:
        names = [name for name in names if name not in {CONFIG, CONFIG_ALIAS}]
        yield from (folder / name for name in names if _lookslike_config(name if has_own else _copied(name)))


def _copied(name: str) -> str:
    """Return the name of the file of which a file may be a copy, in lower case."""
    return _OF_COPY.sub("", _OF_BACKUP.sub("", name.lower()))


def _lookslike_config(name: str) -> bool:
    """Return whether a name differs from a configuration's only in case, separators, format or one typing error."""
    path, meant = Path(name.lower().removesuffix(".txt").lstrip(".")), Path(CONFIG).stem
    letters = "".join(filter(str.isalnum, path.stem))
    is_config = path.suffix in {".yml", ".yaml", ".json", ".toml"}
    return is_config and (letters == meant or is_typo(letters, meant))
