"""How a check grows with inputs that cost one stage most: `python -m benchmarks.growth` (`make bench-growth`).

Each input is checked at three sizes, each twice the one before, with every report. What counts is the CPU time of the
whole process, the smallest of ``ROUNDS`` runs. A stage fails that takes more than ``MOST`` times as long at twice the
size (one that is linear takes at most twice as long, one that is quadratic up to four times), or that takes longer than
its limit, in checks of a single query. `make bench-quick` measures the two larger sizes once, and what fails again.
"""

import sys
from collections.abc import Callable, Sequence
from math import log2
from pathlib import Path

from msgspec import Struct

from benchmarks.answer_stages import ANSWER_STAGES
from benchmarks.environments import ROOT
from benchmarks.rounds import Command, Sample, measure
from benchmarks.stages import Stage, golden_row, id_of, ranked, run_row, waiver, write_config, write_lines
from scripts.docs import replace_part

MOST = 3.0
ROUNDS = 3
FOLDER = ROOT / "build" / "benchmarks" / "growth"
PAGE = ROOT / "docs" / "contributing" / "growth.md"
PROGRAM = "from ragcontract.guard import entry_point; entry_point()"


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
    write_lines(folder, "golden", [golden_row(number) for number in range(size)])
    write_lines(folder, "current_run", [run_row(number) for number in range(size)])


def blank_lines(folder: Path, size: int) -> None:
    """Write a baseline with faulty queries, preceded by ``size`` blank lines."""
    write_lines(folder, "golden", [golden_row(0)])
    write_lines(folder, "current_run", [run_row(0)])
    faulty = b'{"format_version":1,"queries":[' + b",".join([b'{"id":1}'] * 60) + b"]}"
    (folder / "baseline.json").write_bytes(b"\n" * size + faulty)


def relevant_by_results(folder: Path, size: int) -> None:
    """Write a query with ``size`` relevant documents, all of which are retrieved, last one first."""
    documents = [f"document-{number:09}" for number in range(size)]
    write_lines(
        folder, "golden", [golden_row(0) | {"relevant_doc_ids": documents, "forbidden_doc_ids": documents[:10]}]
    )
    write_lines(folder, "current_run", [run_row(0, reversed(documents))])
    write_lines(folder, "baseline", [run_row(0, documents)])


def near_waivers(folder: Path, size: int) -> None:
    """Write 2,000 queries, and ``size`` waivers that misspell the id of one."""
    write_lines(folder, "golden", [golden_row(number) for number in range(2_000)])
    write_lines(folder, "current_run", [run_row(number) for number in range(2_000)])
    write_config(
        folder, waivers=[waiver(query=f"{id_of(number)}x".replace("query", "qeury")) for number in range(size)]
    )


def waived_queries(folder: Path, size: int) -> None:
    """Write 20,000 broken queries, and ``size`` waivers of them."""
    write_lines(folder, "golden", [golden_row(number) for number in range(20_000)])
    write_lines(folder, "current_run", [run_row(number, ["other"]) for number in range(20_000)])
    write_config(folder, waivers=[waiver(query=id_of(number)) for number in range(size)])


def limited_tags(folder: Path, size: int) -> None:
    """Write 50 queries with ``size`` tags each, and limits on all tags of the last one, which no other has."""
    shared, own = ([f"{kind} tag {number}" for number in range(size)] for kind in ("shared", "own"))
    tags = [*[shared] * 49, own]
    write_lines(folder, "golden", [golden_row(number) | {"tags": having} for number, having in enumerate(tags)])
    write_lines(
        folder, "current_run", [run_row(number, [f"other {number % 3}", f"document-{number}"]) for number in range(50)]
    )
    write_lines(folder, "baseline", [run_row(number) for number in range(50)])
    write_config(folder, tags={tag: {"minimums": {"mrr_at_k": 0.4}, "fail_on": {"mrr_drop_gt": 0.6}} for tag in own})


def faults_in_a_row(folder: Path, size: int) -> None:
    """Write a run row with ``size`` results, none of which is an object."""
    write_lines(folder, "golden", [golden_row(0)])
    write_lines(folder, "current_run", [{"query_id": id_of(0), "results": [0] * size}])


def same_p_values(folder: Path, size: int) -> None:
    """Write 1,000 queries of different weights with the same ``size`` tags, and limits on their significant drops."""
    tags = [f"tag {number}" for number in range(size)]
    weighted = ({"weight": 1 + number / 1_000, "tags": tags} for number in range(1_000))
    write_lines(folder, "golden", [golden_row(number) | fields for number, fields in enumerate(weighted)])
    worse = [number % 100 < 53 for number in range(1_000)]  # noqa: PLR2004 (about half, so that p has to be sampled)
    write_lines(folder, "current_run", [ranked(number, 1 + fell) for number, fell in enumerate(worse)])
    write_lines(folder, "baseline", [ranked(number, 2 - fell) for number, fell in enumerate(worse)])
    limits = {tag: {"fail_on": {"mrr_drop_gt": 0.01}} for tag in tags}
    write_config(folder, tags=limits, fail_on={"mode": "significant"})


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
    *ANSWER_STAGES,
)


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
