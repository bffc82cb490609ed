"""Where the program is known not to do what the documents say: each entry goes when the program is corrected."""

import json

from tests.model.workspace import Workspace


def is_open(workspace: Workspace, difference: str) -> bool:
    """Whether a difference is one that is known."""
    return _pass_rate_of_conversations(workspace, difference) or _allowed_fields_in_baseline(workspace)


def _pass_rate_of_conversations(workspace: Workspace, difference: str) -> bool:
    """A conversation counts in no pass rate, although its turns have rules."""
    if not any("turns" in row for row in workspace.golden):
        return False
    limited = "pass_rate" in json.dumps(workspace.config) or "tiers" in workspace.config
    return limited or difference.startswith("rate ")


def _allowed_fields_in_baseline(workspace: Workspace) -> bool:
    """A baseline that is stored with `allow_fields` in the configuration cannot be read."""
    return workspace.stored and "allow_fields" in workspace.config
