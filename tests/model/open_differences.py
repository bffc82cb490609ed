"""Where the program is known not to do what the documents say: each entry goes when the program is corrected."""

import json

from tests.model.texts import says_something
from tests.model.workspace import Workspace


def is_open(workspace: Workspace, difference: str) -> bool:
    """Whether a difference is one that is known."""
    known = (_pass_rate_of_conversations(workspace, difference), _allowed_fields_in_baseline(workspace))
    return any(known) or _json_without_letters(workspace)


def _pass_rate_of_conversations(workspace: Workspace, difference: str) -> bool:
    """A conversation counts in no pass rate, although its turns have rules."""
    if not any("turns" in row for row in workspace.golden):
        return False
    limited = "pass_rate" in json.dumps(workspace.config) or "tiers" in workspace.config
    return limited or difference.startswith("rate ")


def _allowed_fields_in_baseline(workspace: Workspace) -> bool:
    """A baseline that is stored with `allow_fields` in the configuration cannot be read."""
    return workspace.stored and "allow_fields" in workspace.config


def _json_without_letters(workspace: Workspace) -> bool:
    """An answer such as ``{}`` counts where a JSON Schema is wanted, although a reader sees no letter in it."""
    wants_json = any(rule["type"] == "json_schema" for row in workspace.golden for rule in row.get("rules") or [])
    says_nothing = any(row.get("response") and not says_something(row["response"]) for row in workspace.run)
    return wants_json and says_nothing
