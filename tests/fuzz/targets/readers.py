"""The readers of single files, each called by itself: forty of them run in the time of one check."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.errors import InputError
from ragcontract.core.run import row_type
from ragcontract.files.problems import Collector, MoreProblems, Problem, Problems, Warned
from ragcontract.github.context import Context
from ragcontract.judge.calibration_run import read_labels
from ragcontract.judgments.calibration import read_calibration
from ragcontract.judgments.judgments_file import read_judgments
from ragcontract.registry import BUILT_IN
from ragcontract.runs.readers import RunEvent, open_baseline, open_run
from tests.fuzz.expectations import expect
from tests.fuzz.generate.values import Maker
from tests.fuzz.sandbox import Ended, Sandbox
from tests.fuzz.targets.target import Target

SHOWN, LONGEST = 50, 2_100
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _problems_in(events: Iterable[RunEvent]) -> Problems:
    found = Collector()
    for event in events:
        if isinstance(event, Problem | MoreProblems | Warned):
            found.add(event)
    return found.collected()


def _of_event(path: str) -> Problems:
    context = Context.from_environ({"GITHUB_EVENT_PATH": path, "GITHUB_EVENT_NAME": "pull_request"})
    assert isinstance(context.commit, str)
    return Problems(problems=(f"{path}: {context.event_problem}",) if context.event_problem else ())


def _none_in(read: Callable[[str], object]) -> Callable[[str], Problems]:
    """Return a reader that has no problems if it does not raise them."""

    def found(path: str) -> Problems:
        read(path)
        return Problems()

    return found


READERS: Mapping[str, Callable[[str], Problems]] = {
    "golden.jsonl": lambda path: read_golden([path], BUILT_IN).problems,
    "current_run.jsonl": lambda path: _problems_in(open_run([path]).events(row_type(frozenset()))),
    "baseline.json": lambda path: _problems_in(open_baseline([path]).events(row_type(frozenset()), with_metrics=True)),
    "ragcontract.yml": lambda path: read_config(path, BUILT_IN).problems,
    "event.json": _of_event,
    "judgments.jsonl": lambda path: read_judgments([path], now=NOW).problems,
    "labels.jsonl": _none_in(lambda path: read_labels([path])),
    "judge-calibration.json": _none_in(read_calibration),
}


def run(_sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    """Read the file."""
    (name,) = files
    try:
        found = READERS[name](name)
    except InputError as error:
        found = Problems(problems=tuple(error.problems), more=error.more)
    return Ended(code=2 if found else 0, out="\n".join(found.problems), err="\n".join(found.warnings))


def expect_of_reader(_sandbox: Sandbox, files: Mapping[str, bytes], ended: Ended) -> None:
    """Expect problems that name the file, are few and short, and can be written."""
    (name,) = files
    problems = ended.out.split("\n") if ended.code else []
    expect(len(problems) <= SHOWN or "\n" in ended.out, "too many problems")
    expect(ended.out.startswith(name) or not problems, "a problem without its file")
    expect(len(ended.out) <= SHOWN * LONGEST, "problems that are too long")
    may_be_empty = name == "judgments.jsonl"
    expect(may_be_empty or Path(name).stat().st_size > 0 or ended.code != 0, "an empty file was accepted")


def _one(maker: Maker) -> list[str]:
    # A configuration takes ten times as long as the others: its record is made anew from its cut-offs.
    return [maker.pick(tuple(READERS)) if maker.chance(0.3) else maker.pick(tuple(READERS)[:3])]


# Four in five executions are of a reader, so most bytes that a file can hold are seen where they are read first.
READ = Target(share=4.0, kinds=_one, options=lambda _maker, _kinds: {}, run=run, expect=expect_of_reader)
