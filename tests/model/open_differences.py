"""Where the program is known not to do what the documents say: each entry goes when the program is corrected."""

from tests.model.texts import says_something
from tests.model.workspace import Workspace


def is_open(workspace: Workspace) -> bool:
    """Whether a difference in a workspace is one that is known."""
    return _json_without_letters(workspace)


def _json_without_letters(workspace: Workspace) -> bool:
    """An answer such as ``{}`` counts where a JSON Schema is wanted, although a reader sees no letter in it."""
    wants_json = any(rule["type"] == "json_schema" for row in workspace.golden for rule in row.get("rules") or [])
    says_nothing = any(row.get("response") and not says_something(row["response"]) for row in workspace.run)
    return wants_json and says_nothing
