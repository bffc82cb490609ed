"""The GitHub Action: runs a check and delivers its results. A failed delivery never changes the verdict."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract import memory, pipeline
from ragcontract.child import SharedExitCode, in_child
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError, RagContractError
from ragcontract.core.lines import Line
from ragcontract.core.safe_text import encodable
from ragcontract.evaluation.source import Inputs, entry_ref
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.streams import Unfailing, log_to
from ragcontract.files.writing import write_files
from ragcontract.github import runner_output
from ragcontract.github.acceptance import accept
from ragcontract.github.checkout import about_checkout
from ragcontract.github.context import SERVICE_KEY, TOKEN_INPUT, Context, number_at
from ragcontract.github.delivery import Delivery, World, attempt, deliver, log_of, renderer_of
from ragcontract.github.files import (
    ActionFiles,
    find_files,
    for_next_step,
    in_container,
    in_repository,
    make_room,
    owned_like_workspace,
    without_content,
    without_warnings,
)
from ragcontract.github.relay import relay
from ragcontract.github.runner_output import Level, annotation
from ragcontract.github.settings import ActionSettings
from ragcontract.net.pacing import Timing
from ragcontract.report.build import error_report
from ragcontract.report.formats import FORMATS, Format
from ragcontract.report.headline import as_warning
from ragcontract.report.record import ErrorReport, Provenance, Report

if TYPE_CHECKING:
    import requests

    from ragcontract.history.for_check import HistoryFacts
    from ragcontract.history.in_action import JobHistory

HISTORY: "Line[type[JobHistory]]" = Line(home="ragcontract.history.in_action:JobHistory")
FIXED_OUTPUTS = ("mrr", "recall", "precision", "hitrate", "ndcg", "map")  # at the largest cut-off
BUG = "A bug in rag-contract, not in your retriever or your contract, ended the check."
BUG_ADVICE = "The job's log says what to report."
NOT_ENFORCED = "The contract is broken and not enforced"
CUT_OFF_ADVICE = "The job has the verdict, and its files are the reports."


class _Job(Struct, frozen=True, kw_only=True):
    """One run of the action in mode check: its inputs, its files, and the world around it."""

    context: Context
    settings: ActionSettings
    world: World
    files: ActionFiles
    history: "JobHistory | None" = None  # None without the input history

    @classmethod
    def of(cls, context: Context, settings: ActionSettings, world: World) -> "_Job":
        files = find_files(settings, context)
        history = HISTORY.load()(context=context, settings=settings, world=world) if settings.history else None
        return cls(context=context, settings=settings, world=world, files=files, history=history)

    def deliver(self, delivery: Delivery) -> bool:
        """Deliver; returns False if a comment was expected and could not be posted."""
        return deliver(delivery, self.context, self.settings, self.world, body_file=self.files.body)


def main(environ: Mapping[str, str], world: World, decided: Callable[[int], None] = lambda _code: None) -> int:
    """Run the action and return its exit code; ``decided`` gets it before anything is delivered to GitHub."""
    world = replace(world, stdout=Unfailing(world.stdout))
    context, settings = Context.from_environ(environ), ActionSettings.from_environ(environ)
    if settings.mode == "post-comment":
        return relay(context, settings, world)
    job = _Job.of(context, settings, world)
    outcome: pipeline.Outcome | None = None
    try:
        with memory.explained():
            delivery, outcome = _check_and_write(job)
    except RagContractError as error:
        delivery = _delivery_of_error(error, job)
    except Exception:
        # There is no verdict, so an earlier comment must not keep showing one. The guard returns exit code 3.
        job.deliver(_delivery_of_bug(job))
        raise
    decided(delivery.exit_code)
    started = world.timing.monotonic()
    settings = job.history.left(settings) if job.history else settings
    delivery, settings = accept(delivery, context, settings, world)
    job = replace(job, settings=settings)
    decided(delivery.exit_code)
    commented = job.deliver(delivery)
    if job.history:
        job.history.record(outcome, accepted=delivery.accepted, spent=world.timing.monotonic() - started)
    if settings.comment_required and not commented and delivery.exit_code == ExitCode.PASS:
        broken = "The contract is broken and accepted by label" if delivery.accepted else NOT_ENFORCED
        holds = "The contract holds" if delivery.state == "pass" else broken
        message = f"{holds}, but comment-required is true and the comment could not be posted"
        world.stdout.write(annotation("error", message))
        return ExitCode.NO_COMMENT
    return delivery.exit_code


def report_death(environ: Mapping[str, str], world: World, decided: int | None, number: int, peak: int) -> int:
    """Deliver that the check was killed by a signal and used at most ``peak`` bytes of memory; return the exit code.

    ``decided`` is the exit code of a check that reached its verdict before. It stands, and so do the reports. Otherwise
    the signal shows why the check died: memory ran out, or there is a bug, such as one of a library in C.
    """
    world = replace(world, stdout=Unfailing(world.stdout))
    context, settings = Context.from_environ(environ), ActionSettings.from_environ(environ)
    if settings.mode == "post-comment":
        killed = memory.killed(peak, "posting the comment")
        world.stdout.write("".join(annotation("error", problem) for problem in killed.problems))
        return ExitCode.UNUSABLE_INPUT if memory.explains(number) else ExitCode.BUG
    job = _Job.of(context, settings, world)
    if decided is not None:
        job.deliver(_delivery_of_cut_off(job, decided))
        return decided
    delivery = _delivery_of_error(memory.killed(peak), job) if memory.explains(number) else _delivery_of_bug(job)
    job.deliver(delivery)
    return delivery.exit_code


def _check_and_write(job: _Job) -> tuple[Delivery, pipeline.Outcome | None]:
    """Check the run and write the report files; raises RagContractError if that is not possible.

    Also returns the outcome of a check that is to be recorded.
    """
    settings, context, reports = job.settings, job.context, job.files.reports
    if problems := [*settings.problems, *job.files.problems]:
        raise InputError(problems)
    inputs, facts = _with_history(job)
    detail, source = settings.report_json_detail, _provenance(settings, context)
    try:
        outcome = pipeline.check(
            inputs, now=job.world.clock(), detail=detail, source=source, tests_all="report-html" in reports
        )
    except InputError as error:
        raise without_content(error, job.files) from None
    outcome = facts.add_to_report(outcome) if facts else outcome
    folder = Path(in_container(settings.working_directory, context))
    about_commit = list(about_checkout(folder, context, settings.pull_request))
    mistakes = [*about_commit, *([] if job.files.linked else outcome.report.likely_mistakes)]
    warnings = [*map(as_warning, about_commit), *without_warnings(outcome.report.warnings, job.files)]
    replaced = "".join(annotation("warning", warning) for warning in _about_replaced(job, outcome.report.verdict))
    report = replace(outcome.report, warnings=warnings, likely_mistakes=mistakes)
    outcome = replace(outcome, report=report)
    with owned_like_workspace(reports.values(), context):
        write_files({reports[form.name]: form.render(outcome) for form in FORMATS if form.name in reports})

    broken = report.verdict == "fail"
    outputs = _numbers(report) | {name: for_next_step(path, context) for name, path in reports.items()}
    level: Level = "error" if settings.enforce else "warning"
    delivery = Delivery(
        exit_code=ExitCode.BROKEN if broken and settings.enforce else ExitCode.PASS,
        state=report.verdict,
        log=log_of(report, level, context, outputs) + replaced,
        outputs=outputs,
        render=renderer_of(report, settings.name),
        report=report,
    )
    return delivery, outcome if job.history and job.history.role.records else None


def _with_history(job: _Job) -> "tuple[Inputs, HistoryFacts | None]":
    """Return the inputs of the check, with the baseline from the history, and what the history says."""
    inputs, entry, history = job.files.inputs, job.files.entry, job.history
    if history is None:
        if entry:
            raise InputError([f"baseline: {entry_ref(entry)}: is an entry of a history; set the input history"])
        return inputs, None
    facts = history.facts(entry)
    if facts:
        job.world.stdout.write("".join(annotation("notice", note) for note in facts.notes))
        inputs = facts.with_baseline(inputs)
    return replace(inputs, keep_ids=history.role.records), facts


class _Written(Struct):
    verdict: str = ""
    source: Provenance | None = None


def _about_replaced(job: _Job, verdict: str) -> Iterator[str]:
    """Yield a warning if a report replaces that of another check of this workflow run, or one that is worse."""
    path, own = job.files.reports.get("report-json", ""), _provenance(job.settings, job.context)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (an empty path is the folder for pathlib)
            written = msgspec.json.decode(file.read(bounds.REPORT), type=_Written)
    except (OSError, *UNDECODABLE):
        return
    if not own.run_url or written.source is None or written.source.run_url != own.run_url:
        return
    if written.source.contract != own.contract or (verdict == "pass" and written.verdict != "pass"):
        which = "which did not pass" if written.verdict != "pass" else "which passed"
        advice = "give each check of a workflow a `report-json` of its own, and upload each"
        yield f"{path}: replaces the report of another check of this workflow run, {which}; {advice}"


def _provenance(settings: ActionSettings, context: Context) -> Provenance:
    """Return the origin of the report, taken from the runner's environment."""
    return Provenance(
        repository=context.repository or None,
        commit=context.commit or None,
        branch=context.branch or None,
        pull_request=settings.pull_request or number_at(context.event, "pull_request", "number"),
        run_url=context.run_url or None,
        contract=encodable(settings.name) or None,
    )


def _numbers(report: Report) -> dict[str, str]:
    """Return the action's outputs: the verdict, all metrics as JSON, and the metrics that action.yml names."""
    metrics = {key: metric.current for key, metric in report.metrics.items()}
    fixed = {name: metrics.get(f"{name}_at_{max(report.k)}") for name in FIXED_OUTPUTS}
    return {
        "verdict": report.verdict,
        "summary": report.summary_line,
        "metrics": msgspec.json.encode(metrics).decode(),
        **{name: "" if mean is None else str(mean) for name, mean in fixed.items()},
        "failed-queries": str(report.broken.queries),
        "new-failed-queries": str(report.broken.new),
    }


def _delivery_of_error(error: RagContractError, job: _Job) -> Delivery:
    """Return the delivery for input that cannot be judged, and write reports that say so."""
    report = _error_report(job, error.problems, error.more, error.warnings)
    log = runner_output.of_problems(error, partial(in_repository, context=job.context))
    return _without_verdict(job, report, exit_code=error.exit_code, log=log, outputs=_replace_reports(job, report))


def _delivery_of_bug(job: _Job) -> Delivery:
    """Return the delivery for a bug of ours, and write reports that say so."""
    report, log = _error_report(job, [BUG]), annotation("error", BUG)
    outputs = _replace_reports(job, report)
    return _without_verdict(job, report, exit_code=ExitCode.BUG, log=log, outputs=outputs, advice=BUG_ADVICE)


def _delivery_of_cut_off(job: _Job, exit_code: int) -> Delivery:
    """Return the delivery for a check whose process was killed while its result was delivered; writes no reports."""
    problem = f"The check ended with exit code {exit_code}, but was killed while its result was delivered."
    report, log = _error_report(job, [problem]), annotation("warning", problem)
    return _without_verdict(job, report, exit_code=exit_code, log=log, outputs={}, advice=CUT_OFF_ADVICE)


def _error_report(job: _Job, problems: Sequence[str], more: int = 0, warnings: Sequence[str] = ()) -> ErrorReport:
    return error_report(problems, more, warnings, job.world.clock(), _provenance(job.settings, job.context))


def _without_verdict(
    job: _Job, report: ErrorReport, *, exit_code: int, log: str, outputs: dict[str, str], advice: str = ""
) -> Delivery:
    render = renderer_of(report, job.settings.name, advice)
    return Delivery(exit_code=exit_code, state="error", log=log, outputs=outputs, render=render)


def _replace_reports(job: _Job, report: ErrorReport) -> dict[str, str]:
    """Replace the reports of an earlier run where that is allowed, and return the step's outputs."""
    outputs = {"verdict": "error", "summary": report.summary_line}
    for form in FORMATS:
        path = job.files.on_error.get(form.name)
        if path and attempt(job.world, path, partial(_write_error, path, form, report, job.context)):
            outputs[form.name] = for_next_step(path, job.context)
    return outputs


def _write_error(path: str, form: Format, report: ErrorReport, context: Context) -> None:
    make_room(path)
    with owned_like_workspace([path], context):
        write_files({path: form.render_error(report)})


def from_runner() -> int:
    """Run the action with this process's environment, clock, network and standard output, in a child process."""

    def session() -> "requests.Session":
        import requests

        return requests.Session()

    world = World(stdout=sys.stdout, clock=lambda: datetime.now(UTC), session=session, timing=Timing())
    environ = dict(os.environ)
    if environ.get("RUNNER_DEBUG") == "1":
        log_to(sys.stderr)
    for name in (TOKEN_INPUT, SERVICE_KEY):
        os.environ.pop(name, None)  # so that no subprocess of a library inherits it
    code = SharedExitCode()
    return in_child(
        lambda: main(environ, world, code.note),
        lambda number, peak: report_death(environ, world, code.noted(), number, peak),
    )
