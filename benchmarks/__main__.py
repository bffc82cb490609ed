"""Measures rag-contract beside other tools and writes the pages on performance: `python -m benchmarks` (`make bench`).

They are docs/background/performance.md for users and docs/contributing/performance.md for contributors.

With --quick, compares what this checkout costs over the floor with the stored ratios, and checks that no stage grows
too fast (`make bench-quick`). Everything it makes is in build/benchmarks: the data, an environment for each tool, what
was measured.
"""

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks import container, data, environments, growth, hotspots, page, quick, tools
from benchmarks.results import Results, machine
from benchmarks.rounds import Samples, interleaved, measure
from ragcontract.core.version import __version__

BUILD = environments.ROOT / "build" / "benchmarks"
PAGE = environments.ROOT / "docs" / "background" / "performance.md"
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 9
PROFILED = 100_000  # or the largest size below


def main(argv: list[str]) -> int:
    """Measure what the arguments ask for."""
    asked = _arguments(argv)
    if asked.quick:
        return max(quick.main(BUILD / "data", store=asked.store), growth.quick(growth.FOLDER))
    whole = tuple(asked.sizes) == SIZES
    target = asked.page or (PAGE if whole else BUILD / "performance.md")
    stored = BUILD / "results.json"
    if asked.again:
        results = msgspec.json.decode(stored.read_bytes(), type=Results)
    else:
        command = "make bench" if not argv else "python -m benchmarks " + " ".join(argv)
        results = measure_all(asked.sizes, asked.rounds, command)
        stored.write_bytes(msgspec.json.encode(results))
    for path in page.write(results, PAGE, target):
        print(path)
    print(page.against_targets(results))
    return 0


def measure_all(sizes: list[int], rounds: int, command: str) -> Results:
    """Install, make the data, measure. The smallest size is run once uncounted by all, for bytecode and caches."""
    installed = tools.install(BUILD / "environments")
    ours = installed.bins[tools.OURS]
    shapes = [*(data.Shape(queries=number) for number in sizes), data.WIDE_ALONE, data.WIDE]
    samples: dict[str, Samples] = {}
    costs, profiled = [], 0
    for shape in shapes:
        print(f"making data: {shape.name}", flush=True)
        folder = data.make(shape, BUILD / "data")
        commands = tools.commands(shape, folder, installed)
        if not samples:
            for each in commands.values():
                measure(each)
            tools.check_agreement(commands)
        _read(folder)
        print(f"measuring: {shape.name}", flush=True)
        samples[shape.name] = interleaved(commands, rounds)
        if not shape.is_wide and shape.queries <= PROFILED:
            costs, profiled = hotspots.hotspots(commands[tools.OURS], ours / "python"), shape.queries
    return Results(
        machine=machine(),
        command=command,
        version=__version__,
        sizes=sizes,
        samples=samples,
        wide_bytes=sum((folder / name).stat().st_size for name in (data.RUN, data.GOOD_RUN)),
        container=container.run(BUILD / "data", ours, rounds),
        profile=costs,
        profiled=profiled,
        missing=installed.missing,
    )


def _read(folder: Path) -> None:
    """Read the files once, so that the first tool does not wait for the disk."""
    for file in folder.glob("*.json*"):
        with file.open("rb") as opened:
            while opened.read(1 << 20):
                pass


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N", help="numbers of queries")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="of the fast ones; slow ones have 3")
    parser.add_argument(
        "--page",
        type=Path,
        help="where to write [docs/background/performance.md; with other --sizes, build/benchmarks]",
    )
    parser.add_argument("--again", action="store_true", help="write the page from what was measured last")
    parser.add_argument("--quick", action="store_true", help="compare with the stored ratios; exit 1 on a regression")
    parser.add_argument("--store", action="store_true", help="with --quick, store the ratios")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
