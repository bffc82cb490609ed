from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from ragcontract.convert.collection import Collection
from ragcontract.files.problems import Problems
from tests.convert.builders import BEIR_IDS, collection, collections, lines_of, ranks, read, read_all, rows, written

QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n\nq 2\t7\t2\n"
QUERIES = '{"_id": "q1", "text": "What?", "metadata": {}}\n{"_id": "q 2", "text": "Who?"}\n{"_id": 3, "text": "-"}\n'
CORPUS = '{"_id": "d1", "title": "", "text": "A text."}\n{"_id": 7, "text": "Another."}\n'


def test_judgments_and_questions_are_read(tmp_path: Path) -> None:
    found, problems = read("beir", tmp_path, wanted={"golden"}, qrels=QRELS, queries=QUERIES)
    assert problems == Problems()
    assert {query.id: (query.text, query.grades) for query in (found.queries or {}).values()} == {
        "q1": ("What?", {"d1": 1, "d2": 0}),
        "q 2": ("Who?", {"7": 2}),
    }


def test_documents_that_are_not_in_the_corpus_are_warned_about(tmp_path: Path) -> None:
    _, problems = read("beir", tmp_path, qrels=QRELS, queries=QUERIES, corpus=CORPUS, run="q1 Q0 d3 1 1 x\n")
    assert list(problems.warnings) == [
        f"{tmp_path}/corpus: 2 documents ('d2', 'd3') of the other files not in the corpus"
    ]


def test_the_run_is_in_trecs_order(tmp_path: Path) -> None:
    found, _ = read("beir", tmp_path, wanted={"run"}, run="q1 Q0 a 1 1 x\nq1 Q0 b 2 1 x\n")
    assert ranks(found) == {"q1": ["b", "a"]}


def test_everything_that_is_wrong_is_reported_with_its_line(tmp_path: Path) -> None:
    qrels = 'q1\td1\t1\nq1\td1\nq1\t\t1\nq1\td1\tx\nq1\td1\t1\n"q1\td1\t1\n'
    queries = '{"_id": "q1"}\n{"_id": "", "text": "What?"}\n{"_id": 1, "text": ""}\n{"_id": "1", "text": ""}\nx\n'
    _, problems = read("beir", tmp_path, wanted={"golden"}, qrels=qrels, queries=queries)
    columns = "expected the 3 columns `query-id<TAB>corpus-id<TAB>score`, found"
    assert lines_of(problems, tmp_path) == [
        r'qrels:1: expected the header `query-id<TAB>corpus-id<TAB>score`, found "q1\td1\t1"',
        rf'qrels:2: {columns} "q1\td1"',
        rf'qrels:3: {columns} "q1\t\t1"',
        'qrels:4: score: expected a whole number of at most a billion, found "x"',
        "qrels:5: corpus-id: duplicate 'd1' of query 'q1', first defined at qrels:4",
        rf'qrels:6: {columns} "q1\td1\t1"',
        "queries:1: text: is missing",
        'queries:2: _id: expected text of 1 to 2,000 characters, or a whole number, found "" (text)',
        "queries:4: _id: duplicate '1', first defined at queries:3",
        "queries:5: is not JSON: invalid character at column 1, before 'x'",
    ]


@pytest.mark.parametrize(
    ("qrels", "but"),
    [
        ("query-id\tcorpus-id\tscore\n\n", " but for its header"),
        ("query-id\tcorpus-id\tscore", " but for its header"),
        ("\n\n", ""),
        ("", ""),
    ],
)
def test_judgments_of_a_header_alone_are_empty(qrels: str, but: str, tmp_path: Path) -> None:
    _, problems = read("beir", tmp_path, wanted={"golden"}, qrels=qrels, queries=QUERIES)
    assert lines_of(problems, tmp_path) == [
        f"qrels: is empty{but}; expected lines of `query-id<TAB>corpus-id<TAB>score`"
    ]


def test_quotes_that_csv_cannot_read_are_read_as_they_are(tmp_path: Path) -> None:
    huge = '"' + "x" * 140_000
    found, _ = read("beir", tmp_path, wanted={"golden"}, qrels=f"query-id\tcorpus-id\tscore\n{huge}\td\t1\n")
    assert list(found.queries or {}) == [huge]


def test_the_corpus_has_every_document_once_and_says_that_it_has_no_texts() -> None:
    text, problems = written("beir", "corpus", collection({"q": {"a": 1, "b": 0}}, {"q": [("c", None), ("a", 1.0)]}))
    assert rows(text) == [{"_id": doc_id, "title": "", "text": ""} for doc_id in "abc"]
    assert list(problems.warnings) == [
        "the corpus has the documents' ids only: their texts are not in golden queries or runs"
    ]


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\r", "a\0", "\ufeffa"])
def test_what_qrels_cannot_hold_is_refused(name: str) -> None:
    _, problems = written("beir", "qrels", collection({name: {"d": 1}, "q": {name: 1}}))
    assert [problem.partition(': "')[0] for problem in lines_of(problems, Path())] == [
        "golden.jsonl:1: id",
        "golden.jsonl:2: relevant_doc_ids",
    ]


def test_a_query_without_judgments_is_left_out_of_the_qrels_and_said_to_be() -> None:
    text, problems = written("beir", "qrels", collection({"q": {}}))
    assert text == "query-id\tcorpus-id\tscore\n"
    assert list(problems.warnings) == [
        "1 query ('q') without a judged document: left out, because qrels have no line for that"
    ]


@given(collections(BEIR_IDS, ranked=False))
def test_what_is_written_reads_back_as_it_was(before: Collection) -> None:
    texts = {name: written("beir", name, before)[0] for name in ("qrels", "queries", "corpus")}
    with TemporaryDirectory() as folder:
        after = read_all("beir", Path(folder), texts)
    assert {query.id: (query.text, query.grades) for query in (after.queries or {}).values()} == {
        query.id: (query.text, query.grades) for query in (before.queries or {}).values() if query.grades
    }


def test_an_id_with_quotes_is_written_as_csv_does() -> None:
    text, _ = written("beir", "qrels", collection({'"a': {'b"': 1}}))
    assert text.splitlines()[1] == '"""a"\t"b"""\t1'
