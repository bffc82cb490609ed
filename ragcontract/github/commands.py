"""What the runner reads: commands in the log, the outputs file, the step summary.

Formats as documented under "Workflow commands for GitHub Actions".
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ragcontract.text import visible

Level = Literal["notice", "warning", "error"]


def annotation(level: Level, message: str, *, title: str = "rag-contract") -> str:
    """Return the command that shows a message at the job, in one line."""
    return f"::{level} title={_property(title)}::{_data(message)}\n"


def _data(value: str) -> str:
    return visible(value).replace("%", "%25")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def set_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Append outputs to the runner's file; a random delimiter keeps a value from ending early."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        for name, value in outputs.items():
            delimiter = f"end-{secrets.token_hex(16)}"
            file.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def append_summary(path: Path, markdown: str) -> None:
    """Append Markdown to the page that the run shows for the job."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(markdown + "\n")
