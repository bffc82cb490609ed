"""``mode: post-comment``: a second workflow posts what a check that may not write has left in an artifact.

The artifact comes from a run of somebody else's code, so it is hostile. Which pull request it is for comes from the
event, never from the file; the text is made harmless; nothing in it is executed.
"""

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragcontract.core.errors import ExitCode, InputError
from ragcontract.github import annotations
from ragcontract.github.body import CHECKED, foot, minute
from ragcontract.github.commands import annotation
from ragcontract.github.comment import Draft, State
from ragcontract.github.context import Context, number_at, text_at
from ragcontract.github.delivery import World, comment
from ragcontract.github.failure import GitHubError
from ragcontract.github.harmless import harmless
from ragcontract.github.paths import in_container, in_repository, outside, wrong_folder
from ragcontract.github.pull_request import NoPullRequest, PullRequest, of_workflow_run
from ragcontract.github.settings import Settings
from ragcontract.reports.markdown.folds import INPUTS
from ragcontract.reports.markdown.gfm import fold

if TYPE_CHECKING:
    from ragcontract.github.client import Client

MAX_FILE = 128 << 10  # bytes; ours has less than half of that
INPUTS_FOLD = fold(INPUTS).partition("\n")[0]
FOLD_END = "\n</details>\n"
TOO_LONG = "\nThe report is too long for a comment; the summary of the job has all of it.\n"
AGAIN = "It was broken before and holds again."


def relay(context: Context, settings: Settings, world: World) -> int:
    """Post the file as the contract's comment on the pull request that the workflow ran for; 0, 2 or 4."""
    try:
        text = harmless(_read(_file(settings, context)))
    except InputError as error:
        world.stdout.write(annotations.of_problems(error, lambda location: in_repository(location, context)))
        return error.exit_code
    commented = comment(
        lambda client: _pull_request(context, client),
        lambda: _draft(text, _origin(context), settings, world),
        context,
        settings,
        world,
    )
    if commented or not settings.comment_required:
        return ExitCode.PASS
    world.stdout.write(annotation("error", "comment-required is true and the comment could not be posted"))
    return ExitCode.NO_COMMENT


def _pull_request(context: Context, client: "Client") -> PullRequest | NoPullRequest:
    """Find the pull request; raises :class:`GitHubError` where the workflow is not started by another one's end."""
    if context.event_name != "workflow_run":
        raise GitHubError(f"mode post-comment needs the event workflow_run, and this is {context.event_name!r}")
    return of_workflow_run(context, client)


def _draft(text: str, origin: Context, settings: Settings, world: World) -> Draft:
    state = _state(text)
    tail = foot(origin, f"Posted {minute(world.clock())}")

    def body(max_bytes: int, before: State | None) -> str:
        head, _, rest = text.partition("\n")
        again = state == "pass" and before in {"fail", "error"}
        whole = f"{head}\n\n{AGAIN}\n{rest}" if again else text
        return _fitting(whole, max_bytes - len(tail.encode())) + tail

    return Draft(name=settings.name, state=state, run=origin.run, content=_content(text), body=body)


def _fitting(text: str, max_bytes: int) -> str:
    """Keep whole lines from the start, where the verdict and the metrics are, and close the folds."""
    size = len(TOO_LONG.encode())
    if len(text.encode()) + size <= max_bytes:
        return text
    kept: list[str] = []
    folds = 0
    for line in text.splitlines(keepends=True):
        folds_after = folds + line.startswith("<details>") - line.startswith("</details>")
        size += len(line.encode())
        if size + folds_after * len(FOLD_END) > max_bytes:
            break
        kept.append(line)
        folds = folds_after
    return "".join([*kept, FOLD_END * folds, TOO_LONG])


def _content(text: str) -> str:
    """Return what a text says but for its inputs and its time, which differ from run to run."""
    return re.split(f"^(?:{re.escape(INPUTS_FOLD)}|{CHECKED} )", text, maxsplit=1, flags=re.MULTILINE)[0]


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
        raise InputError([f"{path}: is larger than 128 KiB, which no comment of ours is"])
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
