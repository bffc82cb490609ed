"""Where the time of a check goes, by module: ``cProfile`` in our environment, apart from what is timed."""

import pstats
import subprocess
from collections import Counter
from pathlib import Path

from benchmarks.results import Cost
from benchmarks.rounds import Command

SHOWN = 10
PROGRAM = """
import cProfile, sys, gc
path = sys.argv.pop(1)
from ragcontract.cli.main import main
gc.disable()
profile = cProfile.Profile()
try:
    profile.runcall(main, sys.argv[1:])
finally:
    profile.dump_stats(path)
"""


def hotspots(command: Command, python: Path) -> list[Cost]:
    """Run a check of ours under the profiler and return the most costly modules."""
    stats = Path(command.folder) / "profile"
    with Path(command.log).open("wb") as log:
        subprocess.run(
            [python, "-I", "-c", PROGRAM, stats, *command.arguments[1:]],
            cwd=command.folder,
            stdout=log,
            stderr=log,
            check=False,  # a broken contract is no error here
        )
    return costs(pstats.Stats(str(stats)))


def costs(stats: pstats.Stats) -> list[Cost]:
    """Sum up own times by module; what is built in goes by its own name."""
    own: Counter[str] = Counter()
    for (file, _, name), (_, _, seconds, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        own[_location(file, name)] += seconds
    total = sum(own.values())
    return [Cost(where=where, share=seconds / total) for where, seconds in own.most_common(SHOWN)]


def _location(file: str, name: str) -> str:
    if file == "~":
        return name.strip("<>").removeprefix("built-in method ").removeprefix("method ")
    path = Path(file)
    for folder in ("site-packages", "lib"):
        if folder in path.parts:
            return "/".join(path.parts[path.parts.index(folder) + 1 :])
    return path.name
