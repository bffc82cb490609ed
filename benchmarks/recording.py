"""How fast and how large a recording is: `python -m benchmarks.recording` (`make bench-record`).

The system is a service over HTTP on this machine, or a Python function that sleeps as long as a service takes, so that
what is measured is ours: the loop, the journal, the run. Throughput stands beside the ideal, which is calls at a time /
seconds a call; memory is the peak of the recording's process. The table goes into docs/guides/record.md.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from benchmarks.environments import ROOT
from benchmarks.growth import PROGRAM
from benchmarks.rounds import Command, Sample, measure
from scripts.docs import replace_part

FOLDER = ROOT / "build" / "benchmarks" / "recording"
PAGE = ROOT / "docs" / "guides" / "record.md"
SYSTEM = """
import time

TEXT = "Returns. " * 20
RESULTS = [{{"doc_id": f"document-{{number}}", "score": 1.0 - number / 20, "text": TEXT}} for number in range(10)]

def search(query):
    time.sleep({seconds})
    return RESULTS
"""


COLUMNS = (
    "system",
    "questions",
    "calls at a time",
    "a call takes",
    "questions a second",
    "of the ideal",
    "CPU a question",
    "peak memory",
)


SERVICE = """
http:
  url: http://127.0.0.1:{port}/search
  json: {{question: "{{query}}", size: "{{top}}"}}
  response: {{results: results}}
"""


class Trial(Struct, frozen=True, kw_only=True):
    """A recording to measure: of so many questions, with so many calls at a time that take so many seconds."""

    system: Literal["function", "HTTP"] = "function"
    questions: int
    at_a_time: int
    seconds: float

    @property
    def ideal(self) -> float | None:
        """The questions a second that the system allows; None if it takes no time."""
        return self.at_a_time / self.seconds if self.seconds else None


TRIALS = (
    Trial(system="HTTP", questions=10_000, at_a_time=16, seconds=0.05),
    Trial(questions=10_000, at_a_time=16, seconds=0.05),
    Trial(questions=1_000, at_a_time=16, seconds=0),
    Trial(questions=100_000, at_a_time=16, seconds=0),
)


@contextmanager
def serving(trial: Trial) -> Iterator[int]:
    """Run the service of a trial, and yield its port; 0 if it has none."""
    if trial.system == "function":
        yield 0
        return
    program = [sys.executable, str(Path(__file__).parent / "slow_service.py"), str(trial.seconds)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as service:
        try:
            yield int(service.stdout.readline()) if service.stdout else 0
        finally:
            service.terminate()


def command(trial: Trial, folder: Path, port: int = 0) -> Command:
    """Write the questions and the system of a trial into a folder, and return its recording."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in (".current_run.jsonl.journal", "current_run.jsonl"):
        (folder / left).unlink(missing_ok=True)
    rows = (
        {
            "id": f"query {number:06}",
            "query": f"What about refunds of annual plans, case {number}?",
            "relevant_doc_ids": [],
        }
        for number in range(trial.questions)
    )
    (folder / "golden.jsonl").write_bytes(b"".join([msgspec.json.encode(row) + b"\n" for row in rows]))
    (folder / "system.py").write_text(SYSTEM.format(seconds=trial.seconds))
    (folder / "service.yml").write_text(SERVICE.format(port=port))
    target = "service.yml" if port else "system.py:search"
    options = ["--concurrency", str(trial.at_a_time), "--progress-every-seconds", "0"]
    return Command(
        arguments=[sys.executable, "-c", PROGRAM, "record", target, *options],
        folder=str(folder),
        log=str(folder / "log"),
        environ={"PYTHONPATH": str(ROOT)},
    )


def table(trials: Sequence[Trial], samples: Sequence[Sample]) -> str:
    """Return what was measured as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |\n", f"| {' | '.join(['---:'] * len(COLUMNS))} |\n"]
    for trial, sample in zip(trials, samples, strict=True):
        rate = trial.questions / sample.wall
        share = "-" if trial.ideal is None else f"{rate / trial.ideal:.0%}"
        each = f"{sample.cpu / trial.questions * 1000:.2f} ms"
        takes = f"{trial.seconds * 1000:g} ms"
        cells = [
            trial.system,
            f"{trial.questions:,}",
            trial.at_a_time,
            takes,
            f"{rate:,.0f}",
            share,
            each,
            f"{sample.peak >> 20} MiB",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |\n")
    return "".join(lines)


def main(
    folder: Path = FOLDER,
    page: Path = PAGE,
    trials: Sequence[Trial] = TRIALS,
    take: Callable[[Command], Sample] = measure,
) -> None:
    """Measure, and write the table into the page."""
    samples = []
    for trial in trials:
        with serving(trial) as port:
            samples.append(take(command(trial, folder / f"{trial.system}-{trial.questions}-{trial.seconds}", port)))
    written = table(trials, samples)
    page.write_text(replace_part(page.read_text(encoding="utf-8"), "recording", f"\n{written}\n"), encoding="utf-8")
    print(written, end="")


if __name__ == "__main__":
    main()
