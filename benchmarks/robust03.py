"""Real runs to simulate with: 17 systems of TREC's Robust track of 2003, and NIST's judgments of its 100 topics.

They are in the repository joaopalotti/trectools, in the folder ``examples/robust03``. None of it is part of this
project. ``qrel/robust03_qrels.txt`` has the judgments, and ``runs`` a file for each system.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.convert import trec
from ragcontract.convert.collection import Source
from ragcontract.core.errors import InputError
from ragcontract.files.problems import Collector

USAGE = "python -m {} FOLDER, where FOLDER is examples/robust03 of https://github.com/joaopalotti/trectools"
QRELS = Path("qrel", "robust03_qrels.txt")
RUNS = Path("runs")

Ranking = Sequence[str]
System = Mapping[str, Ranking]
Grades = Mapping[str, Mapping[str, int]]


class Robust(Struct, frozen=True, kw_only=True):
    """The topics, the grades of the documents judged for each, and the documents that each system returned for it."""

    grades: Grades
    systems: Mapping[str, System]

    @property
    def topics(self) -> list[str]:
        """The ids of all topics, sorted."""
        return sorted(self.grades)

    def relevant(self, topic: str) -> dict[str, int]:
        """Return the grades of the relevant documents of a topic."""
        return {document: grade for document, grade in self.grades[topic].items() if grade > 0}


def read(folder: Path, depth: int) -> Robust:
    """Read the judgments and the first ``depth`` documents of every system, in trec_eval's order.

    Raises :class:`InputError` if a file is missing or faulty.
    """
    problems = Collector()
    files = {"qrels": [str(folder / QRELS)], "queries": []}
    golden = trec.read(Source(files=files, wanted={"golden"}, problems=problems)).queries or {}
    systems = {}
    for path in sorted((folder / RUNS).glob("input.*.gz")):
        rankings = trec.read_run(Source(files={"run": [str(path)]}, wanted={"run"}, problems=problems))
        systems[path.name.removeprefix("input.").removesuffix(".gz")] = {
            topic: [result.doc_id for result in ranking.results[:depth]] for topic, ranking in rankings.items()
        }
    if not systems:
        problems.problem(str(folder / RUNS), "has no runs, named input.*.gz")
    problems.collected().raise_if_any()
    grades = {
        topic: {document: int(grade) for document, grade in query.grades.items()} for topic, query in golden.items()
    }
    return Robust(grades=grades, systems=systems)


def from_command_line(argv: Sequence[str], module: str, depth: int) -> Robust:
    """Read the folder that a command was given; ends the process with a message if there is none."""
    if len(argv) != 1:
        sys.exit(f"usage: {USAGE.format(module)}")
    try:
        return read(Path(argv[0]), depth)
    except InputError as error:
        sys.exit(f"{error}\nusage: {USAGE.format(module)}")
