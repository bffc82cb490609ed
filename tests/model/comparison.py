"""Runs a workspace through the command line, and says where it and the model differ."""

import contextlib
import dataclasses
import datetime as dt
import json
import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.model.contract import TOLERANCE
from tests.model.verdict_model import verdict
from tests.model.workspace import Broken, Row, Verdict, Workspace, write_rows
from tests.process import rag_contract

CLOSE = 1e-9
OTHER_CONFIGS = {"both": "ragcontract.yaml", "near": "rag-contract.yml"}
REQUIRED = frozenset(
    {"id", "query_id", "query", "type", "doc_id", "name", "tool", "reason", "owner", "expires", "from", "minimum"}
)
Judge = Callable[[Workspace], Verdict]


def checked(workspace: Workspace) -> Verdict:
    """Return what `rag-contract check` says of a workspace."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = _write(workspace, folder)
        if workspace.stored:
            stored = _store(workspace, folder)
            if stored is not None:
                return stored
        report = folder / "report.json"
        with contextlib.chdir(folder):
            ended = rag_contract("check", *options, "--report-md", "", "--junit", "", "--report-json", str(report))
        if ended.code not in (0, 1):
            return Verdict(exit_code=int(ended.code), reason=ended.err.replace(f"{folder}/", ""))
        return _verdict(int(ended.code), json.loads(report.read_text(encoding="utf-8")))


def _write(workspace: Workspace, folder: Path) -> list[str]:
    """Write the files of a workspace and return the options that name them."""
    config = folder / "ragcontract.yml"
    config.write_text(json.dumps(workspace.config), encoding="utf-8")
    options = ["--config", str(config)] if workspace.configs == "named" else []
    if workspace.configs in OTHER_CONFIGS:
        (folder / OTHER_CONFIGS[workspace.configs]).write_text('{"minimums": {"mrr_at_k": 1}}', encoding="utf-8")
    rows = {"golden": workspace.golden, "current_run": workspace.run}
    rows |= {"scores": workspace.scores} if workspace.scores is not None else {}
    rows |= {"good_run": workspace.baseline} if workspace.baseline is not None else {}
    files = {
        name: write_rows(folder / f"{name}.jsonl", listed, twice=name == workspace.repeated)
        for name, listed in rows.items()
    }
    options += ["--golden", files["golden"], "--run", files["current_run"]]
    options += ["--scores", files["scores"]] if "scores" in files else []
    if "good_run" in files:
        good_run = files["good_run"]
        options += ["--baseline", str(folder / "baseline.json") if workspace.stored else good_run]
    options += [word for tag in workspace.tags for word in ("--tag", tag)]
    return options + _common(workspace)


def _common(workspace: Workspace) -> list[str]:
    k = ["--k", str(workspace.k)] if workspace.k is not None else []
    return [*k, *(["--repeats"] if workspace.repeats else [])]


def _store(workspace: Workspace, folder: Path) -> Verdict | None:
    """Store the good run as the baseline; return a verdict only if that is refused."""
    files = {"golden": "golden.jsonl", "run": "good_run.jsonl", "config": "ragcontract.yml", "out": "baseline.json"}
    options = [word for name, file in files.items() for word in (f"--{name}", str(folder / file))]
    ended = rag_contract("baseline", *options, *_common(workspace))
    return Verdict(exit_code=2, reason=f"baseline: {ended.err}") if ended.code else None


def _verdict(code: int, report: Row) -> Verdict:
    """Return what a report says."""
    return Verdict(
        exit_code=code,
        reason=str(report["summary"]),
        broken=tuple(_broken(report)),
        gates={gate["id"]: gate["status"] for gate in report["gates"]},
        means={key: metric["current"] for key, metric in report["metrics"].items()},
        baseline_means={key: metric["baseline"] for key, metric in report["metrics"].items()},
        tag_means={tag: group["metrics"] for tag, group in report["tags"].items()},
        pass_rate=(report.get("pass_rate") or {}).get("rate"),
        tiers={tier["name"]: tier["status"] for tier in report.get("tiers") or [] if tier["status"] != "none"},
    )


def _broken(report: Row) -> list[Broken]:
    """Return the broken rules of a report: `queries` says which, `findings` what becomes of them."""
    broken = []
    listed = {(query["id"], item["rule"]) for query in report["queries"] for item in query["violations"]}
    for finding in report["findings"]:
        if finding["kind"] == "rule":
            excuses = frozenset() if finding["status"] == "fail" else frozenset({finding["status"]})
            broken += [Broken(finding["query_id"], rule, excuses) for rule in finding["ids"]]
    failing = {(check["query_id"], check["id"]) for check in report["failed_checks"] if check["kind"] == "rule"}
    if {(item.query, item.rule) for item in broken} != listed:
        broken.append(Broken("", "findings are not the violations of queries"))
    if {(item.query, item.rule) for item in broken if item.counts} != failing:
        broken.append(Broken("", "failed_checks are not the findings that fail"))
    return broken


def differences(model: Verdict, program: Verdict) -> list[str]:
    """Return where two verdicts differ, in sentences."""
    if model.exit_code != program.exit_code:
        return [f"exit code: model {_code(model)}, program {_code(program)}", *_rule_differences(model, program)]
    if model.exit_code == 2:
        return []
    return [
        *_rule_differences(model, program),
        *_mapping_differences("gate", model.gates, program.gates),
        *_mapping_differences("tier", model.tiers, program.tiers),
        *_number_differences("mean", model.means, program.means),
        *_number_differences("baseline", _there(model.baseline_means), program.baseline_means),
        *_tag_differences(model, program),
        *_pass_rate_differences(model, program),
    ]


def _code(verdict: Verdict) -> str:
    return f"{verdict.exit_code} ({verdict.reason[:300]})"


def _there(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: value for name, value in values.items() if value is not None}


def _rule_differences(model: Verdict, program: Verdict) -> list[str]:
    found = []
    for counting in (False, True):
        what = "failing" if counting else "broken"
        ours, theirs = model.rules(counting=counting), program.rules(counting=counting)
        found += [f"{what} for the model only: {item}" for item in sorted(ours - theirs)]
        found += [f"{what} for the program only: {item}" for item in sorted(theirs - ours)]
    excuses: dict[tuple[str, str], set[str]] = {}
    for item in model.broken:
        excuses.setdefault((item.query, item.rule), set()).update(item.excuses)
    for item in program.broken:
        if not item.excuses <= excuses.get((item.query, item.rule), item.excuses):
            found.append(f"excuse of {item.query} {item.rule}: {set(item.excuses)}, not one of the model's")
    return found


def _mapping_differences(what: str, model: Mapping[str, str], program: Mapping[str, str]) -> list[str]:
    names = sorted(model.keys() | program.keys())
    return [
        f"{what} {name}: model {model.get(name)}, program {program.get(name)}"
        for name in names
        if model.get(name) != program.get(name)
    ]


def _number_differences(what: str, model: Mapping[str, float | None], program: Mapping[str, float | None]) -> list[str]:
    """Compare the numbers that the model has."""
    found = []
    for name, value in model.items():
        other = program.get(name)
        if (value is None) != (other is None) or not math.isclose(value or 0, other or 0, rel_tol=0, abs_tol=CLOSE):
            found.append(f"{what} {name}: model {value}, program {other}")
    return found


def _pass_rate_differences(model: Verdict, program: Verdict) -> list[str]:
    """Compare the pass rates, where the program says one."""
    if program.pass_rate is None:
        return []
    return _number_differences("rate", {"pass_rate": model.pass_rate}, {"pass_rate": program.pass_rate})


def _tag_differences(model: Verdict, program: Verdict) -> list[str]:
    found = []
    for tag, means in model.tag_means.items():
        found += _number_differences(f"tag {tag}", _there(means), program.tag_means.get(tag, {}))
    return found


def compare(workspace: Workspace, judge: Judge = checked, tolerance: float = TOLERANCE) -> list[str]:
    """Return where the model and the program differ on a workspace."""
    while True:
        today = dt.datetime.now(dt.UTC).date()
        program = judge(workspace)
        if dt.datetime.now(dt.UTC).date() == today:  # no midnight between the two
            return differences(verdict(workspace, today, tolerance), program)


def minimised(workspace: Workspace, differs: Callable[[Workspace], bool], tries: int = 250) -> Workspace:
    """Return a smaller workspace that still differs: queries, rows, fields and keys are taken out one by one."""
    place, smaller = 0, True
    candidates = _smaller(workspace)
    while tries and (place < len(candidates) or smaller):
        if place >= len(candidates):
            place, smaller = 0, False
            continue
        tries -= 1
        if differs(candidates[place]):
            workspace, smaller = candidates[place], True
            candidates = _smaller(workspace)
        else:
            place += 1
    return workspace


def _smaller(workspace: Workspace) -> list[Workspace]:
    """Return workspaces that lack one thing each, the largest things first."""
    found = [_without_query(workspace, str(row["id"])) for row in workspace.golden]
    found += [
        dataclasses.replace(workspace, baseline=None, stored=False),
        dataclasses.replace(workspace, stored=False),
        dataclasses.replace(workspace, scores=None),
        dataclasses.replace(workspace, k=None),
        dataclasses.replace(workspace, tags=()),
        dataclasses.replace(workspace, repeats=False),
        dataclasses.replace(workspace, repeated=""),
        dataclasses.replace(workspace, configs="named"),
    ]
    found += [dataclasses.replace(workspace, golden=rows) for rows in _fewer(workspace.golden)]
    found += [dataclasses.replace(workspace, run=rows) for rows in _fewer(workspace.run)]
    found += [dataclasses.replace(workspace, baseline=rows) for rows in _fewer(workspace.baseline or ())]
    found += [dataclasses.replace(workspace, scores=rows) for rows in _fewer(workspace.scores or ()) if rows]
    found += [dataclasses.replace(workspace, config=config) for config in _without_parts(workspace.config)]
    return [candidate for candidate in found if candidate.golden and candidate.run and candidate != workspace]


def _fewer(rows: tuple[Row, ...]) -> list[tuple[Row, ...]]:
    """Return the rows without one of them, and with a smaller one in the place of one of them."""
    found = []
    for place, row in enumerate(rows):
        before, after = rows[:place], rows[place + 1 :]
        found += [(*before, *after), *((*before, part, *after) for part in _without_parts(row))]
    return found


def _without_query(workspace: Workspace, query: str) -> Workspace:
    def others(rows: tuple[Row, ...] | None) -> tuple[Row, ...] | None:
        return None if rows is None else tuple(row for row in rows if str(row["query_id"]) != query)

    return dataclasses.replace(
        workspace,
        golden=tuple(row for row in workspace.golden if str(row["id"]) != query),
        run=others(workspace.run) or (),
        baseline=others(workspace.baseline),
        scores=others(workspace.scores),
    )


def _without_parts(value: Any, depth: int = 3) -> list[Any]:
    """Return copies of an object or a list, each without one part at some depth."""
    if not isinstance(value, (dict, list)) or depth == 0:
        return []
    found: list[Any] = []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        if key in REQUIRED:
            continue
        if isinstance(value, dict):
            found.append({other: item for other, item in value.items() if other != key})
            found += [{**value, key: part} for part in _without_parts(value[key], depth - 1)]
        else:
            found.append([*value[:key], *value[key + 1 :]])
            found += [[*value[:key], part, *value[key + 1 :]] for part in _without_parts(value[key], depth - 1)]
    return found
