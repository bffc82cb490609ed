"""What an earlier version stored is read with the same result: ``write`` wrote the folders beside this file."""

import json
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragcontract import __version__
from tests.compat.write import JUDGE_PORT, JUDGMENTS, judge_options, state
from tests.github import relayed
from tests.github.standin import GitHub
from tests.judge_server import JudgeServer
from tests.process import spawn
from tests.runner import InProcess

STORED = sorted(path for path in Path(__file__).parent.iterdir() if (path / "documents").is_dir())
OF_THE_CHECK = {"tool", "created_at", "age_days", "at", "environment"}  # when and by what, not what came of it
FOR_PEOPLE = {"summary"}  # its words may change

pytestmark = pytest.mark.parametrize("stored", STORED, ids=lambda folder: folder.name)


def copied(folder: Path, to: Path) -> Path:
    """Copy stored files; a calibration is of today, because an old one does not count."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    calibration = to / "judge-calibration.json"
    if calibration.exists():
        content = json.loads(calibration.read_text())
        for task in content["calibrations"]:
            task["at"] = datetime.now(UTC).isoformat(timespec="seconds")
        calibration.write_text(json.dumps(content))
    return to


def differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield where a report does not say what an earlier one says; a later version may say more."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before.keys() - OF_THE_CHECK - FOR_PEOPLE:
            if name not in now:
                yield f"{where}.{name}: is missing"
            else:
                yield from differences(before[name], now[name], f"{where}.{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for at, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{where}[{at}]")
    elif before != now:
        yield f"{where}: was {before!r}, is {now!r}"


@pytest.mark.parametrize("contract", ["documents", "answers"])
def test_a_check_against_its_baseline_comes_to_the_same(stored: Path, contract: str, tmp_path: Path) -> None:
    folder = copied(stored / contract, tmp_path / "work")
    (folder / "report.json").unlink()
    judgments = JUDGMENTS if contract == "answers" else ()
    ended = spawn("check", "--baseline", "baseline.json", "--report-html", "report.html", *judgments, cwd=folder)
    assert ended.code == 1, ended
    before, now = (json.loads((path / "report.json").read_text()) for path in (stored / contract, folder))
    assert list(differences(before, now)) == []


@pytest.mark.parametrize("contract", ["documents", "answers"])
def test_its_report_is_posted_by_the_second_workflow(stored: Path, contract: str, tmp_path: Path) -> None:
    with GitHub() as github:
        github.add_pull(7, sha=relayed.HEAD, head="stranger/app")
        report = relayed.of_commit((stored / contract / "report.json").read_bytes())  # the command line stored it
        result = relayed.relayed(InProcess(tmp_path, github), report)
        assert result.exit_code == 0, result
        assert " state=fail " in github.bodies()[0]
        assert all(name in github.bodies()[0] for name in ("q1", "q2"))


def test_a_recording_goes_on_with_the_answers_of_its_journal(stored: Path, tmp_path: Path) -> None:
    folder = copied(stored / "recording", tmp_path / "work")
    (folder / "up").touch()
    header = json.loads((folder / ".current_run.jsonl.journal").read_text().partition("\n")[0])
    ended = spawn("record", "app.py:find", cwd=folder)
    if header["tool"] != __version__:  # another version may record something else
        assert (ended.code, "throw them away with --fresh" in ended.err) == (2, True), ended
        return
    assert (ended.code, "3 of 4 answers reused" in ended.err) == (0, True), ended
    rows, before = (
        [json.loads(line) for line in (folder / name).read_text().splitlines()]
        for name in ("current_run.jsonl", "expected_run.jsonl")
    )
    for row in [*rows, *before]:
        del row["latency_ms"]
    assert list(differences(before, rows)) == []


def test_a_judging_asks_only_what_its_journal_lacks(stored: Path, tmp_path: Path) -> None:
    folder = copied(stored / "judging", tmp_path / "work")
    (folder / "state" / "rag-contract" / "judge.key").chmod(0o600)  # a key that Git has brought does not count
    with server() as judge:
        ended = spawn("judge", *judge_options(judge), cwd=folder, environ=state(folder))
        assert (ended.code, len(judge.asked)) == (0, 1), ended
    rows = [json.loads(line) for line in (folder / "judgments.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in rows] == [True] * 4


def test_its_labels_calibrate_the_judge_as_they_did(stored: Path, tmp_path: Path) -> None:
    folder = copied(stored / "answers", tmp_path / "work")
    before = json.loads((folder / "judge-calibration.json").read_text())
    with server() as judge:
        ended = spawn("judge", "calibrate", *judge_options(judge), cwd=folder, environ=state(folder))
    assert ended.code == 0, ended
    assert list(differences(before, json.loads((folder / "judge-calibration.json").read_text()))) == []


def server() -> JudgeServer:
    """Return a judge at the address that is part of what was stored, once nobody else has it."""
    while True:
        try:
            return JudgeServer(port=JUDGE_PORT)
        except OSError:
            time.sleep(0.1)
