"""The fuzzer finds what is planted: it cannot fail to fail."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign, Plan, Summary
from tests.fuzz.case import Case, stored
from tests.fuzz.expectations import ended_well, expect, stays_inside
from tests.fuzz.isolation import replay
from tests.fuzz.limits import MB, Limits
from tests.fuzz.sandbox import Ended, Sandbox
from tests.fuzz.targets.target import Target
from tests.fuzz.worker import Failure

LIMITS = Limits(seconds=0.4, waiting=60.0, memory=64 * MB)
IMPATIENT = Limits(seconds=60.0, waiting=1.0, memory=64 * MB)
CRASH = '  File "/x/ragcontract/files/rows.py", line 7, in read\n    x\nKeyError: {word}\n'
Run = Callable[[Sandbox, Mapping[str, bytes]], Ended]


def target(run: Run) -> Target:
    """Return a target that gets golden queries and does something with them."""

    def expectations(sandbox: Sandbox, _files: Mapping[str, bytes], ended: Ended) -> None:
        ended_well(ended)
        stays_inside(sandbox)

    return Target(
        share=1.0,
        kinds=lambda _maker: ["golden.jsonl", "questions.txt"],
        options=lambda _maker, _kinds: {"argv.json": b"[]"},
        run=run,
        expect=expectations,
    )


def campaign(run: Run, corpus: Path, *, executions: int = 1, limits: Limits = LIMITS) -> Summary:
    """Run a campaign on one planted target."""
    plan = Plan(
        seconds=60,
        executions=executions,
        targets={"planted": target(run)},
        corpus=corpus,
        limits=limits,
        tries=40,
    )
    return Campaign(plan, lambda _line: None).run()


def good(_sandbox: Sandbox, _files: Mapping[str, bytes]) -> Ended:
    return Ended(code=0, out="", err="")


def exits_3(_sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    return Ended(code=3, out="", err="Traceback\n" + CRASH.format(word=len(files["golden.jsonl"])))


def exits_139(_sandbox: Sandbox, _files: Mapping[str, bytes]) -> Ended:
    return Ended(code=139, out="", err="")


def raises(_sandbox: Sandbox, _files: Mapping[str, bytes]) -> Ended:
    raise LookupError


def loops(_sandbox: Sandbox, _files: Mapping[str, bytes]) -> Ended:
    while True:
        pass


def waits(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    time.sleep(3_600)
    return good(sandbox, files)


def hogs(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    hog = b"x" * (100 * MB)
    expect(hog, "nothing")
    return good(sandbox, files)


def hogs_all(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    hog = b"x" * (4_000 * MB)
    expect(hog, "nothing")
    return good(sandbox, files)


def dies(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    os.kill(os.getpid(), signal.SIGKILL)
    return good(sandbox, files)


def escapes(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    Path("../outside/secret").write_text("read")
    return good(sandbox, files)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (exits_3, "exit code 3: KeyError in ragcontract/files/rows.py:7 (read)"),
        (exits_139, "exit code 139"),
        (raises, "uncaught: LookupError"),
        (loops, "hangs: over 0.4 seconds"),
        (waits, "hangs: waits over 1 seconds"),
        (hogs, "memory over 64 MB"),
        (hogs_all, "uncaught: MemoryError"),
        (dies, "ended by SIGKILL"),
        (escapes, "outside of the workspace: the neighbour was changed"),
    ],
)
def test_a_planted_failure_is_found_and_stored_and_fails_again(run: Run, reason: str, tmp_path: Path) -> None:
    limits = IMPATIENT if run is waits else LIMITS
    summary = campaign(run, tmp_path, limits=limits)
    assert list(summary.failures) == [f"planted: {reason}"]
    assert summary.ended["planted failure"] >= 1
    ((name, case),) = stored(tmp_path).items()
    assert summary.failures[f"planted: {reason}"] == tmp_path / name
    again = replay(case, limits, {"planted": target(run)})
    assert isinstance(again, Failure)
    assert again.reason == reason


def test_what_is_as_it_should_be_is_no_failure(tmp_path: Path) -> None:
    summary = campaign(good, tmp_path, executions=20)
    assert summary.failures == {}
    assert stored(tmp_path) == {}
    assert set(summary.ended) == {"planted 0"}


def test_no_more_executions_are_counted_than_were_made(tmp_path: Path) -> None:
    counter = tmp_path / "counter"

    def counts(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
        with counter.open("ab") as file:
            file.write(b"x")
        return good(sandbox, files)

    summary = campaign(counts, tmp_path / "corpus", executions=50)
    assert 50 <= summary.executions <= counter.stat().st_size


def test_a_failing_case_is_stored_as_small_as_it_becomes(tmp_path: Path) -> None:
    def fails_on_a_question(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
        return good(sandbox, files) if b"?" not in files.get("questions.txt", b"") else exits_139(sandbox, files)

    campaign(fails_on_a_question, tmp_path, executions=200)
    (case,) = stored(tmp_path).values()
    assert case.files == {"argv.json": b"[]", "questions.txt": b"?"}


def test_a_failure_that_needs_the_cases_before_it_is_stored_and_marked(tmp_path: Path) -> None:
    ran: list[int] = []

    def fails_the_second_time(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
        ran.append(1)
        return good(sandbox, files) if len(ran) == 1 else exits_139(sandbox, files)

    summary = campaign(fails_the_second_time, tmp_path, executions=2)
    assert list(summary.failures) == ["planted: exit code 139 (only after other cases)"]


def test_what_a_case_prints_may_be_more_than_a_pipe_holds() -> None:
    def prints(_sandbox: Sandbox, _files: Mapping[str, bytes]) -> Ended:
        return Ended(code=0, out="x" * 1_000_000, err="")

    case = Case(target="planted", files={"argv.json": b"[]"})
    ended = replay(case, LIMITS, {"planted": target(prints)})
    assert isinstance(ended, Ended)
    assert len(ended.out) == 1_000_000


def test_a_bug_of_the_fuzzer_is_no_failure_of_the_program(tmp_path: Path) -> None:
    broken = Target(share=1.0, kinds=lambda _maker: [], options=dict, run=good, expect=lambda *_: None)  # type: ignore[arg-type]
    plan = Plan(seconds=60, executions=1, targets={"planted": broken}, corpus=tmp_path)
    with pytest.raises(RuntimeError, match="the fuzzer has a bug"):
        Campaign(plan, lambda _line: None).run()


def test_the_summary_counts_by_target_and_exit_code(tmp_path: Path) -> None:
    lines = campaign(exits_139, tmp_path, executions=1).lines()
    assert " executions in " in lines[0]
    assert lines[1].split()[0] == "planted"
    assert "failure: " in lines[1]
    assert lines[-2] == "  planted: exit code 139"
    assert Case.load(Path(lines[-1].strip())).target == "planted"
