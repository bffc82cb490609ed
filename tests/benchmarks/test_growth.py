from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.growth import Growth
from benchmarks.rounds import Command, Sample
from benchmarks.stages import Stage
from tests.benchmarks.builders import sample

STAGE = Stage(name="n by n", unit="rows", sizes=(1_000, 2_000, 4_000), make=growth.single_query, most=50)


def grown(*seconds: float) -> Growth:
    return Growth(stage=STAGE, sizes=STAGE.sizes, seconds=seconds, single=0.1)


def test_the_table_has_the_sizes_the_seconds_and_the_exponent_of_each_stage() -> None:
    assert growth.table([grown(0.25, 0.5, 1.0), grown(0.25, 1.0, 4.0)]).splitlines()[2:] == [
        "| n by n | 1,000 / 2,000 / 4,000 rows: 0.25 / 0.50 / 1.00 s | 1.0 |",
        "| n by n | 1,000 / 2,000 / 4,000 rows: 0.25 / 1.00 / 4.00 s | 2.0 |",
    ]


def test_a_stage_fails_that_is_quadratic_or_slow() -> None:
    assert grown(0.25, 0.5, 1.0).faults == []
    assert grown(0.1, 0.4, 1.3).faults == ["n by n: 3.2 times as long at twice the size, at most 3 is linear"]
    assert grown(2.0, 4.0, 8.0).faults == ["n by n: as long as 80 checks of a single query, 50 are allowed"]


def answers(*seconds: float) -> Iterator[Sample]:
    return (sample(1, cpu=cpu) for cpu in seconds)


@pytest.mark.parametrize(
    ("seconds", "code"),
    [((0.5, 1.0), 0), ((0.5, 2.0, *[0.5] * 3, *[1.0, 2.0, 2.0]), 0), ((0.5, 2.0, *[0.5] * 3, *[2.0] * 3), 1)],
    ids=["linear", "noise", "quadratic"],
)
def test_what_grows_too_fast_is_measured_again_before_it_fails(
    seconds: tuple[float, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = answers(*[0.1] * growth.ROUNDS, *seconds)

    def run(_: Command) -> Sample:
        return next(taken)

    assert growth.quick(tmp_path, [STAGE], run) == code
    assert ("grows too fast: n by n" in capsys.readouterr().err) == bool(code)


def test_the_page_gets_the_table_and_the_exit_code_says_whether_all_is_linear(tmp_path: Path) -> None:
    page = tmp_path / "growth.md"
    page.write_text(growth.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert growth.main(tmp_path, page, lambda _: [grown(0.25, 0.5, 1.0)]) == 0
    once = page.read_text(encoding="utf-8")
    assert "| n by n | 1,000 / 2,000 / 4,000 rows" in once
    assert growth.main(tmp_path, page, lambda _: [grown(0.25, 0.5, 1.0)]) == 0
    assert page.read_text(encoding="utf-8") == once
    assert growth.main(tmp_path, page, lambda _: [grown(0.25, 0.5, 5.0)]) == 1


@pytest.mark.parametrize("stage", growth.STAGES, ids=lambda stage: stage.make.__name__)
def test_each_stage_is_an_input_that_can_be_checked(stage: Stage, tmp_path: Path) -> None:
    assert stage.sizes[1] == 2 * stage.sizes[0]
    assert stage.sizes[2] == 2 * stage.sizes[1]
    assert len(growth.seconds_of(stage, [4], tmp_path, 1)) == 1
    log = (tmp_path / stage.make.__name__ / "4" / "log").read_text()
    faulty = stage.make in {growth.blank_lines, growth.faults_in_a_row}
    assert ("error: " in log) == faulty
    if not faulty:
        assert (tmp_path / stage.make.__name__ / "4" / "report.html").is_file()
