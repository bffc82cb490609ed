"""``python -m tests.fuzz``: runs a campaign, or cases again that are given by their folders."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.campaign import Campaign, Plan
from tests.fuzz.case import CORPUS, Case
from tests.fuzz.isolation import replay
from tests.fuzz.limits import Limits
from tests.fuzz.targets.registry import TARGETS
from tests.fuzz.worker import Failure


def main(argv: Sequence[str]) -> int:
    """Run the campaign and print its summary; returns 1 if there are failures."""
    options = _parser().parse_args(argv)
    if options.replay:
        return _replay(options.replay)
    targets = {name: TARGETS[name] for name in options.target or TARGETS}
    plan = Plan(
        seconds=options.seconds,
        executions=options.executions,
        jobs=options.jobs,
        seed=options.seed,
        targets=targets,
        corpus=options.corpus,
    )
    summary = Campaign(plan, _say).run()
    for line in summary.lines():
        _say(line)
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to run [60]")
    parser.add_argument("--executions", type=int, help="how many cases to run at most, in the time")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes to run [2]")
    parser.add_argument("--seed", default="0", help="another seed makes other cases [0]")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="what to run; may be repeated [all]")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where cases are bred from and failures stored")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FOLDER", help="run these cases of a corpus again")
    return parser


def _replay(folders: Sequence[Path]) -> int:
    failed = 0
    for folder in folders:
        found = replay(Case.load(folder.resolve()), Limits())
        if isinstance(found, Failure):
            failed += 1
            _say(f"{folder}: {found.reason}\n{found.details}".rstrip())
        else:
            _say(f"{folder}: exit {found.code}\n{found.out}{found.err}".rstrip())
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(line.encode(errors="backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
