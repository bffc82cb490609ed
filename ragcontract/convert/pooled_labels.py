"""The configuration that comes with the judgments of a test collection, under which a good run can pass.

Judgments of TREC and BEIR say what is relevant, often more than fits into the top k, and no retriever finds all of it
for every query. The rule that every relevant document must be found is for labels that say what an answer needs. It is
therefore turned off, in a new configuration beside the golden file. A configuration that exists is never changed.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ragcontract.contract.defaults import CONFIG, CONFIG_ALIAS
from ragcontract.convert.collection import Query
from ragcontract.core import bounds
from ragcontract.core.golden import RELEVANT_GRADE
from ragcontract.files.writing import is_device

RULE = "enforce_must_include"
SETTING = f"`per_query.{RULE}: false`"
WHY = "judgments say what is relevant, not what must be found"
TEXT = f"""\
# Of {{source}}: the judgments say what is relevant, and no retriever finds all of it for every query. So the rule that
# every relevant document must be in the top k is off. Limit means instead: `rag-contract suggest` proposes limits.
per_query:
  {RULE}: false
"""


class Companion(Struct, frozen=True, kw_only=True):
    """The files to write beside the golden file, by path, and what to report about them."""

    files: Mapping[str, bytes] = {}
    note: str = ""


def companion(outs: Mapping[str, str], queries: Mapping[str, Query], source: str) -> Companion:
    """Return the configuration to write beside ``outs["golden"]``; ``source`` is the name of the format read.

    ``outs`` has the paths of all outputs. There is no configuration if no query has a relevant document, or if one
    exists or is another output. If the golden file is a device, or the existing configuration does not mention the
    rule, the note says what to write.
    """
    if not any(grade >= RELEVANT_GRADE for query in queries.values() for grade in query.grades.values()):
        return Companion()
    golden_out = Path(outs["golden"])
    if is_device(str(golden_out)):
        return Companion(note=f"write {SETTING} into {CONFIG}: {WHY}\n")
    candidates = [golden_out.with_name(name) for name in (CONFIG, CONFIG_ALIAS)]
    others = {os.path.realpath(out) for out in outs.values()}
    existing = next((path for path in candidates if os.path.lexists(path) or os.path.realpath(path) in others), None)
    if existing is None:
        path, text = str(candidates[0]), TEXT.format(source=source.upper())
        return Companion(files={path: text.encode()}, note=f"wrote {path}, {SETTING}: {WHY}\n")
    if _mentions_rule(existing):
        return Companion()
    return Companion(note=f"{existing} is left as it is; write {SETTING} into it: {WHY}\n")


def _mentions_rule(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return RULE.encode() in file.read(bounds.CONFIG)
    except OSError:  # `check` reports it
        return False
