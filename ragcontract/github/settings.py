"""The action's inputs, which the runner passes as ``INPUT_NAME``: upper case, hyphens preserved."""

from collections.abc import Mapping
from typing import Literal, TypeVar, get_args

from msgspec import Struct

from ragcontract.contract.defaults import DEFAULTS
from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames
from ragcontract.evaluation.source import Inputs
from ragcontract.report.record import Detail

Mode = Literal["check", "post-comment"]
CommentWhen = Literal["always", "on-change", "on-failure", "never"]
MODES: dict[str, Mode] = {"check": "check", "post-comment": "post-comment"}
COMMENT_WHEN: dict[str, CommentWhen] = {
    "always": "always",
    "on-change": "on-change",
    "on-failure": "on-failure",
    "never": "never",
}
HistoryRecord = Literal["default-branch", "any-branch", "never"]
HISTORY_RECORD: dict[str, HistoryRecord] = {name: name for name in get_args(HistoryRecord)}
HISTORY_BRANCH = "rag-contract-history"
DETAILS: dict[str, Detail] = {detail: detail for detail in get_args(Detail)}
FLAGS = {"true": True, "false": False}

T = TypeVar("T")
D = TypeVar("D")


class ActionSettings(Struct, frozen=True, kw_only=True):
    """The parsed inputs of ``action.yml``, without the token, which is in ``Context``.

    An invalid input has its default value here and a message in ``problems``, so that a comment with the message can
    still be posted under the right name.
    """

    mode: Mode = "check"
    inputs: Inputs = Inputs(unnamed=frozenset(DEFAULTS))  # as they are named, with paths on the runner
    report_md: str = "report.md"
    report_json: str = "report.json"
    report_json_detail: Detail | None = None
    junit: str = "junit.xml"
    report_html: str = ""
    report_v2: str = ""
    comment: CommentWhen = "always"
    comment_required: bool = False
    comment_body_file: str | None = None
    pull_request: int | None = None
    github_timeout: int = bounds.TIMEOUT_DEFAULT
    name: str = ""
    job_index: str = "0"
    enforce: bool = True
    accept_label: str = ""
    history: str = ""  # empty, branch, a folder, or the address of a team service
    history_branch: str = HISTORY_BRANCH
    history_record: HistoryRecord = "default-branch"
    working_directory: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "ActionSettings":
        """Read the inputs from the runner's environment variables."""
        inputs = _Inputs(environ)
        mode: Mode = inputs.choice("mode", MODES, "check")  # what is wrong is reported in the order of these lines
        k, repeats = inputs.number("k", bounds.RANK), inputs.choice("repeats", FLAGS, default=False)
        detail = inputs.choice("report-json-detail", DETAILS, None)
        return cls(
            mode=mode,
            inputs=Inputs.named(
                **{name: inputs.lines(name) for name in ("golden", "run", "scores", "judgments", "baseline")},
                **{name: inputs.text(name) or None for name in ("calibration", "config")},
                k=k,
                tags=inputs.lines("tag"),
                repeats=repeats,
                no_answers=inputs.choice("no-answers", FLAGS, default=False),
            ),
            report_md=inputs.text("report-md") or "report.md",
            report_json=inputs.text("report-json") or "report.json",
            report_json_detail=detail,
            junit=inputs.text("junit") or "junit.xml",
            report_html=inputs.text("report-html"),
            report_v2=inputs.text("report-v2"),
            comment=inputs.choice("comment", COMMENT_WHEN, "always"),
            comment_required=inputs.choice("comment-required", FLAGS, default=False),
            comment_body_file=inputs.text("comment-body-file") or None,
            pull_request=inputs.number("pull-request", bounds.PULL_REQUEST),
            github_timeout=inputs.number("github-timeout", bounds.TIMEOUT) or bounds.TIMEOUT_DEFAULT,
            name=inputs.text("name"),
            job_index=inputs.text("job-index") or "0",
            enforce=inputs.choice("enforce", FLAGS, default=True),
            accept_label=inputs.line("accept-label", "the name of one label"),
            history=inputs.line("history", "one folder, one address, or branch"),
            history_branch=inputs.line("history-branch", "the name of one branch") or HISTORY_BRANCH,
            history_record=inputs.choice("history-record", HISTORY_RECORD, "default-branch"),
            working_directory=inputs.text("working-directory"),
            problems=inputs.all_problems(),
        )


class _Inputs:
    """Reads inputs from the environment and collects the problems with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        return self._environ.get(f"INPUT_{name.upper()}", "").strip()

    def lines(self, name: str) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.text(name).splitlines() if line.strip())

    def line(self, name: str, what: str) -> str:
        value = self.text(name)
        if len(value.splitlines()) > 1:
            self._wrong(name, what)
            return ""
        return value

    def number(self, name: str, most: int) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if value.isdecimal() and value.isascii() and len(value) <= len(str(most)) and 1 <= int(value) <= most:
            return int(value)
        self._wrong(name, f"a whole number from 1 to {most:,}")
        return None

    def choice(self, name: str, choices: Mapping[str, T], default: D) -> T | D:
        value = self.text(name)
        if value and value not in choices:
            advice = NearNames(choices).advice(value)
            self._wrong(name, " or ".join(choices), advice and f"; {advice}")
        return choices.get(value, default)

    def all_problems(self) -> tuple[str, ...]:
        """Return the problems of single inputs and of combinations of inputs."""
        if self.text("comment-required") == "true" and self.text("comment") == "never":
            self.problems.append(
                "input comment-required: a comment cannot be required where the input comment is never"
            )
        if self.text("mode") == "post-comment" and self.text("comment-body-file"):
            self.problems.append(
                "input comment-body-file: mode post-comment renders the check's report.json instead; upload that file "
                "in the first workflow, name it here with the input report-json, and remove comment-body-file"
            )
        if self.text("mode") == "post-comment" and self.text("comment") == "never":
            self.problems.append("input comment: mode post-comment has nothing to do where it is never")
        return tuple(self.problems)

    def _wrong(self, name: str, expected: str, hint: str = "") -> None:
        self.problems.append(f"input {name}: expected {expected}, found {self.text(name)!r}{hint}")
