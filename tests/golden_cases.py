"""The folders of golden cases, for tests that run them: see ``test_cases.py``."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

CASES = Path(__file__).parent / "cases"


def copied(case: Path, folder: Path, now: datetime | None = None) -> None:
    """Copy the inputs of a case; a calibration is of ``now``, or of today, because an old one does not count."""
    shutil.copytree(case, folder, ignore=shutil.ignore_patterns("expected"), dirs_exist_ok=True)
    calibration = folder / "judge-calibration.json"
    if calibration.exists():
        at = (now or datetime.now(UTC)).isoformat(timespec="seconds")
        calibration.write_text(calibration.read_text().replace('"NOW"', f'"{at}"'))
