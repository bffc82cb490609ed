"""The benchmark of recordings: what is measured is a recording, and its table says what was measured."""

from pathlib import Path

from benchmarks.recording import Trial, command, main
from benchmarks.rounds import Command, Sample, measure

SMALL = Trial(questions=20, at_a_time=4, seconds=0.001)


def test_the_command_is_a_recording_that_writes_its_run(tmp_path: Path) -> None:
    sample = measure(command(SMALL, tmp_path))
    assert sample.exit_code == 0
    assert len((tmp_path / "current_run.jsonl").read_text().splitlines()) == 20


def test_the_table_is_written_into_the_page(tmp_path: Path) -> None:
    def took(_: Command) -> Sample:
        return Sample(wall=0.01, cpu=0.004, peak=30 << 20, exit_code=0)

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin: recording -->\nold\n<!-- end -->\nafter\n")
    main(tmp_path, page, [SMALL, Trial(questions=20, at_a_time=1, seconds=0)], took)
    text = page.read_text()
    assert "| 20 | 4 | 1 ms | 2,000 | 50% | 0.20 ms | 30 MiB |" in text
    assert "| 20 | 1 | 0 ms | 2,000 | - | 0.20 ms | 30 MiB |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
