"""How a check grows with inputs that cost one stage most: `python -m benchmarks.growth` (`make bench-growth`).

Each input is checked at three sizes, each twice the one before, with every report. What counts is the CPU time of the
whole process, the smallest of ``ROUNDS`` runs. A stage fails that takes more than ``MOST`` times as long at twice the
size (one that is linear takes at most twice as long, one that is quadratic up to four times), or that takes longer than
its limit, in checks of a single query. `make bench-quick` measures the two larger sizes once, and what fails again.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from math import log2
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks.environments import ROOT
from benchmarks.rounds import Command, Sample, measure
from scripts.docs import replace_part

MOST = 3.0
ROUNDS = 3
FOLDER = ROOT / "build" / "benchmarks" / "growth"
PAGE = ROOT / "docs" / "contributing" / "growth.md"
Row = dict[str, Any]
PROGRAM = "from ragcontract.guard import entry_point; entry_point()"


class Stage(Struct, frozen=True, kw_only=True):
    """An input that grows. ``make`` writes it for a size into an empty folder; ``unit`` names what the size counts.

    ``most`` is how long the largest size may take, in checks of a single query: about three times what it takes.
    """

    name: str
    unit: str
    sizes: Sequence[int]
    make: Callable[[Path, int], None]
    most: float


class Growth(Struct, frozen=True, kw_only=True):
    """The CPU seconds of a stage at each of some sizes, and those of a check of a ``single`` query."""

    stage: Stage
    sizes: Sequence[int]
    seconds: Sequence[float]
    single: float

    @property
    def exponent(self) -> float:
        """The exponent of the growth between the two larger sizes: 1 is linear, 2 quadratic."""
        return log2(self.seconds[-1] / self.seconds[-2])

    @property
    def faults(self) -> list[str]:
        """What is wrong with the growth, as sentences."""
        found = []
        ratio, singles = self.seconds[-1] / self.seconds[-2], self.seconds[-1] / self.single
        if ratio > MOST:
            found.append(f"{self.stage.name}: {ratio:.1f} times as long at twice the size, at most {MOST:g} is linear")
        if singles > self.stage.most:
            limit = f"{self.stage.most:g} are allowed"
            found.append(f"{self.stage.name}: as long as {singles:.0f} checks of a single query, {limit}")
        return found


def single_query(folder: Path, size: int) -> None:
    """Write ``size`` queries, none of which is broken."""
    _lines(folder, "golden", [_golden(number) for number in range(size)])
    _lines(folder, "current_run", [_run(number) for number in range(size)])


def blank_lines(folder: Path, size: int) -> None:
    """Write a baseline with faulty queries, preceded by ``size`` blank lines."""
    _lines(folder, "golden", [_golden(0)])
    _lines(folder, "current_run", [_run(0)])
    faulty = b'{"format_version":1,"queries":[' + b",".join([b'{"id":1}'] * 60) + b"]}"
    (folder / "baseline.json").write_bytes(b"\n" * size + faulty)


def relevant_by_results(folder: Path, size: int) -> None:
    """Write a query with ``size`` relevant documents, all of which are retrieved, last one first."""
    documents = [f"document-{number:09}" for number in range(size)]
    _lines(folder, "golden", [_golden(0) | {"relevant_doc_ids": documents, "forbidden_doc_ids": documents[:10]}])
    _lines(folder, "current_run", [_run(0, reversed(documents))])
    _lines(folder, "baseline", [_run(0, documents)])


def near_waivers(folder: Path, size: int) -> None:
    """Write 2,000 queries, and ``size`` waivers that misspell the id of one."""
    _lines(folder, "golden", [_golden(number) for number in range(2_000)])
    _lines(folder, "current_run", [_run(number) for number in range(2_000)])
    _config(folder, waivers=[_waiver(query=f"{_id(number)}x".replace("query", "qeury")) for number in range(size)])


def waived_queries(folder: Path, size: int) -> None:
    """Write 20,000 broken queries, and ``size`` waivers of them."""
    _lines(folder, "golden", [_golden(number) for number in range(20_000)])
    _lines(folder, "current_run", [_run(number, ["other"]) for number in range(20_000)])
    _config(folder, waivers=[_waiver(query=_id(number)) for number in range(size)])


def limited_tags(folder: Path, size: int) -> None:
    """Write 50 queries with ``size`` tags each, and limits on all tags of the last one, which no other has."""
    shared, own = ([f"{kind} tag {number}" for number in range(size)] for kind in ("shared", "own"))
    tags = [*[shared] * 49, own]
    _lines(folder, "golden", [_golden(number) | {"tags": having} for number, having in enumerate(tags)])
    _lines(folder, "current_run", [_run(number, [f"other {number % 3}", f"document-{number}"]) for number in range(50)])
    _lines(folder, "baseline", [_run(number) for number in range(50)])
    _config(folder, tags={tag: {"minimums": {"mrr_at_k": 0.4}, "fail_on": {"mrr_drop_gt": 0.6}} for tag in own})


def faults_in_a_row(folder: Path, size: int) -> None:
    """Write a run row with ``size`` results, none of which is an object."""
    _lines(folder, "golden", [_golden(0)])
    _lines(folder, "current_run", [{"query_id": _id(0), "results": [0] * size}])


def same_p_values(folder: Path, size: int) -> None:
    """Write 1,000 queries of different weights with the same ``size`` tags, and limits on their significant drops."""
    tags = [f"tag {number}" for number in range(size)]
    weighted = ({"weight": 1 + number / 1_000, "tags": tags} for number in range(1_000))
    _lines(folder, "golden", [_golden(number) | fields for number, fields in enumerate(weighted)])
    worse = [number % 100 < 53 for number in range(1_000)]  # noqa: PLR2004 (about half, so that p has to be sampled)
    _lines(folder, "current_run", [_ranked(number, 1 + fell) for number, fell in enumerate(worse)])
    _lines(folder, "baseline", [_ranked(number, 2 - fell) for number, fell in enumerate(worse)])
    limits = {tag: {"fail_on": {"mrr_drop_gt": 0.01}} for tag in tags}
    _config(folder, tags=limits, fail_on={"mode": "significant"})


SINGLE = Stage(name="a single query", unit="queries", sizes=(1,), make=single_query, most=1)
STAGES = (
    Stage(
        name="a faulty baseline preceded by blank lines",
        unit="lines",
        sizes=(250_000, 500_000, 1_000_000),
        make=blank_lines,
        most=6,
    ),
    Stage(
        name="n relevant × n results in one row",
        unit="documents",
        sizes=(10_000, 20_000, 40_000),
        make=relevant_by_results,
        most=15,
    ),
    Stage(
        name="waivers that nearly name an id, 2,000 queries",
        unit="waivers",
        sizes=(100, 200, 400),
        make=near_waivers,
        most=20,
    ),
    Stage(
        name="waivers × 20,000 broken queries", unit="waivers", sizes=(400, 800, 1_600), make=waived_queries, most=50
    ),
    Stage(
        name="limits on n tags, 50 queries with n tags each",
        unit="tags",
        sizes=(1_000, 2_000, 4_000),
        make=limited_tags,
        most=80,
    ),
    Stage(name="faults in one row", unit="faults", sizes=(100_000, 200_000, 400_000), make=faults_in_a_row, most=6),
    Stage(
        name="the same p-value for each of many tags", unit="tags", sizes=(100, 200, 400), make=same_p_values, most=60
    ),
)


def _id(number: int) -> str:
    return f"query about refunds of annual plans {number:06}"


def _golden(number: int) -> Row:
    return {"id": _id(number), "query": f"Question {number}?", "relevant_doc_ids": [f"document-{number}"]}


def _run(number: int, documents: Iterable[str] | None = None) -> Row:
    listed = [f"document-{number}"] if documents is None else documents
    return {"query_id": _id(number), "results": [{"doc_id": document} for document in listed]}


def _ranked(number: int, rank: int) -> Row:
    """Return a run row with the relevant document at a rank."""
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


def seconds_of(
    stage: Stage, sizes: Sequence[int], folder: Path, rounds: int, run: Callable[[Command], Sample] = measure
) -> list[float]:
    """Make the inputs of a stage below ``folder`` and return the CPU seconds of a check at each of some sizes."""
    taken = []
    for size in sizes:
        inputs = folder / stage.make.__name__ / str(size)
        inputs.mkdir(parents=True, exist_ok=True)
        stage.make(inputs, size)
        check = command(inputs)
        taken.append(min(run(check).cpu for _ in range(rounds)))
    return taken


def measure_all(folder: Path) -> list[Growth]:
    """Measure every stage at every size."""
    single = min(seconds_of(SINGLE, SINGLE.sizes, folder, ROUNDS))
    return [
        Growth(stage=one, sizes=one.sizes, seconds=seconds_of(one, one.sizes, folder, ROUNDS), single=single)
        for one in STAGES
    ]


def quick(folder: Path, stages: Sequence[Stage] = STAGES, run: Callable[[Command], Sample] = measure) -> int:
    """Measure the two larger sizes of each stage once, and what fails again; 1 if it still does."""
    single = min(seconds_of(SINGLE, SINGLE.sizes, folder, ROUNDS, run))
    failed = 0
    for stage in stages:
        faults: list[str] = []
        for rounds in (1, ROUNDS):
            seconds = seconds_of(stage, stage.sizes[-2:], folder, rounds, run)
            growth = Growth(stage=stage, sizes=stage.sizes[-2:], seconds=seconds, single=single)
            faults = growth.faults
            if not faults:
                break
        print(f"{growth.exponent:6.2f}  exponent of {stage.name}")
        for fault in faults:
            print(f"grows too fast: {fault}", file=sys.stderr)
            failed = 1
    return failed


def table(found: Sequence[Growth]) -> str:
    """Return the growth of each stage as a Markdown table, with the exponent between the two larger sizes."""
    rows = [
        f"| {one.stage.name} | {' / '.join(f'{size:,}' for size in one.sizes)} {one.stage.unit}: "
        f"{' / '.join(f'{seconds:.2f}' for seconds in one.seconds)} s | {one.exponent:.1f} |\n"
        for one in found
    ]
    return "".join(["| stage | growth | exponent |\n", "| --- | --- | ---: |\n", *rows])


def main(folder: Path, page: Path = PAGE, take: Callable[[Path], list[Growth]] = measure_all) -> int:
    """Measure, write the table into the ``page``; 1 if a stage grows too fast."""
    found = take(folder)
    written = table(found)
    page.write_text(replace_part(page.read_text(encoding="utf-8"), "growth", f"\n{written}\n"), encoding="utf-8")
    print(written, end="")
    faults = [fault for one in found for fault in one.faults]
    for fault in faults:
        print(f"grows too fast: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(FOLDER))
