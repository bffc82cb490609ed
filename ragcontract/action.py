"""The GitHub Action: runs a check and delivers its results. A failed delivery never changes the verdict."""

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ragcontract import pipeline
from ragcontract.contract import defaults
from ragcontract.contract.defaults import InputPaths
from ragcontract.core.errors import ExitCode, InputError, RagContractError
from ragcontract.core.text import encodable, printable
from ragcontract.evaluation.source import Local
from ragcontract.files.patterns import existing_files
from ragcontract.files.writing import check_outputs, write_files
from ragcontract.github import annotations
from ragcontract.github.commands import Level, annotation
from ragcontract.github.context import TOKEN_INPUT, Context, number_at
from ragcontract.github.delivery import Delivery, World, attempt, deliver, renderer_of
from ragcontract.github.failure import Timing
from ragcontract.github.paths import (
    for_next_step,
    in_container,
    in_repository,
    outside,
    owned_like_workspace,
    wrong_folder,
)
from ragcontract.github.relay import relay
from ragcontract.github.settings import Settings
from ragcontract.logs import log_to
from ragcontract.reports import json_report, terminal
from ragcontract.reports.build import error_report
from ragcontract.reports.formats import FORMATS
from ragcontract.reports.report import ErrorReport, Provenance, Report
from ragcontract.runs.readers import open_baseline, open_run

if TYPE_CHECKING:
    import requests

FIXED_OUTPUTS = ("mrr", "recall", "precision", "hitrate", "ndcg", "map")  # at the largest cut-off


def main(environ: Mapping[str, str], world: World) -> int:
    """Run the action and return its exit code."""
    context = Context.from_environ(environ)
    settings = Settings.from_environ(environ)
    if settings.mode == "post-comment":
        return relay(context, settings, world)
    paths = _find_paths(settings, context)
    try:
        delivery = _check_and_write(paths, settings, context, world)
    except RagContractError as error:
        delivery = _delivery_of_error(error, paths, settings, context, world)
    except Exception:
        # There is no verdict, so an earlier comment must not keep showing one. The guard returns exit code 3.
        deliver(_delivery_of_bug(settings, context, world), context, settings, world, body_file=paths.body_file)
        raise
    commented = deliver(delivery, context, settings, world, body_file=paths.body_file)
    if settings.comment_required and not commented and delivery.exit_code == ExitCode.PASS:
        holds = "The contract holds" if delivery.state == "pass" else "The contract is broken and not enforced"
        message = f"{holds}, but comment-required is true and the comment could not be posted"
        world.stdout.write(annotation("error", message))
        return ExitCode.NO_COMMENT
    return delivery.exit_code


class _Paths(Struct, frozen=True, kw_only=True):
    """The paths of the inputs and of the reports, and the problems with them.

    ``body_file`` is the file for the comment's Markdown, ``error_file`` the report.json that is written if the input
    cannot be judged. Each is None if it is not requested or must not be written.
    """

    inputs: InputPaths
    outputs: dict[str, str]
    body_file: str | None = None
    error_file: str | None = None
    problems: list[str]


def _check_and_write(paths: _Paths, settings: Settings, context: Context, world: World) -> Delivery:
    """Judge the run and write the report files; raises RagContractError if that is not possible."""
    if problems := [*settings.problems, *paths.problems]:
        raise InputError(problems)
    inputs = paths.inputs
    request = pipeline.Request(
        golden=inputs.golden,
        config=inputs.config,
        run=Local(open_run(inputs.run)),
        baseline=Local(open_baseline(inputs.baseline)) if inputs.baseline else None,
        k=settings.k,
        repeats=settings.repeats,
        detail=settings.report_json_detail,
        source=_provenance(settings, context),
    )
    outcome = pipeline.check(request, now=world.clock())
    report, outputs = outcome.report, paths.outputs
    with owned_like_workspace(outputs.values(), context):
        write_files({outputs[form.name]: form.render(outcome) for form in FORMATS if form.name in outputs})

    broken = report.verdict == "fail"
    level: Level = "error" if settings.enforce else "warning"
    return Delivery(
        exit_code=ExitCode.BROKEN if broken and settings.enforce else ExitCode.PASS,
        state=report.verdict,
        log=printable(terminal.without_colours(terminal.check_text(report)))
        + annotations.of_report(report, level, partial(in_repository, context=context)),
        outputs=_numbers(report) | {name: for_next_step(path, context) for name, path in outputs.items()},
        render=renderer_of(report, settings.name),
        report=report,
    )


def _provenance(settings: Settings, context: Context) -> Provenance:
    """Return the origin of the report, taken from the runner's environment."""
    return Provenance(
        repository=context.repository or None,
        commit=context.commit or None,
        branch=context.branch or None,
        pull_request=settings.pull_request or number_at(context.event, "pull_request", "number"),
        run_url=context.run_url or None,
        contract=encodable(settings.name) or None,
    )


def _find_paths(settings: Settings, context: Context) -> _Paths:
    """Return the paths of inputs and reports, with a problem for each that is outside the workspace."""
    folder = in_container(settings.working_directory, context)
    if problem := wrong_folder(folder, context):
        return _Paths(inputs=InputPaths(golden=[], run=[]), outputs={}, problems=[problem])

    def mapped(paths: tuple[str, ...]) -> list[str]:
        return [in_container(path, context) for path in paths]

    inputs = defaults.find_inputs(
        golden=mapped(settings.golden),
        run=mapped(settings.run),
        baseline=mapped(settings.baseline),
        config=in_container(settings.config, context) if settings.config else None,
        folder=folder,
    )
    wanted = {
        "report-md": settings.report_md,
        "report-json": settings.report_json,
        "junit": settings.junit,
        "report-html": settings.report_html,
        "comment-body-file": settings.comment_body_file,
    }
    outputs = {name: str(Path(folder) / in_container(path, context)) for name, path in wanted.items() if path}
    problems = _wrong_paths(inputs, outputs, context)
    body_file, error_file = outputs.pop("comment-body-file", None), outputs["report-json"]
    # These two files report problems with the other paths, so they are checked separately.
    if body_file and _may_not_be_written(body_file, outputs.values(), inputs, context):
        body_file = None
    others = [path for name, path in outputs.items() if name != "report-json"]
    may_not = _may_not_be_written(error_file, [*others, *([body_file] if body_file else [])], inputs, context)
    return _Paths(
        inputs=inputs,
        outputs=outputs,
        body_file=body_file,
        error_file=None if may_not else error_file,
        problems=problems,
    )


def _wrong_paths(inputs: InputPaths, outputs: Mapping[str, str], context: Context) -> list[str]:
    """Return the problems with the paths; accesses nothing outside the workspace."""
    if problems := outside(dict.fromkeys([*inputs.all, *outputs.values()]), context):
        return problems
    found, _ = existing_files(inputs.all)
    return [*outside(found, context), *check_outputs(outputs.values(), found)]


def _may_not_be_written(path: str, others: Iterable[str], inputs: InputPaths, context: Context) -> bool:
    """Return whether a file must not be written; inputs outside the workspace are ignored."""
    inside = [given for given in inputs.all if not outside([given], context)]
    taken = [*existing_files(inside)[0], *(other for other in others if not outside([other], context))]
    return bool(outside([path], context) or check_outputs([path], taken))


def _numbers(report: Report) -> dict[str, str]:
    """Return the outputs on the result: the verdict, all metrics as JSON, and the metrics that action.yml names."""
    metrics = {key: metric.current for key, metric in report.metrics.items()}
    fixed = {name: metrics.get(f"{name}_at_{max(report.k)}") for name in FIXED_OUTPUTS}
    return {
        "verdict": report.verdict,
        "metrics": msgspec.json.encode(metrics).decode(),
        **{name: "" if mean is None else str(mean) for name, mean in fixed.items()},
        "failed-queries": str(sum(query.status == "fail" for query in report.queries)),
    }


def _delivery_of_error(
    error: RagContractError, paths: _Paths, settings: Settings, context: Context, world: World
) -> Delivery:
    """Return the delivery for input that cannot be judged, and write its report.json for the second workflow."""
    source = _provenance(settings, context)
    report = error_report(error.problems, error.more, error.warnings, world.clock(), source)
    outputs = {"verdict": "error"}
    path = paths.error_file
    if path is not None and attempt(world, "report.json", lambda: _write_error(path, report, context)):
        outputs["report-json"] = for_next_step(path, context)
    return Delivery(
        exit_code=error.exit_code,
        state="error",
        log=annotations.of_problems(error, partial(in_repository, context=context)),
        outputs=outputs,
        render=renderer_of(report, settings.name),
    )


def _write_error(path: str, report: ErrorReport, context: Context) -> None:
    with owned_like_workspace([path], context):
        write_files({path: json_report.render_error(report)})


def _delivery_of_bug(settings: Settings, context: Context, world: World) -> Delivery:
    problem = "A bug in rag-contract, not in your retriever or your contract, ended the check."
    report = error_report([problem], 0, [], world.clock(), _provenance(settings, context))
    return Delivery(
        exit_code=ExitCode.BUG,
        state="error",
        log=annotation("error", problem),
        outputs={"verdict": "error"},
        render=renderer_of(report, settings.name, advice="The job's log says what to report."),
    )


def from_runner() -> int:
    """Run the action with this process's environment, clock, network and standard output."""

    def session() -> "requests.Session":
        import requests

        return requests.Session()

    world = World(stdout=sys.stdout, clock=lambda: datetime.now(UTC), session=session, timing=Timing())
    environ = dict(os.environ)
    if environ.get("RUNNER_DEBUG") == "1":
        log_to(sys.stderr)
    os.environ.pop(TOKEN_INPUT, None)  # so that no subprocess of a library inherits it
    return main(environ, world)
