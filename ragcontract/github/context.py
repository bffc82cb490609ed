"""The context that the runner passes to a container action, and the errors and time limits of calls to GitHub.

This module does not import requests.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.safe_text import encodable

T = TypeVar("T")


class GitHubError(Exception):
    """A call that failed; ``status`` is None if there was no answer.

    * ``maybe_done``: GitHub may have carried out the call, although no answer confirmed it.
    * ``denied``: the token lacks the permission. GitHub answers 404 if even the existence is secret.
    * ``retry_after``: the seconds after which the call may succeed; None if it will not.
    * ``try_again``: the wait before the next attempt is over. The caller first has to check what changed meanwhile.
    * ``kind``: the type of an error of GraphQL, such as ``STALE_DATA``; ``RATE_LIMITED`` if ``retry_after`` is the time
      that a limit asks for. Empty for others.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        maybe_done: bool = False,
        denied: bool = False,
        retry_after: float | None = None,
        kind: str = "",
    ) -> None:
        super().__init__(message)  # it must not contain the token
        self.status = status
        self.maybe_done = maybe_done
        self.denied = denied
        self.retry_after = retry_after
        self.try_again = False
        self.kind = kind


def within(seconds: float, talk: Callable[[], T], *, who: str = "GitHub") -> T:
    """Call ``talk`` and return its result; raises :class:`GitHubError` if it takes longer than ``seconds``.

    It runs in a daemon thread, which is abandoned on a timeout. Socket timeouts are not enough. They apply between two
    bytes, so a slow answer could go on forever, and name resolution has no timeout at all.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(talk())
        except BaseException as error:  # noqa: BLE001 (it is raised again in the waiting thread)
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            return answer.result()  # talk raised a TimeoutError itself, or finished at the last moment
        raise GitHubError(f"{who} did not answer within the {seconds:g} seconds of github-timeout") from None


TOKEN_INPUT = "INPUT_GITHUB-TOKEN"  # noqa: S105 (its name, not its value)
SERVICE_KEY = "RAG_CONTRACT_TOKEN"  # the variable that has the key of a team service
SERVER = "https://github.com"
API = "https://api.github.com"


class Token(Struct, frozen=True):
    """A secret whose ``repr`` does not contain its ``value``."""

    value: str

    def __repr__(self) -> str:
        """Hide the value."""
        return "Token(***)"

    def __bool__(self) -> bool:
        """Return whether the token is not empty."""
        return bool(self.value)


class Context(Struct, frozen=True, kw_only=True):
    """The environment of one run."""

    workspace: Path  # in the container
    temporary: Path | None  # in the container
    host_workspace: str  # the workspace's path outside the container; empty if unknown
    server_url: str
    api_url: str
    graphql_url: str
    repository: str
    event_name: str
    event: dict[str, Any]  # empty if the event's file cannot be read
    event_problem: str | None  # why the event's file cannot be read
    sha: str
    branch: str
    ref: str  # such as refs/heads/main
    run: tuple[int, int]  # run id and attempt; a later run is greater
    run_number: str
    step: str  # the ids of the job and the step, which are the same in all jobs of a matrix
    output_file: Path | None
    summary_file: Path | None
    token: Token
    service_key: Token = Token("")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Context":
        """Read the runner's environment variables and the event's file; missing values are not errors here."""

        def text(name: str) -> str:  # its bytes need not be UTF-8, but those of reports and requests have to be
            return encodable(environ.get(name, ""))

        event, event_problem = _event(environ.get("GITHUB_EVENT_PATH", ""))
        repository = text("GITHUB_REPOSITORY")
        outside = environ.get("RUNNER_WORKSPACE", "")
        api_url = (environ.get("GITHUB_API_URL") or API).rstrip("/")
        return cls(
            workspace=Path(environ.get("GITHUB_WORKSPACE") or "."),
            temporary=_path(environ.get("RUNNER_TEMP")),
            host_workspace=f"{outside}/{repository.rpartition('/')[2]}" if outside and repository else "",
            server_url=(text("GITHUB_SERVER_URL") or SERVER).rstrip("/"),
            api_url=api_url,
            graphql_url=_graphql_url(api_url, environ.get("GITHUB_GRAPHQL_URL", "")),
            repository=repository,
            event_name=text("GITHUB_EVENT_NAME"),
            event=event,
            event_problem=event_problem,
            sha=text("GITHUB_SHA"),
            branch=text("GITHUB_HEAD_REF") or text("GITHUB_REF_NAME"),
            ref=text("GITHUB_REF"),
            run=(_count(environ.get("GITHUB_RUN_ID")), _count(environ.get("GITHUB_RUN_ATTEMPT"))),
            run_number=text("GITHUB_RUN_NUMBER"),
            step=f"{text('GITHUB_JOB')} {text('GITHUB_ACTION')}",
            output_file=_path(environ.get("GITHUB_OUTPUT")),
            summary_file=_path(environ.get("GITHUB_STEP_SUMMARY")),
            token=Token(environ.get(TOKEN_INPUT, "").strip()),
            service_key=Token(environ.get(SERVICE_KEY, "").strip()),
        )

    @property
    def run_url(self) -> str:
        """The URL of the run's page; empty if the run is unknown."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run[0]}" if self.run[0] else ""

    @property
    def commit(self) -> str:
        """The commit that the run is about: the pull request's newest, not the merge commit that the runner checks out.

        For ``workflow_run``, it is the commit of the run that triggered it, not the default branch's.
        """
        return (
            text_at(self.event, "pull_request", "head", "sha")
            or text_at(self.event, "workflow_run", "head_sha")
            or self.sha
        )


def _graphql_url(api_url: str, named: str) -> str:
    # Both APIs are on one host, and the token is only for that host: a URL on another host is a mistake or an attack.
    host = "/".join(api_url.split("/")[:3])
    if named.startswith(f"{host}/"):
        return named
    return f"{api_url.removesuffix('/v3') if api_url.endswith('/api/v3') else api_url}/graphql"


def _path(value: str | None) -> Path | None:
    return Path(value) if value else None


def _count(value: str | None) -> int:
    return int(value) if value and value.isdecimal() and value.isascii() and len(value) <= bounds.RUN_DIGITS else 0


def _event(path: str) -> tuple[dict[str, Any], str | None]:
    try:
        event = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {}, f"the event's file cannot be read ({error})"
    return (event, None) if isinstance(event, dict) else ({}, "the event's file holds no JSON object")


def at(value: Any, *path: str) -> Any:
    """Return the value at a path of keys in decoded JSON; None if any of the keys does not exist."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def number_at(value: Any, *path: str) -> int | None:
    """Return the positive integer at a path of keys, or None."""
    number = at(value, *path)
    return number if type(number) is int and number > 0 else None


def text_at(value: Any, *path: str) -> str:
    """Return the text at a path of keys; empty if there is none."""
    text = at(value, *path)
    return text if isinstance(text, str) else ""
