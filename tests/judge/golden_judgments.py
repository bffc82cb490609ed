"""Writes the judgments of golden cases: ``python -m tests.judge.golden_judgments [FOLDER …]``, by default of all.

A careful reader judges the inputs of each folder, at a time of long ago, and with ``--calibrate`` a calibration of that
reader is written, too. Its time is ``NOW``: ``test_cases.py`` puts the time in, because an old one does not count.
"""

import random
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ragcontract.contract.config_file import read_config
from ragcontract.core.config_sections import LabelCounts
from ragcontract.judge.interface import VoteSettings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.run_cases import read_cases
from ragcontract.judgments.calibration import FORMAT_VERSION, CalibrationFile, calibrated
from ragcontract.judgments.judgments_file import Judgment, write_judgments
from ragcontract.registry import BUILT_IN
from tests.judge.judges import Model, honestly

CASES = Path(__file__).parents[1] / "cases"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def judge(folder: Path, *, calibrate: bool) -> None:
    """Write what a careful reader says of the inputs in a folder, and perhaps how well it agrees with people."""
    config = read_config(str(folder / "ragcontract.yml"), BUILT_IN)
    cases = read_cases([str(folder / "golden.jsonl")], [str(folder / "current_run.jsonl")], config).cases
    dice = random.Random(1)
    made = [one for case in cases for one in judge_case(case, Model(honestly), VoteSettings(), dice, lambda: AT)]
    write_judgments(str(folder / "judgments.jsonl"), made)
    if calibrate:
        (folder / "judge-calibration.json").write_bytes(_calibration(made))


def _calibration(judgments: Iterable[Judgment]) -> bytes:
    prints = {one.task: one.fingerprint for one in judgments if one.model}
    counts = LabelCounts(tp=48, fp=2, fn=3, tn=47)
    calibrations = [calibrated(task, counts, fingerprint=by, at=AT) for task, by in sorted(prints.items())]
    file = CalibrationFile(format_version=FORMAT_VERSION, calibrations=tuple(calibrations))
    data = msgspec.json.encode(file).replace(b"2026-01-02T03:04:05Z", b"NOW")
    return msgspec.json.format(data, indent=2) + b"\n"


if __name__ == "__main__":
    named = [Path(name) for name in sys.argv[1:] if name != "--calibrate"]
    for one in named or [path.parent for path in CASES.glob("*/judgments.jsonl")]:
        judge(one, calibrate="--calibrate" in sys.argv)
