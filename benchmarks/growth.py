"""How a check grows with inputs that once made a stage quadratic: `python -m benchmarks.growth` (`make bench-growth`).

Each stage is checked at three sizes, each twice the one before, with every report. The CPU time of the whole process is
the smallest of ``ROUNDS`` runs. A stage that takes more than ``MOST`` times as long at twice the size fails; one that
is linear takes at most twice as long, one that is quadratic nearly four times.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks.environments import ROOT
from benchmarks.rounds import Command, Sample, measure

MOST = 3.0
ROUNDS = 3
ACCEPTED = 1e-3  # seconds: below, a ratio says nothing
Row = dict[str, Any]
PROGRAM = "from ragcontract.guard import entry_point; entry_point()"


class Stage(Struct, frozen=True, kw_only=True):
    """An input that grows. ``make`` writes it for a size into an empty folder; ``unit`` names what the size counts."""

    name: str
    unit: str
    sizes: tuple[int, int, int]
    make: Callable[[Path, int], None]


class Growth(Struct, frozen=True, kw_only=True):
    """The CPU seconds of a stage at each size."""

    stage: str
    unit: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times as long twice the size takes, at the larger sizes."""
        return self.seconds[-1] / max(self.seconds[-2], ACCEPTED)

    @property
    def exponent(self) -> float:
        """The exponent of the growth: 1 is linear, 2 quadratic."""
        return log2(self.ratio)

    @property
    def fails(self) -> bool:
        """Whether the growth is more than ``MOST``."""
        return self.ratio > MOST


def blank_lines(folder: Path, size: int) -> None:
    """A baseline with faulty queries, preceded by ``size`` blank lines."""
    _lines(folder, "golden", [_golden(0)])
    _lines(folder, "current_run", [_run(0)])
    faulty = b'{"format_version":1,"queries":[' + b",".join([b'{"id":1}'] * 60) + b"]}"
    (folder / "baseline.json").write_bytes(b"\n" * size + faulty)


def relevant_by_results(folder: Path, size: int) -> None:
    """One query with ``size`` relevant documents, all of which are retrieved, last one first."""
    documents = [f"document-{number:09}" for number in range(size)]
    _lines(folder, "golden", [_golden(0) | {"relevant_doc_ids": documents, "forbidden_doc_ids": documents[:10]}])
    _lines(folder, "current_run", [_run(0, reversed(documents))])
    _lines(folder, "baseline", [_run(0, documents)])


def near_waivers(folder: Path, size: int) -> None:
    """2,000 queries, and ``size`` waivers that misspell the id of one."""
    _lines(folder, "golden", [_golden(number) for number in range(2_000)])
    _lines(folder, "current_run", [_run(number) for number in range(2_000)])
    _config(folder, waivers=[_waiver(query=f"{_id(number)}x".replace("query", "qeury")) for number in range(size)])


def waived_queries(folder: Path, size: int) -> None:
    """20,000 broken queries, and ``size`` waivers of them."""
    _lines(folder, "golden", [_golden(number) for number in range(20_000)])
    _lines(folder, "current_run", [_run(number, ["other"]) for number in range(20_000)])
    _config(folder, waivers=[_waiver(query=_id(number)) for number in range(size)])


def limited_tags(folder: Path, size: int) -> None:
    """50 queries that all have the same ``size`` tags, each of which has limits."""
    tags = [f"tag {number}" for number in range(size)]
    _lines(folder, "golden", [_golden(number) | {"tags": tags} for number in range(50)])
    _lines(folder, "current_run", [_run(number, [f"other {number % 3}", f"document-{number}"]) for number in range(50)])
    _lines(folder, "baseline", [_run(number) for number in range(50)])
    _config(folder, tags={tag: {"minimums": {"mrr_at_k": 0.4}, "fail_on": {"mrr_drop_gt": 0.6}} for tag in tags})


def faults_in_a_row(folder: Path, size: int) -> None:
    """A run row with ``size`` results, none of which has a valid document id."""
    _lines(folder, "golden", [_golden(0)])
    _lines(folder, "current_run", [{"query_id": _id(0), "results": [{"doc_id": 1.5}] * size}])


def same_p_values(folder: Path, size: int) -> None:
    """1,000 queries that all have the same ``size`` tags, each of which has a limit on a significant drop."""
    tags = [f"tag {number}" for number in range(size)]
    _lines(folder, "golden", [_golden(number) | {"tags": tags} for number in range(1_000)])
    worse, better = [3, 40], [40, 3]
    before = [_ranked(number, better[number % 5 < 2]) for number in range(1_000)]
    _lines(folder, "current_run", [_ranked(number, worse[number % 5 < 2] + number % 40) for number in range(1_000)])
    _lines(folder, "baseline", before)
    limits = {tag: {"fail_on": {"mrr_drop_gt": 0.01}} for tag in tags}
    _config(folder, k=100, tags=limits, fail_on={"mode": "significant"})


STAGES = (
    Stage(
        name="a faulty baseline preceded by blank lines",
        unit="lines",
        sizes=(250_000, 500_000, 1_000_000),
        make=blank_lines,
    ),
    Stage(name="n relevant × n results in one row", unit="n", sizes=(10_000, 20_000, 40_000), make=relevant_by_results),
    Stage(
        name="waivers that nearly name an id, 2,000 queries", unit="waivers", sizes=(100, 200, 400), make=near_waivers
    ),
    Stage(name="waivers × 20,000 broken queries", unit="waivers", sizes=(400, 800, 1_600), make=waived_queries),
    Stage(
        name="limits on n tags, 50 queries with n tags each", unit="n", sizes=(1_000, 2_000, 4_000), make=limited_tags
    ),
    Stage(name="faults in one row", unit="faults", sizes=(20_000, 40_000, 80_000), make=faults_in_a_row),
    Stage(name="the same p-value for each of many tags", unit="tags", sizes=(100, 200, 400), make=same_p_values),
)


def _id(number: int) -> str:
    return f"query about refunds of annual plans {number:06}"


def _golden(number: int) -> Row:
    return {"id": _id(number), "query": f"Question {number}?", "relevant_doc_ids": [f"document-{number}"]}


def _run(number: int, documents: Iterable[str] | None = None) -> Row:
    listed = [f"document-{number}"] if documents is None else documents
    return {"query_id": _id(number), "results": [{"doc_id": document} for document in listed]}


def _ranked(number: int, rank: int) -> Row:
    """A run row with the relevant document at a rank."""
    return _run(number, [*(f"other {other}" for other in range(rank - 1)), f"document-{number}"])


def _waiver(**of: str) -> Row:
    return {**of, "reason": "known", "owner": "search", "expires": "2999-12-31"}


def _lines(folder: Path, name: str, rows: Iterable[Row]) -> None:
    (folder / f"{name}.jsonl").write_bytes(b"".join([msgspec.json.encode(row) + b"\n" for row in rows]))


def _config(folder: Path, **config: Any) -> None:
    (folder / "ragcontract.yml").write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=1))


def command(folder: Path) -> Command:
    """Return the check of a folder's files with every report, by the interpreter that runs this."""
    baseline = next(folder.glob("baseline.*"), None)
    compared = ["--baseline", baseline.name] if baseline else []
    return Command(
        arguments=[sys.executable, "-c", PROGRAM, "check", *compared, "--report-html", "report.html"],
        folder=str(folder),
        log=str(folder / "log"),
        good=(0, 1, 2),
        environ={"PYTHONPATH": str(ROOT)},
    )


def grow(stage: Stage, folder: Path, rounds: int, run: Callable[[Command], Sample] = measure) -> Growth:
    """Make the inputs of a stage below ``folder`` and measure a check at each size."""
    commands = []
    for size in stage.sizes:
        inputs = folder / stage.make.__name__ / str(size)
        inputs.mkdir(parents=True, exist_ok=True)
        stage.make(inputs, size)
        commands.append(command(inputs))
    seconds = [min(run(each).cpu for _ in range(rounds)) for each in commands]
    return Growth(stage=stage.name, unit=stage.unit, sizes=stage.sizes, seconds=tuple(seconds))


def table(found: Sequence[Growth]) -> str:
    """Return the growth of each stage as a Markdown table, with the exponent between the larger sizes."""
    rows = [
        f"| {one.stage} | {' / '.join(f'{size:,}' for size in one.sizes)} {one.unit}: "
        f"{' / '.join(f'{seconds:.2g}' for seconds in one.seconds)} s | {one.exponent:.1f} |\n"
        for one in found
    ]
    return "".join(["| stage | growth | exponent |\n", "| --- | --- | ---: |\n", *rows])


def main(folder: Path, rounds: int = ROUNDS, page: Path | None = None) -> int:
    """Measure all stages, print the table and, with a ``page``, write it there; 1 if a stage grows too fast."""
    found = [grow(stage, folder, rounds) for stage in STAGES]
    print(table(found), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(ROOT / "build" / "benchmarks" / "growth"))
