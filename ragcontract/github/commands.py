"""Output for the runner: workflow commands in the log, step outputs, the job summary.

The formats are those of GitHub's documentation, "Workflow commands for GitHub Actions".
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible
from ragcontract.files.appending import append

Level = Literal["notice", "warning", "error"]


def annotation(level: Level, message: str, *, title: str = "rag-contract", location: str = "") -> str:
    """Return the workflow command that annotates the job, or a file's line if ``location`` (``a.jsonl:17``) is set."""
    properties = {"title": shorten(_shown(title), bounds.ANNOTATION_TITLE)}
    file, _, line = location.rpartition(":")
    if line.isdecimal():
        properties = {"file": file, "line": line} | properties
    elif location:
        properties = {"file": location} | properties
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {written}::{_data(shorten(_shown(message), bounds.ANNOTATION))}\n"


def _shown(value: str) -> str:
    return visible(value).replace("##[", r"##\x5b")


def _data(value: str) -> str:
    return _shown(value).replace("%", "%25")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def set_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Append step outputs to the runner's file; the random delimiter cannot occur in a value."""
    text = ""
    for name, value in outputs.items():
        delimiter = f"end-{os.urandom(16).hex()}"
        text += f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
    append(path, text.encode())


def append_summary(path: Path, markdown: str) -> None:
    """Append Markdown to the job summary."""
    append(path, f"{markdown}\n".encode())
