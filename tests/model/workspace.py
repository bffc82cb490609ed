"""What a check is given, and what the model and the program make of it."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

OBJECT = re.compile(r'^\{"|(?<=[:,] )\{"|(?<=\[)\{"')
Row = dict[str, Any]
Metrics = Mapping[str, float]


class CannotJudgeError(Exception):
    """The input cannot be judged: exit code 2."""


@dataclasses.dataclass(frozen=True)
class Workspace:
    """The files and options of a check. A baseline is a run here, or a run that is stored first."""

    golden: tuple[Row, ...]
    run: tuple[Row, ...]
    config: Row
    baseline: tuple[Row, ...] | None = None
    stored: bool = False  # whether the baseline is stored first, with `rag-contract baseline`
    scores: tuple[Row, ...] | None = None
    tags: tuple[str, ...] = ()
    k: int | None = None
    repeats: bool = False
    repeated: str = ""  # the file of which the last row has a key twice: golden, run, baseline or scores
    configs: str = "named"  # or found: by its name; both: with another one; near: beside a file of a near name

    def as_text(self) -> str:
        """Return the workspace as a person can read it, without what it does not have."""
        fields = {name: value for name, value in vars(self).items() if value not in (None, (), False, "", "named")}
        lines = []
        for name, value in fields.items():
            if isinstance(value, tuple):
                lines += [f"  {name}: {json.dumps(item, ensure_ascii=False)}" for item in value]
            else:
                lines.append(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Broken:
    """A broken rule of a query, and everything that keeps it from counting."""

    query: str
    rule: str
    excuses: frozenset[str] = frozenset()

    @property
    def counts(self) -> bool:
        """Whether the contract fails for it."""
        return not self.excuses


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a check says of a workspace."""

    exit_code: int
    reason: str = ""
    broken: tuple[Broken, ...] = ()
    gates: Mapping[str, str] = dataclasses.field(default_factory=dict)
    means: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    baseline_means: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    tag_means: Mapping[str, Mapping[str, float | None]] = dataclasses.field(default_factory=dict)
    pass_rate: float | None = None
    tiers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def rules(self, *, counting: bool) -> set[tuple[str, str]]:
        """Return the queries with the rules that are broken: those that count, or all."""
        return {(broken.query, broken.rule) for broken in self.broken if broken.counts or not counting}


def write_rows(path: Path, rows: Iterable[Row], *, twice: bool = False) -> str:
    """Write rows as JSON lines and return the path; ``twice``: some object of the last row has a key twice."""
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    if twice:
        lines[-1] = _with_a_key_twice(lines[-1])
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def _with_a_key_twice(line: str) -> str:
    """Repeat the first key of the last object in a line of JSON."""
    start = [found.start() for found in OBJECT.finditer(line)][-1]
    value, _ = json.JSONDecoder().raw_decode(line[start:])
    key, content = next(iter(value.items()))
    pair = f"{json.dumps(key)}: {json.dumps(content)}"
    return f"{line[: start + 1]}{pair}, {line[start + 1 :]}"
