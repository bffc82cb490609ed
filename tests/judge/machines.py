"""A check that replays judgments, on machines that differ in all that a report could pick up."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.judgment_files import write_good_calibration
from tests.process import COMMAND

REPORTS = ("report.md", "report.json", "junit.xml")
TIME = b"the time of the check"
ROOT = str(Path(__file__).parents[2])
# What a process is given; nothing of ours is added to it. Each machine has a folder, a home and a user of its own.
MACHINES: Mapping[str, Mapping[str, str]] = {
    "ann's desk": {"TZ": "Pacific/Kiritimati", "LANG": "C", "PYTHONHASHSEED": "1", "USER": "ann", "LOGNAME": "ann"},
    "a-runner": {
        "TZ": "America/Adak",
        "LANG": "tr_TR.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "2",
        "USER": "runner",
        "LOGNAME": "runner",
        "COLUMNS": "40",
        "CI": "true",
        "RAG_CONTRACT_JUDGE_KEY": "a-key-that-is-not-needed",
        "RAG_CONTRACT_JUDGE_URL": "http://judge.invalid/v1",
    },
}


def give_a_limit(folder: Path) -> None:
    """Write a limit on what was judged in a folder, and a calibration of the judge that did it."""
    first = json.loads((folder / "judgments.jsonl").read_text().partition("\n")[0])
    (folder / "ragcontract.yml").write_text("minimums: {context_recall: 0.9}\n")
    write_good_calibration(folder, fingerprint=first["fingerprint"])


def differing(judged: Path, beside: Path) -> list[str]:
    """Check copies of a folder on all machines; return the reports that are not byte-identical but for their time."""
    found = [replay(judged, beside / name, environ) for name, environ in MACHINES.items()]
    return [name for name in found[0] if len({reports[name] for reports in found}) > 1]


def replay(judged: Path, machine: Path, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Check a copy of a folder's inputs; return the exit code, the output and the reports, without their time."""
    work, home = machine / "work", machine / "home"
    home.mkdir(parents=True)
    inputs = {"golden.jsonl", "current_run.jsonl", "ragcontract.yml", "judgments.jsonl", "judge-calibration.json"}
    shutil.copytree(judged, work, ignore=lambda _, names: set(names) - inputs)
    files = ("--judgments", "judgments.jsonl", "--calibration", "judge-calibration.json")
    ended = subprocess.run(
        [*COMMAND, "check", *files],
        cwd=work,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ROOT, "HOME": str(home), **environ},
        capture_output=True,
        check=False,
    )
    reports = {name: (work / name).read_bytes() for name in REPORTS}
    time = json.loads(reports["report.json"])["created_at"].encode()
    for name, written in {"report.json": b'"created_at": "%s"' % time, "report.md": b"`%s`" % time}.items():
        assert reports[name].count(written) == 1
        reports[name] = reports[name].replace(written, TIME)
    assert list(home.iterdir()) == []
    printed = {"exit code": b"%d" % ended.returncode, "output": ended.stdout, "errors": ended.stderr}
    return printed | reports
