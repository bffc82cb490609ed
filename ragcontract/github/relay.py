"""``mode: post-comment``: a second workflow posts what a check that may not write has left in an artifact.

The artifact comes from a run of somebody else's code, so it is hostile. Which pull request it is for comes from the
event, never from the file; the text is made harmless; nothing in it is executed.
"""

import os
import stat
from pathlib import Path

from msgspec.structs import replace

from ragcontract.errors import ExitCode, InputError
from ragcontract.github import annotations
from ragcontract.github.body import foot
from ragcontract.github.comment import Draft, State, post
from ragcontract.github.context import Context, number_at, text_at
from ragcontract.github.delivery import SAID, World, attempt, connect, outputs, refusal
from ragcontract.github.failure import GitHubError, time_limit
from ragcontract.github.harmless import harmless
from ragcontract.github.places import for_next_step, in_container, outside, wrong_folder
from ragcontract.github.pull_request import NoPullRequest, of_workflow_run
from ragcontract.github.settings import Settings
from ragcontract.text import printable, visible

MAX_FILE = 1 << 20
MAX_FIRST_LINE = 2_000
TOO_LONG = "\n\nThe report is too long for a comment; the summary of the job has all of it.\n"


def relay(context: Context, settings: Settings, world: World) -> int:
    """Post the file as the contract's comment on the pull request that the workflow ran for; 0, 2 or 4."""
    try:
        text = harmless(_read(_file(settings, context)))
    except InputError as error:
        world.stdout.write(
            annotations.of_problems(error.lines(), error.warnings, lambda place: for_next_step(place, context))
        )
        return error.exit_code
    origin = _origin(context)
    tail = foot(origin, None, world.clock())

    def body(max_bytes: int, _before: State | None) -> str:
        room = max_bytes - len(tail.encode())
        return (text if len(text.encode()) <= room else text.partition("\n")[0][:MAX_FIRST_LINE] + TOO_LONG) + tail

    try:
        with time_limit(settings.github_timeout):
            client = connect(context, settings, world)
            pull_request = of_workflow_run(context, client)
            if isinstance(pull_request, NoPullRequest):
                world.stdout.write(printable(f"No comment: {visible(pull_request.reason)}.\n"))
                return ExitCode.PASS
            draft = Draft(name=settings.name, state=_state(text), run=origin.run, content=text, body=body)
            posted = post(client, pull_request, draft, settings.comment)
    except GitHubError as error:
        world.stdout.write(refusal(error))
        return ExitCode.NO_COMMENT if settings.comment_required else ExitCode.PASS
    attempt(world, "The output comment-url", lambda: outputs(context, {"comment-url": posted.url}))
    world.stdout.write(printable(f"{SAID[posted.written]} {visible(posted.url)}".rstrip() + "\n"))
    return ExitCode.PASS


def _file(settings: Settings, context: Context) -> Path:
    """Return where the file is. An artifact may be unpacked with links in it: none on the way is followed."""
    folder = in_container(settings.working_directory, context)
    problem = wrong_folder(folder, context)
    if settings.problems or problem:
        raise InputError([*settings.problems, *([problem] if problem else [])])
    path = Path(folder) / in_container(settings.comment_body_file or "", context)
    if problems := outside([str(path)], context):
        raise InputError(problems)
    below = Path(os.path.normpath(Path.cwd() / path))
    tops = (context.workspace, context.temporary)
    steps = [step for step in (below, *below.parents) if not any(top and top.is_relative_to(step) for top in tops)]
    if any(step.is_symlink() for step in steps):
        raise InputError([f"{path}: is behind a link, which the file of a check is not"])
    return path


def _read(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would keep us waiting
            raise InputError([f"{path}: is no file"])
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise InputError([f"{path}: cannot be read ({error.strerror or error})"]) from error
    if len(data) > MAX_FILE:
        raise InputError([f"{path}: is larger than 1 MiB, which no comment of ours is"])
    return data.decode("utf-8", errors="replace")


def _state(text: str) -> State:
    first = text.lstrip().partition("\n")[0]
    states: dict[str, State] = {"✅": "pass", "❌": "fail", "⚠️": "error"}
    return next((state for icon, state in states.items() if first.startswith(f"### {icon}")), "unknown")


def _origin(context: Context) -> Context:
    """Return the context of the run that made the file: it is the one that is linked, and that must not be older."""

    def number(name: str) -> int:
        return number_at(context.event, "workflow_run", name) or 0

    return replace(
        context,
        run=(number("id"), number("run_attempt")),
        run_number=str(number("run_number") or ""),
        sha=text_at(context.event, "workflow_run", "head_sha"),
    )
