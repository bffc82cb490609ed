"""What ``lint`` finds in a golden file, without what it says of the limits of the configuration."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.builders import Row, run, write_jsonl
from tests.process import rag_contract

OF_LIMITS = {"limit-needs-queries", "limit-never-fails", "field-not-used", "nothing-can-fail"}


class Finding(NamedTuple):
    """A finding of a golden row."""

    line: str
    rule: str
    message: str


def findings(
    folder: Path, rows: Iterable[Row], *exported: list[str], config: Row | None = None, of_limits: bool = False
) -> list[Finding]:
    """Lint a golden file, with a run if results are given, a list for each of its rows.

    ``of_limits`` returns the findings on the configuration instead of those on the golden rows.
    """
    write_jsonl(folder / "golden.jsonl", rows)
    (folder / "ragcontract.yml").write_text(json.dumps(config or {"k": 5}, indent=0))
    argv = ["lint", "--golden", str(folder / "golden.jsonl"), "--config", str(folder / "ragcontract.yml")]
    if exported:
        results = (run(f"q{number}", *ids) | ({} if ids else {"results": []}) for number, ids in enumerate(exported, 1))
        argv += ["--run", str(write_jsonl(folder / "run.jsonl", results))]
    ended = rag_contract(*argv, *([] if exported else ["--without-run"]))
    assert ended.code == 0, ended.err
    lines = [line for line in ended.out.splitlines()[:-1] if not line.startswith("… and ")]
    matches = [re.fullmatch(rf"{folder}/[\w.]+:?(\d*): \[([\w-]+)\] (.*)", line) for line in lines]
    assert all(matches), lines
    found = [Finding(*match.groups()) for match in matches if match]
    return [finding for finding in found if (finding.rule in OF_LIMITS) is of_limits]
