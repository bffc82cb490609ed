"""The action's inputs. A runner hands them over as ``INPUT_NAME``, upper case, hyphens kept."""

from collections.abc import Mapping
from typing import Literal, TypeVar

from msgspec import Struct

from ragcontract import defaults
from ragcontract.inputs.schema import nearest

CommentWhen = Literal["always", "on-failure", "never"]
COMMENT_WHEN: dict[str, CommentWhen] = {"always": "always", "on-failure": "on-failure", "never": "never"}
MAX_K = 1_000_000

T = TypeVar("T")


class Settings(Struct, frozen=True, kw_only=True):
    """The inputs of ``action.yml``, typed; the token is not among them (see ``Context``).

    An input that is wrong has its default here and a sentence in ``problems``, so that the comment that says so can
    still be posted under the right name.
    """

    golden: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
    config: str | None = None
    k: int | None = None
    report_md: str = defaults.REPORT_MD
    report_json: str = defaults.REPORT_JSON
    junit: str = defaults.JUNIT
    comment: CommentWhen = "always"
    name: str = ""
    enforce: bool = True
    working_directory: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Read the inputs."""
        inputs = _Inputs(environ)
        return cls(
            golden=inputs.lines("golden"),
            run=inputs.lines("run"),
            baseline=inputs.lines("baseline"),
            config=inputs.text("config") or None,
            k=inputs.cut_off("k"),
            report_md=inputs.text("report-md") or defaults.REPORT_MD,
            report_json=inputs.text("report-json") or defaults.REPORT_JSON,
            junit=inputs.text("junit") or defaults.JUNIT,
            comment=inputs.choice("comment", COMMENT_WHEN, "always"),
            name=inputs.text("name"),
            enforce=inputs.choice("enforce", {"true": True, "false": False}, default=True),
            working_directory=inputs.text("working-directory"),
            problems=tuple(inputs.problems),
        )


class _Inputs:
    """Takes inputs out of the environment and notes what is wrong with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        return self._environ.get(f"INPUT_{name.upper()}", "").strip()

    def lines(self, name: str) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.text(name).splitlines() if line.strip())

    def cut_off(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if value.isdecimal() and value.isascii() and len(value) <= len(str(MAX_K)) and 1 <= int(value) <= MAX_K:
            return int(value)
        self._wrong(name, f"a whole number from 1 to {MAX_K:,}")
        return None

    def choice(self, name: str, choices: Mapping[str, T], default: T) -> T:
        value = self.text(name)
        if value and value not in choices:
            near = nearest(value, choices)
            self._wrong(name, " or ".join(choices), f"; did you mean {near!r}?" if near else "")
        return choices.get(value, default)

    def _wrong(self, name: str, expected: str, hint: str = "") -> None:
        self.problems.append(f"input {name}: expected {expected}, found {self.text(name)!r}{hint}")
