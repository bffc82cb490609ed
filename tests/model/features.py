"""The features of workspaces, to count which of them met which exit code."""

import unicodedata
from typing import Any

from tests.model.random_answers import TOOLS
from tests.model.random_workspaces import DOCUMENTS
from tests.model.refused import KNOWN
from tests.model.tools import ARGUMENTS, NAMES
from tests.model.workspace import Row, Workspace


def features(workspace: Workspace) -> set[str]:
    """Return the features that a workspace has, to count them."""
    found = {name for name in ("baseline", "scores", "k", "tags", "repeats", "stored") if getattr(workspace, name)}
    for section, value in workspace.config.items():
        names = value if isinstance(value, dict) else ()
        found |= {f"config.{section}"} if not names else set()
        found |= {f"config.{section}.{name}" if section != "tags" else "config.tags" for name in names}
    found |= {f"golden.{name}" for row in workspace.golden for name in row if name in KNOWN}
    found |= {"golden: an unknown field" for row in workspace.golden if row.keys() - KNOWN}
    found |= {f"rule.{rule['type']}" for row in workspace.golden for rule in row.get("rules") or []}
    found |= {f"run.{name}" for row in workspace.run for name in row}
    found |= {f"waiver.{name}" for waiver in workspace.config.get("waivers") or [] for name in waiver if len(name) < 6}
    found |= {f"a key twice in {workspace.repeated}"} if workspace.repeated else set()
    found |= {f"configurations: {workspace.configs}"} if workspace.configs != "named" else set()
    found |= {f"text: {name}" for row in workspace.run for name in _forms_of_texts(row)}
    found |= {f"call: {name}" for row in workspace.run for call in row.get("tool_calls") or [] for name in _call(call)}
    found |= {f"message: {name}" for row in workspace.run for name in _messages(row)}
    return found | _documents(workspace)


def _forms_of_texts(row: Row) -> set[str]:
    text = row.get("response") or ""
    kinds = {unicodedata.category(character) for character in text}
    marks = {"entity": "&", "tag": "</b>", "comment": "<!--", "title": '(target "', "no target": "(target and"}
    marks |= {"underscore": " _", "struck": "~~", "link": "](https"}
    found = {name for name, mark in marks.items() if mark in text}
    return found | ({"invisible"} if "Cf" in kinds else set()) | ({"blank"} if not text.strip() else set())


def _call(call: Row) -> set[str]:
    parts = [call, call["function"]] if isinstance(call.get("function"), dict) else [call]
    keys = {key for part in parts for key in part}
    name = next((part[key] for part in parts for key in NAMES if part.get(key)), "")
    arguments = next((part[key] for part in parts for key in ARGUMENTS if part.get(key) is not None), None)
    found = {f"arguments under {key}" for key in keys & set(ARGUMENTS)}
    found |= {"another form of the name"} if name not in TOOLS else set()
    found |= {"an unknown field"} if keys & {"payload", "data"} else set()
    return found | ({f"arguments as {type(arguments).__name__}"} if arguments is not None else set())


def _messages(row: Row) -> set[str]:
    found: set[str] = set()
    for message in row.get("messages") or []:
        found |= message.keys() & {"function_call", "tool_calls", "refusal"}
        content: Any = message.get("content")
        found |= {f"part {part['type']}" for part in content} if isinstance(content, list) else set()
    return found


def _documents(workspace: Workspace) -> set[str]:
    known = {str(document) for document in DOCUMENTS}
    listed = (result["doc_id"] for row in workspace.run for result in row.get("results") or [])
    others = {str(document) for document in listed} - known
    return {"documents in another form"} if others else set()
