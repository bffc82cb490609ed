"""Measures commands side by side: A B C, A B C, ..., so that all see the same machine, in its good and bad minutes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

from msgspec import Struct

MEASURE = Path(__file__).parent / "measure.py"
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG")
ENOUGH = 30.0  # seconds: a command that has taken so long in all, in LEAST rounds, is not run again
LEAST = 3

Figure = Literal["wall", "cpu", "peak"]


class Sample(Struct, frozen=True, kw_only=True):
    """What one run of a command took: seconds of wall time and of all CPUs, bytes of the largest process."""

    wall: float
    cpu: float
    peak: int
    exit_code: int


class Command(Struct, frozen=True, kw_only=True):
    """What is measured. ``arguments`` start with the path of a program; ``good`` are the exit codes of success."""

    arguments: Sequence[str]
    folder: str
    log: str
    good: tuple[int, ...] = (0,)
    environ: Mapping[str, str] = {}


Samples = dict[str, list[Sample]]  # by the command's name, a sample a round; a command may sit out the last rounds


def measure(command: Command) -> Sample:
    """Run a command once. Raises RuntimeError if it fails."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(MEASURE), command.folder, command.log, *command.arguments],
        env={name: os.environ[name] for name in PASSED_ON if name in os.environ} | dict(command.environ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    sample = Sample(**json.loads(done.stdout))
    if sample.exit_code not in command.good:
        last = Path(command.log).read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command.arguments)} exits {sample.exit_code}:\n{last}")
    return sample


def interleaved(commands: Mapping[str, Command], rounds: int, run: Callable[[Command], Sample] = measure) -> Samples:
    """Run all commands in turn, ``rounds`` times; slow ones less often (see ``ENOUGH``)."""
    samples: Samples = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            if number < LEAST or sum(sample.wall for sample in samples[name]) < ENOUGH:
                samples[name].append(run(command))
    return samples


def middle(samples: Sequence[Sample], figure: Figure) -> float:
    """Return the median of a figure."""
    return float(median(getattr(sample, figure) for sample in samples))


def ratio(samples: Samples, one: str, other: str, figure: Figure = "wall") -> float:
    """Return how many times as much ``one`` takes as ``other``: the median of the ratios within each round."""
    pairs = zip(samples[one], samples[other], strict=False)  # the rounds that both took part in
    return float(median(getattr(a, figure) / getattr(b, figure) for a, b in pairs))
