"""The action, with inputs and the runner's variables from ``environ.json``, an event, and answers of GitHub."""

import io
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ragcontract import action
from ragcontract.github.delivery import World
from ragcontract.guard import guarded
from ragcontract.net.pacing import Timing
from tests.fuzz import expectations
from tests.fuzz.expectations import Broken, expect
from tests.fuzz.generate.kinds import LABEL, SHA
from tests.fuzz.generate.values import Maker
from tests.fuzz.sandbox import SECRET, Ended, Sandbox, captured
from tests.fuzz.targets.github import API, Session
from tests.fuzz.targets.target import Target
from tests.github.standin import TOKEN
from tests.runner import ROOT, declared_inputs, parse_annotations, parse_file_command

ENVIRON, LINKS = "environ.json", "links.json"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
DECLARED: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
DEFAULTS = declared_inputs({})
EVENTS = (
    "pull_request",
    "pull_request",
    "pull_request",
    "push",
    "workflow_run",
    "workflow_dispatch",
    "issue_comment",
    "x",
)
OUTPUT_PATHS = (
    "report.md",
    "out/report.md",
    "report.json",
    "../outside/new",
    "golden.jsonl",
    "out/",
    "",
    "a/../b",
    "x" * 300,
)
INPUT_PATHS = (
    "golden.jsonl",
    "current_run.jsonl",
    "*.jsonl",
    "**",
    "../outside/secret",
    "none",
    "[",
    "$home/workspace/golden.jsonl",
)
FLAGS = ("true", "false", "yes", "")
CHOICES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("report-md", "report-json", "junit", "report-html", "report-v2", "comment-body-file"), OUTPUT_PATHS
    ),
    **dict.fromkeys(("golden", "run", "baseline", "config"), INPUT_PATHS),
    **dict.fromkeys(("repeats", "comment-required", "enforce"), FLAGS),
    "comment": ("always", "on-change", "on-failure", "never", "x"),
    "report-json-detail": ("failed", "changed", "all", "x"),
    "k": ("1", "3", "10", "0", "1000000000", "x", "٣"),
    "tag": ("tag0", "tag0\ntag1", "x"),
    "pull-request": ("7", "0", "8", "x", "9" * 30),
    "github-timeout": ("1", "10", "3600", "0", "x"),
    "working-directory": (".", "out", "..", "../outside", "$home/workspace"),
    "github-token": (TOKEN, "", "a b", "\n", "é"),
    "job-index": ("0", "1", "", "x"),
    "history": ("branch", "runs", "../outside", "..", ".", "golden.jsonl", "out/../../outside", "$home/outside"),
    "history-branch": ("main", "a/b", "../x", "x.lock", "-x"),
    "history-record": ("default-branch", "any-branch", "never", "x"),
}


def run(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    """Run the action as its entry point does, without its process."""
    _link(sandbox, files)
    session = Session(_json(files.get("answers.json", b"")))
    started = 1_767_312_000.0
    timing = Timing(
        monotonic=lambda: session.clock,
        now=lambda: started + session.clock,
        sleep=lambda seconds: _sleep(session, seconds),
    )
    log = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    world = World(stdout=log, clock=lambda: NOW, session=lambda: session, timing=timing)  # type: ignore[arg-type,return-value]
    with captured() as texts:
        code = guarded(lambda: action.main(environ_of(sandbox, files), world), sys.stderr)
        out, err = texts()
    log.flush()
    printed = log.buffer.getvalue().decode() + out
    if session.faults:
        raise Broken(f"GitHub: {session.faults[0]}")
    return Ended(code=code, out=printed, err=err)


def _sleep(session: Session, seconds: float) -> None:
    session.clock += seconds


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _link(sandbox: Sandbox, files: Mapping[str, bytes]) -> None:
    """Make the links of the case: a name in the workspace, and what it leads to."""
    for name, target in json.loads(files.get(LINKS, b"{}")).items():
        link = sandbox.workspace / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def environ_of(sandbox: Sandbox, files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the environment: what the runner sets, with the case's changes."""
    home = str(sandbox.home)
    runner = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": API,
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": "$home/workspace/event.json",
        "GITHUB_GRAPHQL_URL": f"{API}/graphql",
        "GITHUB_OUTPUT": "$home/commands/output",
        "GITHUB_REPOSITORY": "octo/app",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": "100",
        "GITHUB_RUN_NUMBER": "10",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": SHA,
        "GITHUB_STEP_SUMMARY": "$home/commands/summary",
        "GITHUB_WORKSPACE": "$home/workspace",
        "RUNNER_TEMP": "$home/temp",
        "RUNNER_WORKSPACE": "/home/runner/work/app",
    }
    values = runner | DEFAULTS | json.loads(files[ENVIRON])
    # As a process gets it: bytes, of which those that are not UTF-8 become halves of surrogate pairs.
    return {
        name: os.fsdecode(value.replace("$home", home).encode(errors="surrogatepass")) for name, value in values.items()
    }


def expect_of_action(sandbox: Sandbox, files: Mapping[str, bytes], ended: Ended) -> None:
    """Expect what the action promises: verdict and exit code, log, outputs, summary; no secret, nothing outside."""
    expectations.ended_well(ended)
    expectations.stays_inside(sandbox)
    try:
        annotations = parse_annotations(ended.out)
        outputs = parse_file_command(_text(sandbox.home / "commands" / "output"))
    except (AssertionError, ValueError) as error:
        raise Broken(f"the runner cannot read what it is given: {str(error)[:40]}") from error
    expect(set(outputs) <= set(DECLARED["outputs"]), "an output that action.yml does not declare")
    expect(ended.code != 2 or any(one.level == "error" for one in annotations), "exit code 2 without an annotation")
    summary = _text(sandbox.home / "commands" / "summary")
    expect(len(summary.encode()) <= 1 << 20, "a summary that the runner drops")
    expectations.parsed(summary)
    environ = environ_of(sandbox, files)
    if environ["INPUT_MODE"] != "post-comment":
        verdicts = {0: {"pass", "fail"}, 1: {"fail"}, 2: {"error"}, 4: {"pass", "fail"}}
        expect(outputs.get("verdict") in verdicts[ended.code], "the output verdict is not the exit code")
        accepted = environ["INPUT_ACCEPT-LABEL"] and outputs.get("accepted-by")
        tolerated = accepted or environ["INPUT_ENFORCE"] == "false"
        expect(outputs.get("verdict") != "fail" or ended.code or tolerated, "a false pass")
        expect(not outputs.get("accepted-by") or ended.code in {0, 4}, "accepted, and failed")
    texts = [ended.out, ended.err, summary, *outputs.values(), *_written(sandbox, files)]
    expect(not any(TOKEN in text for text in texts), "the token was written")
    expect(not any(SECRET[:8] in text for text in texts), "a secret of the machine was written")


def _text(path: Path) -> str:
    return path.read_bytes().decode() if path.is_file() else ""


def _written(sandbox: Sandbox, files: Mapping[str, bytes]) -> list[str]:
    """Return the files that the action has written."""
    paths = [path for path in sandbox.workspace.rglob("*") if path.is_file() and not path.is_symlink()]
    return [
        path.read_bytes().decode(errors="replace")
        for path in paths
        if str(path.relative_to(sandbox.workspace)) not in files
    ]


def _inputs(maker: Maker, names: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name in names:
        if maker.chance(0.025):
            given[name] = maker.pick(CHOICES[name]) if name in CHOICES else maker.odd_text()
    if maker.chance(0.2):
        given["name"] = maker.pick(("docs", "x" * 301, "sha256:" + "0" * 64, maker.odd_text()))
    if maker.chance(0.3):
        given["accept-label"] = maker.pick((LABEL, LABEL, LABEL.upper(), maker.odd_text()))
    if maker.chance(0.2):
        given["comment-required"] = "true"
    return given


def _environ(maker: Maker, inputs: dict[str, str], event: str) -> bytes:
    changes = {f"INPUT_{name.upper()}": text.replace("\0", "") for name, text in inputs.items()}
    changes["GITHUB_EVENT_NAME"] = event
    if maker.chance(0.05):
        name = maker.pick(("GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_SERVER_URL", "GITHUB_REF_NAME"))
        changes[name] = maker.odd_text().replace("\0", "")
    return json.dumps(changes).encode()


def _kinds_of_action(maker: Maker) -> list[str]:
    more = [name for name in ("baseline.json", "ragcontract.yml") if maker.chance(0.6)]
    return ["golden.jsonl", "current_run.jsonl", *more, "event.json", "answers.json"]


def _options_of_action(maker: Maker, kinds: list[str]) -> Mapping[str, bytes]:
    names = tuple(name for name in DECLARED["inputs"] if name != "mode")
    options = {ENVIRON: _environ(maker, _inputs(maker, names), maker.pick(EVENTS))}
    if maker.chance(0.02):
        name = maker.pick((*kinds[:-2], "report.md", "report.json", "junit.xml", "out"))
        options[LINKS] = json.dumps(
            {name: maker.pick(("../outside/secret", "../outside", "golden.jsonl", name, "none"))}
        ).encode()
    return options


def _options_of_relay(maker: Maker, _kinds: list[str]) -> Mapping[str, bytes]:
    names = ("comment", "comment-required", "github-timeout", "github-token", "report-json")
    return {ENVIRON: _environ(maker, _inputs(maker, names) | {"mode": "post-comment"}, "workflow_run")}


ACTION = Target(share=0.2, kinds=_kinds_of_action, options=_options_of_action, run=run, expect=expect_of_action)
POST_COMMENT = Target(
    share=0.13,
    kinds=lambda _maker: ["report.json", "event.json", "answers.json"],
    options=_options_of_relay,
    run=run,
    expect=expect_of_action,
)
