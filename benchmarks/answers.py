"""What a check of answers costs: three rules for each answer, and context recall by text, over reading the same rows.

``python -m benchmarks.answers golden.jsonl current_run.jsonl`` reads the files with this package's own readers, every
field that the check needs, and judges nothing; with ``--bare`` they are only decoded, without the readers' checks.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.data import CONFIG_FILE, GOLDEN, RUN, SEED, WORDS, Row
from benchmarks.rounds import Command

TEXTS, LENGTH = 5, 600  # results a row, and characters of the text of each
LOST = 0.2  # how many of the references are in no text
QUERIES, ROUNDS = 10_000, 3
CHECKED, READ, BARE = "the check", "reading", "decoding"
REPEATED, REPEATS = 1_000, (1, 16)  # golden queries, and how many rows a query the two runs have
ONCE, OFTEN = (f"{repeats} a query" for repeats in REPEATS)
CONFIG = "minimums:\n  context_recall_text: 0.5\n"
NEEDS = frozenset({"results", "results.text", "retrieved_contexts", "response", "error", "finish_reason"})


class Golden(msgspec.Struct, gc=False):
    """A golden query, as ``--bare`` decodes it."""

    id: str
    query: str
    reference_contexts: list[str]
    rules: list[dict[str, str]]


class Result(msgspec.Struct, gc=False):
    """A result of a run row, as ``--bare`` decodes it."""

    doc_id: str
    text: str


class RunRow(msgspec.Struct, gc=False):
    """A run row, as ``--bare`` decodes it."""

    query_id: str
    results: list[Result]
    response: str


def decode(golden: str, run: str) -> None:
    """Decode the files."""
    for path, record in ((golden, Golden), (run, RunRow)):
        decoded = msgspec.json.Decoder(record).decode
        with Path(path).open("rb") as lines:
            for line in lines:
                decoded(line)


def read(golden: str, run: str) -> None:
    """Read the files as a check does."""
    from ragcontract.contract.golden_file import read_golden
    from ragcontract.core.run import row_type
    from ragcontract.registry import BUILT_IN
    from ragcontract.runs.readers import open_run

    read_golden([golden], BUILT_IN)
    for _ in open_run([run]).events(row_type(NEEDS)):
        pass


def make(queries: int, folder: Path) -> Path:
    """Write the files of a data set into its folder below ``folder``."""
    target = folder / f"{queries}-answers"
    target.mkdir(parents=True, exist_ok=True)
    encode = msgspec.json.encode
    with (target / GOLDEN).open("wb") as golden, (target / RUN).open("wb") as run:
        for query, row in rows(queries):
            golden.write(encode(query) + b"\n")
            run.write(encode(row) + b"\n")
    (target / CONFIG_FILE).write_text(CONFIG)
    return target


def repeated(folder: Path) -> Path:
    """Write a golden file and two runs over it, with few and with many rows a query, into its folder."""
    target = make(REPEATED, folder)
    once = (target / RUN).read_bytes()
    for repeats in REPEATS:
        with (target / _repeated_run(repeats)).open("wb") as run:
            for _ in range(repeats):
                run.write(once)
    return target


def _repeated_run(repeats: int) -> str:
    return f"run-of-{repeats}.jsonl"


def rows(queries: int) -> Iterator[tuple[Row, Row]]:
    """Yield a golden query and its row; no rule is broken, as is usual."""
    dice = random.Random(SEED)
    for number in range(queries):
        texts = [" ".join(dice.choices(WORDS, k=LENGTH // 4))[:LENGTH] for _ in range(TEXTS)]
        found = dice.choice(texts)[LENGTH // 4 : LENGTH // 2]
        days = f"{number % 60} days"
        rules = [
            {"type": "must_contain", "value": days},
            {"type": "must_not_contain", "value": "I cannot help"},
            {"type": "regex_must_match", "pattern": r"\d+ (days|weeks)"},
        ]
        reference = found if dice.random() > LOST else " ".join(dice.choices(WORDS, k=LENGTH // 24))
        query_id = f"q{number:07}"
        question = " ".join(dice.choices(WORDS, k=9)) + "?"
        yield (
            {"id": query_id, "query": question, "reference_contexts": [reference], "rules": rules},
            {
                "query_id": query_id,
                "results": [{"doc_id": f"kb/{number}/{rank}", "text": text} for rank, text in enumerate(texts)],
                "response": f"You can, within **{days}**: {' '.join(dice.choices(WORDS, k=40))}.",
            },
        )


def commands(made: Path, bin_folder: Path, environ: dict[str, str]) -> dict[str, Command]:
    """Return the check, and what it is compared with, over the files in ``made``."""
    files = [str(made / GOLDEN), str(made / RUN)]
    own = [str(bin_folder / "python"), "-m", "benchmarks.answers"]
    found = {CHECKED: _check(made, RUN, bin_folder), READ: [*own, *files], BARE: [*own, "--bare", *files]}
    return _commands(found, made, environ)


def repeated_commands(made: Path, bin_folder: Path, environ: dict[str, str]) -> dict[str, Command]:
    """Return the checks of the two runs that :func:`repeated` wrote into ``made``."""
    names = dict(zip((ONCE, OFTEN), REPEATS, strict=True))
    checks = {name: [*_check(made, _repeated_run(of), bin_folder), "--repeats"] for name, of in names.items()}
    return _commands(checks, made, environ)


def _check(made: Path, run: str, bin_folder: Path) -> list[str]:
    files = ["--golden", str(made / GOLDEN), "--run", str(made / run), "--config", str(made / CONFIG_FILE)]
    return [str(bin_folder / "rag-contract"), "check", *files, "--quiet"]


def _commands(found: dict[str, list[str]], made: Path, environ: dict[str, str]) -> dict[str, Command]:
    log = str(made / "log")
    return {name: Command(arguments=line, folder=str(made), log=log, environ=environ) for name, line in found.items()}


if __name__ == "__main__":
    (decode if "--bare" in sys.argv else read)(*sys.argv[-2:])
