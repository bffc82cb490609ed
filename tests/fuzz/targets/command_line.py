"""The command line, with arguments from the case's ``argv.json``."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from ragcontract.cli.main import main
from ragcontract.guard import guarded
from ragcontract.report.record import Report
from tests.fuzz import expectations
from tests.fuzz.expectations import Broken, expect
from tests.fuzz.generate.values import Maker
from tests.fuzz.sandbox import Ended, Sandbox, captured
from tests.fuzz.targets.target import Target

ARGV = "argv.json"
COMMON = ("golden.jsonl", "current_run.jsonl")
REPORTS = {
    "report-md": "report.md",
    "report-json": "report.json",
    "junit": "junit.xml",
    "report-html": "report.html",
    "report-v2": "report-v2.json",
}


def run(_sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    """Run the command of ``argv.json``."""
    argv = json.loads(files[ARGV])
    with captured() as texts:
        code = guarded(lambda: main(argv), sys.stderr)
        out, err = texts()
    return Ended(code=code, out=out, err=err)


def ended_as_a_command(sandbox: Sandbox, files: Mapping[str, bytes], ended: Ended) -> None:
    """Expect what is so for all commands."""
    expectations.ended_well(ended, {0, 1, 2})
    expectations.stays_inside(sandbox)
    is_json = "json" in json.loads(files[ARGV])
    expectations.is_plain(ended.err if is_json else ended.out + ended.err)
    expect(ended.code != 2 or ended.err.strip(), "exit code 2 without a message")


def _kinds_of_check(maker: Maker) -> list[str]:
    baseline = maker.pick(((), ("baseline.json",), ("baseline.json",), ("base.jsonl",)))
    config = () if maker.chance(0.1 if maker.about_answers else 0.2) else ("ragcontract.yml",)
    scores = ("scores.jsonl",) if maker.about_answers and maker.scores_apart else ()
    judged = ("judgments.jsonl", "judge-calibration.json") if maker.chance(0.1) else ()
    return [*COMMON, *baseline, *config, *scores, *judged]


def _options_of_check(maker: Maker, kinds: list[str]) -> Mapping[str, bytes]:
    argv = ["check", *flags(maker), *(["--baseline", "base.jsonl"] if "base.jsonl" in kinds else [])]
    if "scores.jsonl" in kinds:
        argv += ["--scores", "scores.jsonl"]
    if "judgments.jsonl" in kinds:
        argv += ["--judgments", "judgments.jsonl", "--calibration", "judge-calibration.json"]
    if maker.chance(0.1):
        argv.append("--no-answers")
    if maker.chance(0.3):
        argv += ["--report-html", "report.html"]
    if maker.chance(0.2):
        argv += ["--report-v2", "report-v2.json"]
    if maker.chance(0.2):
        argv += ["--report-json-detail", maker.pick(("failed", "changed", "all"))]
    if maker.chance(0.15):
        argv += [f"--tag={tag}" for tag in maker.some(maker.tags, 2)]
    if maker.chance(0.05):
        argv.append("--quiet")
    return {ARGV: json.dumps(argv).encode()}


def flags(maker: Maker) -> list[str]:
    """Return options that most commands take."""
    k = ["--k", maker.pick(("1", "3", "1000000000", "0", "-1", "x", "٣"))] if maker.chance(0.1) else []
    return [*k, *(["--repeats"] if maker.chance(0.15) else [])]


def _expect_of_check(sandbox: Sandbox, files: Mapping[str, bytes], ended: Ended) -> None:
    ended_as_a_command(sandbox, files, ended)
    written = {name for name in REPORTS if Path(REPORTS[name]).exists()}
    if ended.code == 2:
        expect(not written, "exit code 2 with a report")
        return
    expect(written >= {"report-md", "report-json", "junit"}, "a report is missing")
    for name in sorted(written):
        expectations.CHECKS[name](Path(REPORTS[name]))
    report = expectations.report_json(Path("report.json"))
    if not isinstance(report, Report):
        raise Broken("report.json has the verdict error")
    expect(report.verdict == ("fail" if ended.code else "pass"), "the verdict is not the exit code")
    if files.get("base.jsonl") == files["current_run.jsonl"]:
        fallen = [gate for gate in report.gates if gate.id.split(".")[-1].endswith("_gt") and gate.status == "fail"]
        expect(not fallen, "a run has fallen below itself")


COMMANDS = ("score", "validate", "diff", "compare", "lint", "suggest", "baseline", "unjudged", "init")


def _kinds_of_command(maker: Maker) -> list[str]:
    if maker.chance(0.2):
        return maker.pick(
            (["questions.txt"], ["golden.jsonl", "candidates.txt"], ["questions.txt", "current_run.jsonl"])
        )
    return [*COMMON, *(name for name in ("baseline.json", "ragcontract.yml") if maker.chance(0.6))]


def _options_of_command(maker: Maker, kinds: list[str]) -> Mapping[str, bytes]:
    if kinds == ["questions.txt"]:
        return {ARGV: json.dumps(["init", "--questions", *kinds]).encode()}
    if kinds == ["golden.jsonl", "candidates.txt"]:
        return {ARGV: json.dumps(["label", "--ticked", "candidates.txt"]).encode()}
    if kinds == ["questions.txt", "current_run.jsonl"]:
        argv = ["init", "--questions", "questions.txt", "--from-run", "current_run.jsonl"]
        return {ARGV: json.dumps(argv).encode()}
    command = maker.pick(COMMANDS[:-1])
    own = {
        "score": [[], ["--format", "json"]],
        "diff": [[], ["--format", "md"], ["--format", "json"]],
        "compare": [
            [run, "current_run.jsonl", *more]
            for run in ("current_run.jsonl", "baseline.json")
            for more in ([], ["--format", "md"], ["--format", "json"])
        ],
        "unjudged": [[], ["--format", "checklist"], ["--format", "jsonl"]],
        "lint": [[], ["--strict"], ["--without-run"]],
        "validate": [[], ["--without-run"], [f"--tag={maker.pick(maker.tags)}"]],
        "baseline": [
            ["--out", "new.json"],
            ["--force"],
            ["--update"],
            ["--update", "--accept-regressions", maker.text()],
        ],
    }
    argv = [
        command,
        *maker.pick(own.get(command, [[]])),
        *(flags(maker) if command not in {"lint", "validate"} else []),
    ]
    return {ARGV: json.dumps(argv).encode()}


READ = {
    "trec": {"qrels": "qrels.trec", "queries": "topics.tsv", "run": "run.trec"},
    "beir": {"qrels": "qrels.tsv", "queries": "queries.jsonl", "corpus": "corpus.jsonl", "run": "run.trec"},
    "ragas": {"samples": "samples.jsonl"},
    "rag-contract": {"golden": "golden.jsonl", "run": "current_run.jsonl"},
    "csv": {"csv": "questions.csv"},
}
WRITE = {
    "trec": ("qrels", "queries", "run"),
    "beir": ("qrels", "queries", "corpus", "run"),
    "ragas": ("samples",),
    "rag-contract": ("golden", "run"),
}


SCORED = {  # what the scores of other tools are read from
    "ragas": "ragas.jsonl",
    "deepeval": "test_run.json",
    "promptfoo": "promptfoo.json",
    "inspect": "inspect.json",
    "table": "measured.csv",
}


def _kinds_of_convert(maker: Maker) -> list[str]:
    if maker.chance(0.5):
        file = maker.pick((*SCORED.values(), "cases.json"))
        return [file, "golden.jsonl"] if file != "cases.json" and maker.chance(0.5) else [file]
    return list(READ[maker.pick(tuple(READ))].values())


def _options_of_convert(maker: Maker, kinds: list[str]) -> Mapping[str, bytes]:
    if kinds == ["cases.json"]:
        how = maker.pick(([], ["--as-evaluated"], ["--no-as-evaluated"]))
        argv = ["convert", "--from", "fitz-gov", "--cases", *kinds, "--golden-out", "new.jsonl", *how]
        return {ARGV: json.dumps(argv).encode()}
    if tool := next((name for name, file in SCORED.items() if file == kinds[0]), None):
        argv = ["convert", "--from", tool, "--results", kinds[0], "--scores-out", "new.jsonl"]
        argv += ["--golden", "golden.jsonl"] if len(kinds) > 1 else []
        argv += ["--score", "faithfulness"] if tool == "table" else []
        return {ARGV: json.dumps(argv + (["--scored-by", maker.text()] if maker.chance(0.1) else [])).encode()}
    source = next(name for name, inputs in READ.items() if list(inputs.values()) == kinds)
    target = maker.pick([name for name in WRITE if name != source])
    argv = ["convert", "--from", source, "--to", target]
    for option, file in READ[source].items():
        argv += [f"--{option}", file]
    for option in WRITE[target]:
        argv += [f"--{option}-out", f"new-{option}"] if maker.chance(0.9) else []
    return {ARGV: json.dumps(argv).encode()}


CHECK = Target(share=0.4, kinds=_kinds_of_check, options=_options_of_check, run=run, expect=_expect_of_check)
COMMAND = Target(share=0.15, kinds=_kinds_of_command, options=_options_of_command, run=run, expect=ended_as_a_command)
CONVERT = Target(share=0.12, kinds=_kinds_of_convert, options=_options_of_convert, run=run, expect=ended_as_a_command)
