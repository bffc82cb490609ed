"""What the runner tells a container action: where it runs, for which event, with which token."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

API = "https://api.github.com"
GRAPHQL = "https://api.github.com/graphql"


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
    """The environment of one run. ``pull_request`` is None outside a pull request, ``no_event`` then says why."""

    workspace: Path
    repository: str
    event_name: str
    pull_request: int | None
    no_event: str | None
    api_url: str
    graphql_url: str
    output_file: Path | None
    summary_file: Path | None
    token: Token

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Context":
        """Read the runner's variables and the event's file; nothing that is missing is an error here."""
        event, no_event = _event(environ.get("GITHUB_EVENT_PATH", ""))
        return cls(
            workspace=Path(environ.get("GITHUB_WORKSPACE") or "."),
            repository=environ.get("GITHUB_REPOSITORY", ""),
            event_name=environ.get("GITHUB_EVENT_NAME", ""),
            pull_request=_pull_request(event),
            no_event=no_event,
            api_url=(environ.get("GITHUB_API_URL") or API).rstrip("/"),
            graphql_url=environ.get("GITHUB_GRAPHQL_URL") or GRAPHQL,
            output_file=_path(environ.get("GITHUB_OUTPUT")),
            summary_file=_path(environ.get("GITHUB_STEP_SUMMARY")),
            token=Token(environ.get("INPUT_GITHUB-TOKEN", "").strip()),
        )


def _path(value: str | None) -> Path | None:
    return Path(value) if value else None


def _event(path: str) -> tuple[Any, str | None]:
    try:
        return msgspec.json.decode(Path(path).read_bytes()), None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, f"the event's file cannot be read ({error})"


def _pull_request(event: Any) -> int | None:
    pull_request = event.get("pull_request") if isinstance(event, dict) else None
    number = pull_request.get("number") if isinstance(pull_request, dict) else None
    return number if type(number) is int and number > 0 else None
