"""Points in time in files: with their offset from UTC, so that they mean the same everywhere."""

from datetime import datetime
from typing import Annotated, TypeAlias

from msgspec import Meta

# For messages about values that are none; values themselves are parsed, not matched.
_PATTERN = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)$(?!\n)"
)
Moment: TypeAlias = Annotated[
    datetime, Meta(tz=True, title="a time as 2026-01-31T12:00:00Z", extra_json_schema={"pattern": _PATTERN})
]
