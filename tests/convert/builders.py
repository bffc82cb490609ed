"""Files of other tools and a folder to convert them in."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from ragcontract.convert.collection import FORMATS, Collection, Part, Query, Ranking, Retrieved, Source
from ragcontract.core.phrase import Location
from ragcontract.files.problems import Collector, Problems
from tests.process import rag_contract

Judgments = Mapping[str, Mapping[str, float]]
Results = Mapping[str, Sequence[tuple[str, float | None]]]

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\nq2\t0  d9 -1\n"
TOPICS = "q1\tWhat is it?\nq2\tWho is it?\nq3\tOf another split?\n"
RUN = "q1 Q0 d2 1 0.5 bm25\nq1 Q0 d1 2 0.9 bm25\nq2 Q0 d3 1 7 bm25\nq2 Q0 d4 2 7 bm25\n"


def write(folder: Path, **texts: str | bytes) -> dict[str, list[str]]:
    """Write files called as the options that read them; returns their paths by those names."""
    paths: dict[str, list[str]] = {
        name: [] for name in ("golden", "qrels", "queries", "corpus", "samples", "results", "traces", "run")
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        paths[name] = [str(folder / name)]
    return paths


def read(
    form: str, folder: Path, *, wanted: set[Part] | None = None, **texts: str | bytes
) -> tuple[Collection, Problems]:
    """Read files of a format, whatever is wrong with them."""
    problems = Collector()
    parts: set[Part] = {"golden", "run"} if wanted is None else wanted
    source = Source(files=write(folder, **texts), wanted=parts, problems=problems)
    return FORMATS[form].load().read(source), problems.collected()


def read_all(form: str, folder: Path, texts: Mapping[str, str]) -> Collection:
    """Read both parts of a format from texts by the names of their options."""
    return (
        FORMATS[form].load().read(Source(files=write(folder, **texts), wanted={"golden", "run"}, problems=Collector()))
    )


def written(form: str, name: str, collection: Collection) -> tuple[str, Problems]:
    """Write one file of a format."""
    problems = Collector()
    return "".join(FORMATS[form].load().outputs[name].write(collection, problems)), problems.collected()


class Converted(NamedTuple):
    """What the command wrote, and what it printed about the inputs, paths without the folder in them."""

    rows: list[dict[str, Any]]  # none where the files were refused
    problems: list[str]
    warnings: list[str]


def converted(form: str, out: str, folder: Path, *argv: str) -> Converted:
    """Convert files in a folder with the command to the output ``out``, as ``golden`` or ``scores``."""
    with TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / "out.jsonl"
        ended = rag_contract("convert", "--from", form, *argv, f"--{out}-out", str(path))
        written = rows(path.read_text()) if path.exists() else []
    printed = [line.replace(f"{folder}/", "").partition(": ") for line in ended.err.splitlines()]
    problems = [text for kind, _, text in printed if kind == "error"]
    assert {kind for kind, *_ in printed} <= {"error", "warning"}, ended.err
    assert (ended.code, bool(written)) == ((2, False) if problems else (0, True)), ended
    return Converted(written, problems, [text for kind, _, text in printed if kind == "warning"])


def collection(grades: Judgments, results: Results | None = None) -> Collection:
    """Return a collection as a reader does."""
    queries = {
        query_id: Query(
            id=query_id, text=f"About {query_id}?", grades=dict(found), location=Location("golden.jsonl", number)
        )
        for number, (query_id, found) in enumerate(grades.items(), start=1)
    }
    rankings = {
        query_id: Ranking(
            query_id=query_id,
            results=[Retrieved(doc_id=doc_id, score=score) for doc_id, score in pairs],
            location=Location("run.jsonl", number),
        )
        for number, (query_id, pairs) in enumerate((results or {}).items(), start=1)
    }
    return Collection(queries=queries, rankings=rankings)


def lines_of(problems: Problems, folder: Path) -> list[str]:
    """Return the problems that are described, paths without the folder in them."""
    return [problem.replace(f"{folder}/", "") for problem in problems.problems]


def ranks(found: Collection) -> dict[str, list[str]]:
    """Return each query's documents, best first."""
    return {name: [result.doc_id for result in one.results] for name, one in (found.rankings or {}).items()}


def rows(text: str) -> list[dict[str, Any]]:
    """Return JSON lines as values."""
    return [json.loads(line) for line in text.split("\n") if line]


def packed(path: Path) -> None:
    """Put a byte order mark before a file, and pack it under its own name."""
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))


# Ids as people have them, and as they have them where nobody looked: everything but what columns cannot hold.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
IDS = st.one_of(
    st.from_regex(r"[a-z]{1,3}[-_:/.][0-9]{1,4}", fullmatch=True),
    st.integers(0, 300).map(str),
    ANY_TEXT,
)
TREC_IDS = IDS.filter(lambda name: name.split() == [name] and "\0" not in name and name[0] not in "\ufeff#")
BEIR_IDS = IDS.filter(lambda name: not set(name) & set("\t\r\n\0") and name[0] != "\ufeff")
SCORES = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1.0, 1.00000001, 0.5]))
GRADES = st.integers(0, 1_000_000_000)


def collections(ids: st.SearchStrategy[str], *, ranked: bool = True) -> st.SearchStrategy[Collection]:
    """Make up collections whose ids are ``ids``: any grades, any scores, empty rankings, documents that come again."""
    judged = st.dictionaries(ids, st.dictionaries(ids, GRADES, max_size=5), max_size=5)
    results = st.dictionaries(ids, st.lists(st.tuples(ids, SCORES), max_size=6), max_size=5)
    return st.builds(collection, judged, results if ranked else st.none())


def scores_of(form: str, folder: Path, results: object, golden: str = "") -> tuple[list[dict[str, Any]], Problems]:
    """Read the scores in one file of results; anything but text and bytes is written as JSON."""
    written = results if isinstance(results, str | bytes) else json.dumps(results)
    given = {"results": written, "golden": golden} if golden else {"results": written}
    found, problems = read(form, folder, wanted={"scores"}, **given)
    return json.loads(msgspec.json.encode(found.scores or [])), problems


def goldens(**questions: str) -> str:
    """Return golden rows with these questions by id."""
    rows = [{"id": name, "query": text, "relevant_doc_ids": ["d"]} for name, text in questions.items()]
    return "".join(json.dumps(row) + "\n" for row in rows)
