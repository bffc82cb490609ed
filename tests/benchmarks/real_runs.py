"""A stand-in for real runs: a few systems and judgments, in memory and as the folder that the commands read."""

import gzip
from pathlib import Path

from benchmarks.robust03 import QRELS, RUNS, Robust

TOPICS = 100


def robust() -> Robust:
    """Return systems: ``first`` and ``second`` find different relevant documents, ``late`` finds one at rank 3."""
    topics = [f"{number:03}" for number in range(TOPICS)]
    return Robust(
        grades={topic: {"a": 1, "b": 2, "c": 1, "d": 1, "x": 0} for topic in topics},
        systems={
            "first": {topic: ["a", "b", "x"] for topic in topics},
            "second": {topic: ["c", "d", "y"] for topic in topics},
            "late": {topic: ["x", "y", "a"] for topic in topics},
        },
    )


def write(folder: Path) -> None:
    """Write them as in the folder of the real ones."""
    found = robust()
    for parent in ((folder / QRELS).parent, folder / RUNS):
        parent.mkdir(parents=True)
    lines = [f"{topic} 0 {name} {grade}\n" for topic, grades in found.grades.items() for name, grade in grades.items()]
    (folder / QRELS).write_text("".join(lines))
    for system, rankings in found.systems.items():
        rows = [
            f"{topic} Q0 {name} {rank} {10 - rank} {system}\n"
            for topic, ranking in rankings.items()
            for rank, name in enumerate(ranking, start=1)
        ]
        (folder / RUNS / f"input.{system}.gz").write_bytes(gzip.compress("".join(rows).encode()))
