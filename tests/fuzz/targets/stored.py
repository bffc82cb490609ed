"""A baseline that was written is read again: whatever was judged once can be compared with itself, and has not fallen.

The commands are in the case's ``argv.json``, one after the other; each runs only if the one before it ended with 0.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from ragcontract.cli.main import main
from ragcontract.guard import guarded
from ragcontract.report.record import Report
from tests.fuzz import expectations
from tests.fuzz.expectations import expect
from tests.fuzz.generate.values import Maker
from tests.fuzz.sandbox import Ended, Sandbox, captured
from tests.fuzz.targets.command_line import ARGV, COMMON, flags
from tests.fuzz.targets.target import Target

BASELINE = "written.json"


def run(_sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    """Run the commands; what is returned is of the last one that ran."""
    for argv in json.loads(files[ARGV]):
        with captured() as texts:
            code = guarded(lambda argv=argv: main(argv), sys.stderr)  # type: ignore[misc]
            out, err = texts()
        if code:
            break
    return Ended(code=code, out=out, err=err)


def _kinds(maker: Maker) -> list[str]:
    config = () if maker.chance(0.1) else ("ragcontract.yml",)
    return [*COMMON, *config, *(("scores.jsonl",) if maker.about_answers and maker.scores_apart else ())]


def _options(maker: Maker, kinds: list[str]) -> Mapping[str, bytes]:
    scores = ["--scores", "scores.jsonl"] if "scores.jsonl" in kinds else []
    options = [*flags(maker), *scores]
    update = [["baseline", "--out", BASELINE, "--update", *options]] if maker.chance(0.3) else []
    commands = [["baseline", "--out", BASELINE, *options], *update, ["check", "--baseline", BASELINE, *options]]
    return {ARGV: json.dumps(commands).encode()}


def _expect(sandbox: Sandbox, _files: Mapping[str, bytes], ended: Ended) -> None:
    """Expect that the baseline is no problem, and that nothing has changed since."""
    expectations.ended_well(ended, {0, 1, 2})
    expectations.stays_inside(sandbox)
    expectations.is_plain(ended.out + ended.err)
    if not Path(BASELINE).exists():
        return
    problems = [line for line in ended.err.splitlines() if line.startswith(f"error: {BASELINE}")]
    expect(ended.code != 2 or not problems, "a baseline that was written cannot be read")
    if Path("report.json").exists():
        report = expectations.report_json(Path("report.json"))
        gates = report.gates if isinstance(report, Report) else ()
        fallen = [gate for gate in gates if gate.id.split(".")[-1].endswith("_gt") and gate.status == "fail"]
        expect(not fallen, "a run has fallen below itself")


STORED = Target(share=0.1, kinds=_kinds, options=_options, run=run, expect=_expect)
