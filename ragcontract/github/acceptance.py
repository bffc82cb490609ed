"""A broken contract that a label on the pull request accepts: the verdict stays, only the job's outcome changes.

Nothing that GitHub fails to answer accepts anything: then the job fails, as without the label.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.text import clipped
from ragcontract.github.accept_label import Acceptance, Accepted, Refused, ask
from ragcontract.github.body import minute
from ragcontract.github.commands import annotation
from ragcontract.github.connection import connect
from ragcontract.github.context import Context
from ragcontract.github.delivery import Delivery, World, log_of, renderer_of
from ragcontract.github.failure import GitHubError, within
from ragcontract.github.pull_request import NoPullRequest, PullRequest, find
from ragcontract.github.settings import Settings
from ragcontract.reports.markdown.document import Remark
from ragcontract.reports.markdown.gfm import code, text

if TYPE_CHECKING:
    from ragcontract.github.client import Client

QUEUE = "a merge queue judges a commit of its own, which nobody has labelled"
STAYS = "The verdict stays fail; the job does not fail."


def accept(delivery: Delivery, context: Context, settings: Settings, world: World) -> tuple[Delivery, Settings]:
    """Return the delivery as the label makes it: exit code, log, outputs, what is rendered; and the settings.

    Only a broken contract that would fail the job can be accepted: never input that cannot be judged.
    """
    report = delivery.report
    if not settings.accept_label or delivery.exit_code != ExitCode.BROKEN or report is None:
        return delivery, settings
    found, settings = look(lambda client: find(context, client, settings.pull_request), context, settings, world)
    if found is None:
        return delivery, settings
    delivery = replace(delivery, render=renderer_of(report, settings.name, remark=remark(found)))
    if isinstance(found, Refused):
        return replace(delivery, log=delivery.log + notice(found)), settings
    log, outputs = log_of(report, "warning", context, delivery.outputs), {"accepted-by": found.login}
    accepted = replace(
        delivery,
        exit_code=ExitCode.PASS,
        log=log + notice(found),
        outputs=delivery.outputs | outputs,
        accepted=True,
    )
    return accepted, settings


def look(
    find_pull_request: "Callable[[Client], PullRequest | NoPullRequest]",
    context: Context,
    settings: Settings,
    world: World,
) -> tuple[Acceptance | None, Settings]:
    """Return what the label says of the judged commit, None if it is not set; and the settings with the time left.

    Takes at most half of ``github-timeout``: the rest is for the comment, which must not stay an outdated one.
    """
    seconds, label, start = settings.github_timeout / 2, settings.accept_label, world.timing.monotonic()

    def talk() -> Acceptance | None:
        if context.event_name == "merge_group":
            return Refused(label=label, reason=QUEUE, advice="")
        client = connect(context, world.session, world.timing, seconds=seconds)
        pull_request = find_pull_request(client)
        if isinstance(pull_request, NoPullRequest):
            return None
        return ask(client, pull_request, pull_request.commit or context.commit, label)

    try:
        found = within(seconds, talk)
    except Exception as error:  # noqa: BLE001 (the network can fail in any way, and then nothing is accepted)
        said = str(error) if isinstance(error, GitHubError) else f"{type(error).__name__}: {error}"
        found = Refused(label=label, reason=f"it could not be read: {said}", advice="")
    left = settings.github_timeout - int(world.timing.monotonic() - start)
    return found, replace(settings, github_timeout=max(1, left))


def notice(found: Acceptance) -> str:
    """Return the annotation: a notice that the contract is accepted, or a warning that the label does not count."""
    name = _short(found.label)
    if isinstance(found, Accepted):
        by = f"by @{found.login} at {minute(found.when)}"
        return annotation("notice", f"Accepted by label {name!r}, {by}. {STAYS}")
    message = f"The label {name!r} does not count: {found.reason}. {found.advice}".rstrip()
    return annotation("warning", message)


def remark(found: Acceptance) -> Remark:
    """Return the same for the report in Markdown. Code is what keeps GitHub from notifying the named person."""
    name = code(_short(found.label))
    if isinstance(found, Accepted):
        by = f"by {code(f'@{found.login}')} at {minute(found.when)}"
        return Remark(status="accepted by label", markdown=f"Accepted by label {name}, {by}. {STAYS}")
    sentence = text(f"does not count: {clipped(found.reason, bounds.MARKDOWN_LINE)}. {found.advice}".rstrip())
    return Remark(markdown=f"The label {name} {sentence}")


def _short(label: str) -> str:
    return clipped(label, bounds.MARKDOWN_NAME)
