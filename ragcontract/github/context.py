"""What the runner tells a container action: where it runs, for which event, with which token."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

TOKEN_INPUT = "INPUT_GITHUB-TOKEN"  # noqa: S105 (its name, not its value)
SERVER = "https://github.com"
API = "https://api.github.com"


class Token(Struct, frozen=True):
    """A secret: it shows itself to nobody who did not ask for ``value``."""

    value: str

    def __repr__(self) -> str:
        """Hide the value."""
        return "Token(***)"

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self.value)


class Context(Struct, frozen=True, kw_only=True):
    """The environment of one run. ``event`` is empty where the event's file cannot be read; ``event_problem`` says why.

    ``workspace`` and ``temporary`` are the folders as this process sees them, ``host_workspace`` the workspace as the
    steps outside the container do (empty if unknown). ``run`` is the run's id and attempt: a later one is greater.
    """

    workspace: Path
    temporary: Path | None
    host_workspace: str
    server_url: str
    api_url: str
    graphql_url: str
    repository: str
    event_name: str
    event: dict[str, Any]
    event_problem: str | None
    sha: str
    branch: str
    run: tuple[int, int]
    run_number: str
    output_file: Path | None
    summary_file: Path | None
    token: Token

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Context":
        """Read the runner's variables and the event's file; nothing that is missing is an error here."""
        event, event_problem = _event(environ.get("GITHUB_EVENT_PATH", ""))
        repository = environ.get("GITHUB_REPOSITORY", "")
        outside = environ.get("RUNNER_WORKSPACE", "")
        api_url = (environ.get("GITHUB_API_URL") or API).rstrip("/")
        return cls(
            workspace=Path(environ.get("GITHUB_WORKSPACE") or "."),
            temporary=_path(environ.get("RUNNER_TEMP")),
            host_workspace=f"{outside}/{repository.rpartition('/')[2]}" if outside and repository else "",
            server_url=(environ.get("GITHUB_SERVER_URL") or SERVER).rstrip("/"),
            api_url=api_url,
            graphql_url=_graphql_url(api_url, environ.get("GITHUB_GRAPHQL_URL", "")),
            repository=repository,
            event_name=environ.get("GITHUB_EVENT_NAME", ""),
            event=event,
            event_problem=event_problem,
            sha=environ.get("GITHUB_SHA", ""),
            branch=environ.get("GITHUB_HEAD_REF") or environ.get("GITHUB_REF_NAME", ""),
            run=(_count(environ.get("GITHUB_RUN_ID")), _count(environ.get("GITHUB_RUN_ATTEMPT"))),
            run_number=environ.get("GITHUB_RUN_NUMBER", ""),
            output_file=_path(environ.get("GITHUB_OUTPUT")),
            summary_file=_path(environ.get("GITHUB_STEP_SUMMARY")),
            token=Token(environ.get(TOKEN_INPUT, "").strip()),
        )

    @property
    def run_url(self) -> str:
        """The address of the run's page; empty where the run is not known."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run[0]}" if self.run[0] else ""

    @property
    def commit(self) -> str:
        """The commit that people know: the pull request's newest, not the merge of it that the runner made.

        A ``workflow_run`` is about the commit of the run before it; its own is the default branch's.
        """
        return (
            text_at(self.event, "pull_request", "head", "sha")
            or text_at(self.event, "workflow_run", "head_sha")
            or self.sha
        )


def _graphql_url(api_url: str, named: str) -> str:
    # GitHub has both on one host, and the token is for that host: an address on another one is a mistake or a trap.
    host = "/".join(api_url.split("/")[:3])
    if named.startswith(f"{host}/"):
        return named
    return f"{api_url.removesuffix('/v3') if api_url.endswith('/api/v3') else api_url}/graphql"


def _path(value: str | None) -> Path | None:
    return Path(value) if value else None


def _count(value: str | None) -> int:
    return int(value) if value and value.isdecimal() and value.isascii() and len(value) <= 18 else 0  # noqa: PLR2004


def _event(path: str) -> tuple[dict[str, Any], str | None]:
    try:
        event = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {}, f"the event's file cannot be read ({error})"
    return (event, None) if isinstance(event, dict) else ({}, "the event's file holds no JSON object")


def at(value: Any, *path: str) -> Any:
    """Look up nested keys in what an API or an event said; None where anything on the way is not there."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def number_at(value: Any, *path: str) -> int | None:
    """Look up a positive whole number."""
    found = at(value, *path)
    return found if type(found) is int and found > 0 else None


def text_at(value: Any, *path: str) -> str:
    """Look up text; empty where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""
