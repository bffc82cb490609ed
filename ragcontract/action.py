"""The GitHub Action: check, then deliver. The verdict comes first; no delivery that fails can change it."""

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ragcontract import pipeline
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode, InputError, RagContractError
from ragcontract.core.text import printable
from ragcontract.files.opening import resolve
from ragcontract.files.problems import Diagnostics
from ragcontract.files.writing import check_outputs, write_files
from ragcontract.github import annotations
from ragcontract.github.commands import Level, annotation
from ragcontract.github.context import TOKEN_INPUT, Context
from ragcontract.github.delivery import Outcome, World, deliver
from ragcontract.github.failure import Timing
from ragcontract.github.paths import (
    for_next_step,
    in_container,
    in_repository,
    outside,
    owned_like_workspace,
    wrong_folder,
)
from ragcontract.github.settings import Settings
from ragcontract.metrics.formulas import metrics_at
from ragcontract.model import Report
from ragcontract.reports import terminal
from ragcontract.reports.formats import FORMATS
from ragcontract.reports.markdown import document as markdown

if TYPE_CHECKING:
    import requests


def main(environ: Mapping[str, str], world: World) -> int:
    """Run the action and return its exit code."""
    context = Context.from_environ(environ)
    settings = Settings.from_environ(environ)
    if settings.mode == "post-comment":
        from ragcontract.github.relay import relay

        return relay(context, settings, world)
    places = _find_paths(settings, context)
    try:
        outcome = _check(places, settings, context, world)
    except RagContractError as error:
        outcome = _unusable(error, settings.name, context)
    except Exception:
        # No verdict either, and no older comment may go on saying that there is one. Exit code 3 comes from the guard.
        deliver(_bug(settings.name), context, settings, world, body_file=places.body_file)
        raise
    commented = deliver(outcome, context, settings, world, body_file=places.body_file)
    if settings.comment_required and not commented and outcome.exit_code == ExitCode.PASS:
        holds = "The contract holds" if outcome.state == "pass" else "The contract is broken and not enforced"
        message = f"{holds}, but comment-required is true and the comment could not be posted"
        world.stdout.write(annotation("error", message))
        return ExitCode.NO_COMMENT
    return outcome.exit_code


class _Places(Struct, frozen=True, kw_only=True):
    """Where the inputs are and where the reports go, and what is wrong with that.

    ``body_file`` is None where none is wanted, and where it may not be written.
    """

    paths: pipeline.Paths
    outputs: dict[str, str]
    body_file: str | None
    problems: list[str]


def _check(places: _Places, settings: Settings, context: Context, world: World) -> Outcome:
    """Judge and write the report files; raises what the input or the output places make impossible."""
    if problems := [*settings.problems, *places.problems]:
        raise InputError(problems)
    checked = pipeline.check_for_files(
        places.paths, clock=world.clock, k=settings.k, detail=settings.report_json_detail
    )
    report = checked.report
    outputs = places.outputs
    with owned_like_workspace(outputs.values(), context):
        write_files({path: FORMATS[name](checked) for name, path in outputs.items()})

    broken = report.verdict == "fail"
    level: Level = "error" if settings.enforce else "warning"
    return Outcome(
        exit_code=ExitCode.BROKEN if broken and settings.enforce else ExitCode.PASS,
        state=report.verdict,
        log=printable(terminal.without_colours(terminal.check_text(report)))
        + annotations.of_report(report, level, partial(in_repository, context=context)),
        outputs=_numbers(report) | {name: for_next_step(path, context) for name, path in outputs.items()},
        render=lambda layout, *, recovered=False: markdown.render(
            report, name=settings.name, layout=layout, recovered=recovered
        ),
        report=report,
    )


def _find_paths(settings: Settings, context: Context) -> _Places:
    """Find the inputs and the places for the reports, all within the workspace."""
    folder = in_container(settings.working_directory, context)
    if problem := wrong_folder(folder, context):
        return _Places(paths=pipeline.Paths(golden=[], run=[]), outputs={}, body_file=None, problems=[problem])

    def mapped(paths: tuple[str, ...]) -> list[str]:
        return [in_container(path, context) for path in paths]

    paths = defaults.find_inputs(
        golden=mapped(settings.golden),
        run=mapped(settings.run),
        baseline=mapped(settings.baseline),
        config=in_container(settings.config, context) if settings.config else None,
        folder=folder,
        repeats=settings.repeats,
    )
    wanted = {
        "report-md": settings.report_md,
        "report-json": settings.report_json,
        "junit": settings.junit,
        "report-html": settings.report_html,
        "comment-body-file": settings.comment_body_file,
    }
    outputs = {
        name: str(Path(folder) / in_container(location, context)) for name, location in wanted.items() if location
    }
    problems = _wrong_places(paths, outputs, context)
    body_file = outputs.pop("comment-body-file", None)
    if body_file and _wrong_body_file(body_file, outputs.values(), paths, context):
        body_file = None  # for its own sake only: it tells what is wrong with the others
    return _Places(paths=paths, outputs=outputs, body_file=body_file, problems=problems)


def _wrong_places(paths: pipeline.Paths, outputs: Mapping[str, str], context: Context) -> list[str]:
    """Return what is wrong with the places; looks at nothing outside of the workspace to tell."""
    if problems := outside(dict.fromkeys([*defaults.named(paths), *outputs.values()]), context):
        return problems
    inputs = resolve(defaults.named(paths), Diagnostics())
    return [*outside(inputs, context), *check_outputs(outputs.values(), inputs)]


def _wrong_body_file(location: str, others: Iterable[str], paths: pipeline.Paths, context: Context) -> bool:
    """Tell whether the body file may not be written; an input that leads out of the workspace is not looked at."""
    inside = [path for path in defaults.named(paths) if not outside([path], context)]
    taken = [*resolve(inside, Diagnostics()), *(other for other in others if not outside([other], context))]
    return bool(outside([location], context) or check_outputs([location], taken))


def _numbers(report: Report) -> dict[str, str]:
    means = {metric.metric.name: report.metrics[metric.key].current for metric in metrics_at(max(report.k))}
    return {
        "verdict": report.verdict,
        **{name: "" if mean is None else str(mean) for name, mean in means.items()},
        "failed-queries": str(sum(query.status == "fail" for query in report.queries)),
    }


def _unusable(error: RagContractError, name: str, context: Context) -> Outcome:
    return Outcome(
        exit_code=error.exit_code,
        state="error",
        log=annotations.of_problems(error, partial(in_repository, context=context)),
        outputs={"verdict": "error"},
        render=lambda layout, *, recovered=False: markdown.render_unusable(  # noqa: ARG005
            error.problems, more=error.more, warnings=error.warnings, name=name, max_rows=layout.rows
        ),
    )


def _bug(name: str) -> Outcome:
    problem = "A bug of rag-contract, not of your retriever or your contract, ended the check."
    return Outcome(
        exit_code=ExitCode.BUG,
        state="error",
        log=annotation("error", problem),
        outputs={"verdict": "error"},
        render=lambda layout, *, recovered=False: markdown.render_unusable(  # noqa: ARG005
            [problem], advice="The job's log says what to report.", name=name, max_rows=layout.rows
        ),
    )


def from_runner() -> int:
    """Run the action in the real world: this process's environment, clock, network and output."""

    def session() -> "requests.Session":
        import requests

        return requests.Session()

    world = World(stdout=sys.stdout, clock=lambda: datetime.now(UTC), session=session, timing=Timing())
    environ = dict(os.environ)
    os.environ.pop(TOKEN_INPUT, None)  # no program that a library might start is handed it
    return main(environ, world)
