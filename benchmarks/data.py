"""The data of the benchmark, made from a seed: golden queries, a known-good run, and a run that is a little worse.

The known-good run keeps the contract. In the other one, ``BROKEN`` of the queries lose their documents, ``CHANGED``
have results in another order, ``FORBIDDEN`` show a document that they must not; its rows come in any order, as those
of a log do. ``WIDE`` sets have rows of a thousand results that carry texts and metadata, as exports for debugging do.
"""

import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

SEED = 5
BROKEN, CHANGED, FORBIDDEN = 0.02, 0.03, 0.005
FIRST_RANKS = (0.62, 0.2, 0.1, 0.08)  # how often the first relevant document of the good run is at rank 1 to 4
TAGS = ("billing", "policy", "security", "api", "accounts", "internal", "public", "onboarding")
WORDS = """
    how do can what when does the a my our customer account invoice refund annual plan limit export key token webhook
    retry region data retention policy change cancel upgrade member role audit report error code after before within
    days hours naïve größe résumé “quoted” receipt tax
""".split()  # noqa: SIM905 (a line a word would be a page)
CONFIG = """\
k: 5
fail_on:
  mrr_drop_gt: 0.10
  recall_drop_gt: 0.10
  hitrate_drop_gt: 0.10
minimums:
  mrr_at_k: 0.50
  recall_at_k: 0.50
"""
GOLDEN, RUN, GOOD_RUN, CONFIG_FILE = "golden.jsonl", "current_run.jsonl", "good_run.jsonl", "ragcontract.yml"

Row = dict[str, Any]

USUAL = 10  # results a row


class Shape(Struct, frozen=True, kw_only=True):
    """How large a data set is: golden queries, results a row, and the characters of text that each result carries."""

    queries: int
    results: int = USUAL
    text: int = 0

    @property
    def name(self) -> str:
        """The name of its folder."""
        wide = f"-{self.results}" + ("-texts" if self.text else "") if self.is_wide else ""
        return f"{self.queries}{wide}"

    @property
    def is_wide(self) -> bool:
        """Whether it has more results a row than the others."""
        return self.results > USUAL


WIDE = Shape(queries=500, results=1000, text=400)
WIDE_ALONE = Shape(queries=500, results=1000)  # the same without texts and metadata


def make(shape: Shape, folder: Path) -> Path:
    """Write the files of a data set into its folder below ``folder``, unless this code has made them already."""
    target = folder / shape.name
    stamp = target / "made-by"
    made_by = sha256(Path(__file__).read_bytes()).hexdigest() + f" {shape}\n"
    if stamp.is_file() and stamp.read_text() == made_by:
        return target
    target.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    current: list[bytes] = []
    encode = msgspec.json.encode
    with (target / GOLDEN).open("wb") as golden, (target / GOOD_RUN).open("wb") as good:
        for query, good_row, row in rows(shape):
            golden.write(encode(query) + b"\n")
            good.write(encode(good_row) + b"\n")
            current.append(encode(row) + b"\n")
    random.Random(SEED).shuffle(current)
    with (target / RUN).open("wb") as run:
        run.writelines(current)
    (target / CONFIG_FILE).write_text(CONFIG)
    stamp.write_text(made_by)
    return target


def rows(shape: Shape) -> Iterator[tuple[Row, Row, Row]]:
    """Yield a golden query, its row of the known-good run and its row of the other run, for each query."""
    dice = random.Random(f"{SEED} {shape}")
    text = " ".join(dice.choices(WORDS, k=2000)) + ' "\\\n' if shape.text else ""
    documents = max(4 * shape.results, shape.queries)
    for number in range(shape.queries):
        query, doc_ids = _query(number, shape, documents, dice)
        moved = _moved(query, doc_ids, dice)
        good_row, row = (_run_row(query["id"], ids, shape, text, dice) for ids in (doc_ids, moved))
        yield query, good_row, row


def _query(number: int, shape: Shape, documents: int, dice: random.Random) -> tuple[Row, list[str]]:
    """Return a golden query and the documents that the known-good run has for it, best first."""
    found = [f"kb/{TAGS[n % len(TAGS)]}/{n:07}" for n in dice.sample(range(documents), shape.results + 1)]
    forbidden = found.pop()
    first = dice.choices(range(len(FIRST_RANKS)), FIRST_RANKS)[0]
    relevant = found[first : first + (2 if number % 4 == 0 else 1)]
    query: Row = {
        "id": f"q{number:07}",
        "query": " ".join(dice.choices(WORDS, k=dice.randint(6, 12))) + "?",
        "relevant_doc_ids": relevant,
        "tags": dice.sample(TAGS, 1 + number % 2),
    }
    if number % 5 == 0:
        query["must_rank_at_most"] = first + 1
    if number % 7 == 0:
        query["forbidden_doc_ids"] = [forbidden]
    return query, found


def _moved(query: Row, doc_ids: list[str], dice: random.Random) -> list[str]:
    """Return the results of the run that is a little worse."""
    fate = dice.random()
    if fate < BROKEN:
        lost = set(query["relevant_doc_ids"])
        return [f"{doc_id}-draft" if doc_id in lost else doc_id for doc_id in doc_ids]
    if fate < BROKEN + CHANGED:
        top = doc_ids[:5]
        dice.shuffle(top)
        return top + doc_ids[5:]
    if fate < BROKEN + CHANGED + FORBIDDEN and "forbidden_doc_ids" in query:
        return [*doc_ids[:3], *query["forbidden_doc_ids"], *doc_ids[4:]]
    return doc_ids


def _run_row(query_id: str, doc_ids: list[str], shape: Shape, text: str, dice: random.Random) -> Row:
    top = 0.7 + 0.25 * dice.random()
    results: list[Row] = []
    for rank, doc_id in enumerate(doc_ids):
        result: Row = {"doc_id": doc_id, "score": round(top - 0.6 * rank / len(doc_ids), 5)}
        if shape.text:
            start = dice.randrange(len(text) - shape.text)
            result["chunk_id"] = f"{doc_id}#{rank % 9}"
            result["text"] = text[start : start + shape.text]
            result["metadata"] = {"source": "kb", "page": rank, "path": ["kb", "en", doc_id], "kept": True}
        results.append(result)
    latency = round(20 + 60 * dice.random(), 1)
    return {"query_id": query_id, "results": results, "latency_ms": latency, "index_version": "2026-01-07"}
