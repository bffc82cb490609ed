"""Compares the model with the program on many random workspaces: `python -m tests.model --count 5000 --seed 0`."""

import argparse
import concurrent.futures
import contextlib
import sys
from collections import Counter

from tests.model.comparison import checked, compare, minimised
from tests.model.random_workspaces import features, random_workspace
from tests.model.workspace import Workspace

SHOWN = 20


def main() -> int:
    """Print every difference, made small, then how often which feature met which exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="how many workspaces")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--features", action="store_true", help="count features by exit code")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    codes: Counter[int] = Counter()
    counts: Counter[tuple[str, int]] = Counter()
    differing = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        chunk = max(1, min(50, options.count // options.jobs))
        for seed, code, found, differences in pool.map(_one, seeds, chunksize=chunk):
            codes[code] += 1
            counts.update((feature, code) for feature in found)
            if differences:
                differing += 1
                if differing <= SHOWN:
                    _show(seed)
    print(f"{options.count} workspaces, {differing} differ; exit codes: {dict(sorted(codes.items()))}")  # noqa: T201
    if options.features:
        for feature in sorted({feature for feature, _ in counts}):
            print(f"  {feature:45}", *(f"{counts[feature, code]:6}" for code in (0, 1, 2)))  # noqa: T201
    return int(differing > 0)


def _one(seed: int) -> tuple[int, int, set[str], list[str]]:
    workspace = random_workspace(seed)
    program = checked(workspace)
    return seed, program.exit_code, features(workspace), compare(workspace, lambda _: program)


def _show(seed: int) -> None:
    workspace = random_workspace(seed)
    kinds = {_kind(text) for text in compare(workspace)}

    def differs(candidate: Workspace) -> bool:
        with contextlib.suppress(ArithmeticError, LookupError, TypeError, ValueError):
            return bool(kinds & {_kind(text) for text in compare(candidate)})
        return False

    small = minimised(workspace, differs)
    print(f"seed {seed}:", *compare(small), small.as_text(), "", sep="\n  ", flush=True)  # noqa: T201


def _kind(difference: str) -> str:
    """Return what a difference is about, without the names of queries."""
    return difference[:26]


if __name__ == "__main__":
    sys.exit(main())
