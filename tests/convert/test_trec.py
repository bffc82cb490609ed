from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from ragcontract.convert.collection import Collection
from ragcontract.files.problems import Problems
from tests.convert.builders import (
    QRELS,
    RUN,
    TOPICS,
    TREC_IDS,
    collection,
    collections,
    lines_of,
    ranks,
    read,
    read_all,
    written,
)


def test_judgments_questions_and_rankings_are_read(tmp_path: Path) -> None:
    found, problems = read("trec", tmp_path, qrels=QRELS, queries=TOPICS, run=RUN)
    assert problems == Problems()
    assert {query.id: (query.text, query.grades) for query in (found.queries or {}).values()} == {
        "q1": ("What is it?", {"d1": 1, "d2": 0}),
        "q2": ("Who is it?", {"d3": 2, "d9": 0}),
    }
    assert ranks(found) == {"q1": ["d1", "d2"], "q2": ["d4", "d3"]}


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    found, problems = read("trec", tmp_path, wanted={"run"}, qrels="nonsense", run=RUN)
    assert (found.queries, problems) == (None, Problems())


def test_ranks_and_the_lines_order_count_for_nothing_and_scores_are_32_bits(tmp_path: Path) -> None:
    lines = ["q Q0 a 1 1.00000001 x", "q Q0 c 9 1.00000002 x", "q Q0 b 2 1 x", "q Q0 z 3 -1e9 x", "q Q0 é 4 +.5e1 x"]
    found, _ = read("trec", tmp_path, wanted={"run"}, run="\r\n".join(lines))
    assert ranks(found) == {"q": ["é", "c", "b", "a", "z"]}


COMMENTED_QRELS = """# judged by hand
# in June
q1 0 d#1 1
#q1 0 d9 1
q1 0 #2 0
"""
COMMENTED_RUN = """# made by bm25

\t # k1 = 0.9
q1 Q0 d#1 1 0.5 bm25
#q1 Q0 d9 1 0.9 bm25
q1 Q0 #2 2 0.9 bm25 # found late"""


def test_lines_that_start_with_a_number_sign_are_comments_and_ids_may_contain_it(tmp_path: Path) -> None:
    topics = "# of June\nq1\tIs C# meant?\n"
    found, problems = read("trec", tmp_path, qrels=COMMENTED_QRELS, queries=topics, run=COMMENTED_RUN)
    assert problems == Problems()
    assert [(query.text, query.grades) for query in (found.queries or {}).values()] == [
        ("Is C# meant?", {"d#1": 1, "#2": 0})
    ]
    assert ranks(found) == {"q1": ["#2", "d#1"]}


def test_fields_after_the_tag_of_a_run_are_ignored(tmp_path: Path) -> None:
    found, problems = read("trec", tmp_path, wanted={"run"}, run="q Q0 a 1 2 tag 0.3 more\nq Q0 b 2 1 tag\n")
    assert (ranks(found), problems) == ({"q": ["a", "b"]}, Problems())


def test_what_trec_eval_refuses_is_refused(tmp_path: Path) -> None:
    qrels = "q1 0 d1 1 extra\nq1 0 d2\n  # not a comment in qrels\nq1 0 d3 1  \n"
    _, problems = read("trec", tmp_path, qrels=qrels, queries=TOPICS, run="q Q0 a 1 2 \nq Q0 b 2 # tag\n")
    assert lines_of(problems, tmp_path) == [
        'qrels:1: expected the 4 columns `qid 0 docid grade`, found 5: "q1 0 d1 1 extra"',
        'qrels:2: expected the 4 columns `qid 0 docid grade`, found 3: "q1 0 d2"',
        'qrels:3: expected the 4 columns `qid 0 docid grade`, found 6: "# not a comment in qrels"',
        'run:1: expected the 6 columns `qid Q0 docid rank score tag`, found 5: "q Q0 a 1 2"',
        'run:2: score: expected a number, found "#"',
    ]


def test_a_file_of_comments_alone_is_empty(tmp_path: Path) -> None:
    _, problems = read("trec", tmp_path, qrels="# nothing\n\n", queries=TOPICS, run="# nothing")
    assert lines_of(problems, tmp_path) == [
        "qrels: is empty; expected lines of `qid 0 docid grade`",
        "run: is empty; expected lines of `qid Q0 docid rank score tag`",
    ]


def test_a_query_that_would_be_read_as_a_comment_is_not_written() -> None:
    found = collection({"#1": {"#d": 1}}, {"#1": [("#d", 1.0)]})
    for out, location in (
        ("qrels", "golden.jsonl:1: id"),
        ("queries", "golden.jsonl:1: id"),
        ("run", "run.jsonl:1: query_id"),
    ):
        assert list(written("trec", out, found)[1].problems) == [
            f'{location}: "#1" starts with #, as a comment does in TREC\'s formats'
        ]


def test_a_query_without_a_text_has_its_id_for_a_question(tmp_path: Path) -> None:
    found, problems = read("trec", tmp_path, wanted={"golden"}, qrels=QRELS, queries="q2\tWho?\n")
    assert [query.text for query in (found.queries or {}).values()] == ["q1", "Who?"]
    assert list(problems.warnings) == [
        f"{tmp_path}/qrels:1: 1 query ('q1') without a text; the id is used as the question"
    ]


def test_a_query_without_a_relevant_document_is_warned_about(tmp_path: Path) -> None:
    _, problems = read("trec", tmp_path, wanted={"golden"}, qrels="q 0 d 0\nq 0 e -2\n", queries="q\tWhat?\n")
    expected = "1 query ('q') without a relevant document: in trec_eval's means, not in ours"
    assert list(problems.warnings) == [f"{tmp_path}/qrels:1: {expected}"]


BAD_QRELS = """q1 0 d1
q1 0 d1 1

q1 0 d1 2
q1 0 d2 1.5
q1 0 d3 1000000001
q1 0 d4 ١
q1 0 d5 -
"""
BAD_RUN = """q1 Q0 d1 1 0.5
q1 Q0 d1 1 nan x
q1 Q0 d2 1 1_0 x
q1 Q0 d2 2 1e999 x
"""
BAD_TOPICS = """q1 What?
q1\tWhat?
q1\tWho?
\tWho?
"""


def test_everything_that_is_wrong_is_reported_with_its_line(tmp_path: Path) -> None:
    _, problems = read("trec", tmp_path, qrels=BAD_QRELS, queries=BAD_TOPICS, run=BAD_RUN)
    grade = "grade: expected a whole number of at most a billion, found"
    assert lines_of(problems, tmp_path) == [
        'qrels:1: expected the 4 columns `qid 0 docid grade`, found 3: "q1 0 d1"',
        "qrels:4: docid: duplicate 'd1' of query 'q1', first defined at qrels:2",
        f'qrels:5: {grade} "1.5" (and 3 more like this, in lines 5 to 8)',
        'queries:1: expected `qid<TAB>text`, found "q1 What?"',
        "queries:3: qid: duplicate 'q1', first defined at queries:2",
        'queries:4: expected `qid<TAB>text`, found ""',
        'run:1: expected the 6 columns `qid Q0 docid rank score tag`, found 5: "q1 Q0 d1 1 0.5"',
        'run:2: score: expected a number, found "nan"',
        'run:3: score: expected a number, found "1_0"',
        'run:4: score: expected a number, found "1e999"',
        "run:4: docid: duplicate 'd2' of query 'q1', first defined at run:3",
    ]


def test_a_topics_file_with_tags_is_reported_once(tmp_path: Path) -> None:
    _, problems = read("trec", tmp_path, wanted={"golden"}, qrels=QRELS, queries="\n<top>\n<num> 301\n</top>\n")
    assert lines_of(problems, tmp_path) == ["queries:2: is a topics file with tags; expected lines of `qid<TAB>text`"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "qrels: is empty; expected lines of `qid 0 docid grade`"),
        (b"\n \n", "qrels: is empty; expected lines of `qid 0 docid grade`"),
        (b"q 0 \xff 1\n", "qrels:1: is not UTF-8 (byte 0xff at column 5); save the file as UTF-8"),
        (b"\xff\xfeq\0", "qrels:1: is UTF-16 or UTF-32; save the file as UTF-8"),
        (b"q\0 0 d 1", "qrels:1: is binary data; expected lines of `qid 0 docid grade` as UTF-8 text, or gzip of them"),
        (b"\x1f\x8b\x08\0", "qrels:1: the gzip data is damaged or cut off"),
    ],
)
def test_a_file_that_is_no_text_is_reported(data: bytes, problem: str, tmp_path: Path) -> None:
    _, problems = read("trec", tmp_path, wanted={"golden"}, qrels=data)
    (reported,) = lines_of(problems, tmp_path)
    assert reported.startswith(problem)


def test_scores_stay_where_they_are_the_ranking_and_count_down_where_they_are_not() -> None:
    rankings: dict[str, list[tuple[str, float | None]]] = {
        "own": [("a", 0.30000000000000004), ("b", 0.1)],
        "none": [("a", None), ("b", None)],
        "ties": [("a", 1.0), ("b", 1.0)],
        "equal in 32 bits": [("a", 1.00000001), ("b", 1.0)],
        "too large": [("a", 1e300), ("b", 1e299)],
        "empty": [],
    }
    text, problems = written(
        "trec", "run", collection({}, {name.replace(" ", "-"): pairs for name, pairs in rankings.items()})
    )
    counted = [
        f"{name} Q0 {doc} {rank} {3 - rank}.0 rag-contract"
        for name in ("none", "ties", "equal-in-32-bits", "too-large")
        for rank, doc in ((1, "a"), (2, "b"))
    ]
    assert text.splitlines() == ["own Q0 a 1 0.30000000000000004 rag-contract", "own Q0 b 2 0.1 rag-contract", *counted]
    assert list(problems.warnings) == [
        "1 query ('empty') without results: left out, because a run has no line for that",
        (
            "4 queries ('none', 'ties', 'equal-in-32-bits', …) with scores that are missing or do not descend: "
            "written with scores that count down"
        ),
    ]


def test_a_document_that_comes_again_is_written_once_at_its_best_rank() -> None:
    text, problems = written("trec", "run", collection({}, {"q": [("a", 3.0), ("b", 2.0), ("a", 1.0), ("c", 0.0)]}))
    assert [line.split()[2:5] for line in text.splitlines()] == [
        ["a", "1", "3.0"],
        ["b", "2", "2.0"],
        ["c", "3", "0.0"],
    ]
    assert list(problems.warnings) == ["1 query ('q') with a document again: only its best rank is written"]


@pytest.mark.parametrize("name", ["a b", "a\tb", " a", "a\n", "a\u00a0b", "\u2028", "\x1c", "a\0", "\ufeffa"])
def test_what_ends_a_column_is_refused_everywhere(name: str) -> None:
    for out in ("qrels", "queries", "run"):
        _, problems = written(
            "trec", out, collection({name: {"d": 1}, "q": {name: 1}}, {name: [("d", 1.0)], "q": [(name, 1.0)]})
        )
        locations = {problem.partition(': "')[0] for problem in problems.problems}
        assert (
            locations
            == {
                "qrels": {"golden.jsonl:1: id", "golden.jsonl:2: relevant_doc_ids"},
                "queries": {"golden.jsonl:1: id"},
                "run": {"run.jsonl:1: query_id", "run.jsonl:2: results[0].doc_id"},
            }[out]
        )


def test_a_grade_between_whole_numbers_is_refused() -> None:
    found = collection({"q": {"d": 1, "e": 1.5}})
    assert list(written("trec", "qrels", found)[1].problems) == [
        'golden.jsonl:1: relevance: "e" has the grade 1.5; grades are whole numbers in this format'
    ]


def test_a_question_over_several_lines_becomes_one_line() -> None:
    found = collection({"q": {}})
    text, _ = written("trec", "queries", found)
    assert text == "q\tAbout q?\n"
    assert list(written("trec", "qrels", found)[1].warnings) == [
        "1 query ('q') without a judged document: left out, because qrels have no line for that"
    ]


@given(collections(TREC_IDS))
def test_what_is_written_reads_back_as_it_was(before: Collection) -> None:
    texts = {name: written("trec", name, before)[0] for name in ("qrels", "queries", "run")}
    with TemporaryDirectory() as folder:
        after = read_all("trec", Path(folder), texts)
    queries = {
        query.id: (query.text.split(), query.grades) for query in (before.queries or {}).values() if query.grades
    }
    assert {query.id: (query.text.split(), query.grades) for query in (after.queries or {}).values()} == queries
    best_ranks = {name: list(dict.fromkeys(docs)) for name, docs in ranks(before).items() if docs}
    assert ranks(after) == best_ranks
    assert list(ranks(after)) == list(best_ranks)


def test_a_no_break_space_ends_no_column_and_a_line_break_in_a_question_no_line(tmp_path: Path) -> None:
    found, _ = read("trec", tmp_path, wanted={"golden"}, qrels="q\u00a01 0 d 1\n")
    assert list(found.queries or {}) == ["q\u00a01"]
    row = '{"id": "q", "query": "a\\n\\tb", "relevant_doc_ids": []}'
    assert written("trec", "queries", read("rag-contract", tmp_path, wanted={"golden"}, golden=row)[0])[0] == "q\ta b\n"


def test_one_score_that_is_too_large_for_32_bits_does_not_stay() -> None:
    text, _ = written("trec", "run", collection({}, {"q": [("a", 1e300), ("b", 1.0)]}))
    assert [line.split()[4] for line in text.splitlines()] == ["2.0", "1.0"]
