"""Problems and warnings without the values that they quote, for runs whose texts must not be shown."""

import re

from msgspec.structs import replace

from ragcontract.files.problems import Problems

LEFT_OUT = "(not shown)"
# Everything behind the start of a value goes, the advice too: a value can look like any text of ours.
_VALUES = (
    re.compile(
        r"(, found |, before |its JSON object: |, which failed: |; found instead: |with the keys |duplicate key ).*",
        re.DOTALL,
    ),
    # The item of a judgment that was edited; an item that a judge was asked about has a name as `claim:3`.
    re.compile(r"( has a judgment on )(?![a-z_]+:[0-9]+ that ).*", re.DOTALL),
    # Why a judge gave no verdict, in words that may quote its reply.
    re.compile(r"( has no verdict on .*?\((?:unsure|compromised|failed): ).*", re.DOTALL),
    # What is wrong with the row of a query: `query "q1" has the mode "x", expected …`. A long id is cut. What is behind
    # a semicolon is advice, unless a value was before it; and an index (`messages[2]`) is none.
    re.compile(r'(: query "(?:[^"\\…]|\\.)*(?:…"?|")(?:[^"\[{;]|(?<=\w)\[[0-9]+\])*+)["\[{].*', re.DOTALL),
)


def without_values(found: Problems) -> Problems:
    """Return the problems of files, in which ``(not shown)`` stands for each value of a field."""
    return replace(
        found, problems=tuple(map(_without_value, found.problems)), warnings=tuple(map(_without_value, found.warnings))
    )


def _without_value(message: str) -> str:
    for value in _VALUES:
        message = value.sub(rf"\1{LEFT_OUT}", message, count=1)
    return message
