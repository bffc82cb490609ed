import sys
from pathlib import Path

import pytest

from benchmarks.rounds import ENOUGH, LEAST, Command, Sample, Samples, interleaved, measure, middle, ratio
from tests.benchmarks.builders import sample


def command(name: str, log: str = "") -> Command:
    return Command(arguments=[sys.executable, "-c", name], folder=".", log=log)


def test_commands_take_turns() -> None:
    order: list[str] = []

    def run(command: Command) -> Sample:
        order.append(command.arguments[-1])
        return sample()

    interleaved({"a": command("a"), "b": command("b")}, 3, run)
    assert order == ["a", "b"] * 3


def test_a_slow_command_sits_out_the_last_rounds() -> None:
    walls = {"slow": ENOUGH, "fast": 0.1}
    taken = interleaved({name: command(name) for name in walls}, 9, lambda each: sample(walls[each.arguments[-1]]))
    assert {name: len(found) for name, found in taken.items()} == {"slow": LEAST, "fast": 9}


def test_a_ratio_is_the_median_of_those_within_the_rounds_that_both_took_part_in() -> None:
    samples: Samples = {
        "one": [sample(2), sample(40), sample(3)],
        "other": [sample(1), sample(10), sample(1), sample(100), sample(100)],
    }
    assert ratio(samples, "one", "other") == 3
    assert ratio(samples, "other", "one") == pytest.approx(1 / 3)
    assert middle(samples["other"], "wall") == 10


def test_a_measured_process_counts_itself_and_its_children_alone(tmp_path: Path) -> None:
    grab = "import os, sys\nchild = os.fork()\nif not child: bytearray(60_000_000); sys.exit()\nos.waitpid(child, 0)"
    held = b"x" * 200_000_000  # of the process that measures
    small, parent = (measure(command(program, str(tmp_path / "log"))) for program in ("pass", grab))
    assert len(held) > small.peak
    assert parent.peak > small.peak + 50_000_000
    assert small.cpu > 0
    assert small.wall > 0


def test_a_failing_command_says_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"exits 3:\nout of luck"):
        measure(command("print('out of luck'); raise SystemExit(3)", str(tmp_path / "log")))
