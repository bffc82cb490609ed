"""CSV as spreadsheets and people write it."""

import csv
import gzip
import io
import re
import tempfile
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.convert.collection import FORMATS
from scripts import docs
from tests.convert.builders import Converted, converted
from tests.process import rag_contract

HEAD = "question,expected_ids\n"
Rows = dict[str, tuple[str, Sequence[str]]]


def read(folder: Path, text: str | bytes, **options: str) -> Converted:
    (folder / "csv").write_bytes(text.encode() if isinstance(text, str) else text)
    named = (f"--{name.replace('_', '-')}={value}" for name, value in options.items())
    return converted("csv", "golden", folder, "--csv", str(folder / "csv"), *named)


def queries(folder: Path, text: str | bytes, **options: str) -> Rows:
    """Return question and ids by query id; fails if there is any problem or warning."""
    rows, *said = read(folder, text, **options)
    assert said == [[], []]
    return {row["id"]: (row["query"], list(row["relevance"])) for row in rows}


def problems_in(folder: Path, text: str | bytes, **options: str) -> list[str]:
    return read(folder, text, **options).problems


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\ufeffsep={}"])
def test_tables_of_any_spreadsheet_are_read(delimiter: str, end: str, start: str, tmp_path: Path) -> None:
    rows = [
        ["Expected IDs", "Question", ""],
        ["d1|d2", '"Über, ""alle""; wo?"', ""],
        [" d3 ", "Why?", "x"],
        [],
        [""] * 3,
    ]
    lines = [delimiter.join(row) for row in rows]
    text = end.join(([start.format(delimiter)] if "sep" in start else []) + lines)
    data = (start if "sep" not in start else "") + text
    expected: Rows = {"uber-alle-wo": ('Über, "alle"; wo?', ["d1", "d2"]), "why": ("Why?", ["d3"])}
    assert queries(tmp_path, data) == expected
    assert queries(tmp_path, gzip.compress(data.encode())) == expected


@pytest.mark.parametrize("separator", [";", "|", ",", "\n"])
def test_what_separates_ids_is_found_out(separator: str, tmp_path: Path) -> None:
    text = f'{HEAD}Why?,"a{separator}b {separator} c{separator}"\nWhen?,d\n'
    assert queries(tmp_path, text)["why"] == ("Why?", ["a", "b", "c"])


def test_ids_that_contain_a_separator_need_another_one_to_be_named(tmp_path: Path) -> None:
    text = f'{HEAD}Why?,"Smith, J.pdf; b"\n'
    [problem] = problems_in(tmp_path, text)
    assert problem == "csv:2: the expected ids have both ';' and ',' in them; say with --separator what separates ids"
    assert queries(tmp_path, text, separator="; ")["why"] == ("Why?", ["Smith, J.pdf", "b"])


def test_a_json_list_of_ids_is_read(tmp_path: Path) -> None:
    text = f'{HEAD}Why?,"[""a;b"", 7]"\n'
    assert queries(tmp_path, text) == {"why": ("Why?", ["a;b", "7"])}
    assert problems_in(tmp_path, f"{HEAD}Why?,\"['a', 'b']\"\n") == [
        "csv:2: expected ids, or a JSON list of ids, found \"['a', 'b']\""
    ]


def test_a_column_of_ids_names_the_questions(tmp_path: Path) -> None:
    assert queries(tmp_path, "Query-ID,query,doc_ids\n7,Why?,a\n") == {"7": ("Why?", ["a"])}


def test_columns_are_named_where_they_are_not_recognized(tmp_path: Path) -> None:
    text = "Frage,Belege,Nr\nWarum?,a,1\n"
    names = {"question_column": "frage", "ids_column": "BELEGE", "id_column": "nr"}
    assert queries(tmp_path, text, **names) == {"1": ("Warum?", ["a"])}
    there = 'the header has "Frage", "Belege", "Nr"'
    assert problems_in(tmp_path, text) == [
        f"csv:1: no column for the questions is recognized; name it with --question-column; {there}",
        f"csv:1: no column for the expected ids is recognized; name it with --ids-column; {there}",
    ]
    assert problems_in(tmp_path, text, **names | {"ids_column": "Beleg"}) == [
        "csv:1: no column \"Beleg\" for the expected ids; did you mean 'Belege'?"
    ]


# For each option, what its column has, and the columns beside it.
COLUMNS = {
    "--question-column": ("Why?", {"doc_ids": "a"}),
    "--ids-column": ("a", {"question": "Why?"}),
    "--id-column": ("7", {"question": "Why?", "doc_ids": "a"}),
}


def names_on_the_page(option: str) -> list[str]:
    """Return the names of a column that the page says are recognized."""
    page = (docs.ROOT / "docs" / "guides" / "convert.md").read_text()
    (line,) = re.findall(rf"^\|[^|]+\|([^|]+)\| `{option}` \|$", page, re.MULTILINE)
    return re.findall("`(.+?)`", line)


def read_named(folder: Path, option: str, *names: str) -> Converted:
    """Read a table with one row, in which the last of several columns has what the option's column has."""
    value, others = COLUMNS[option]
    columns = {**others, **dict.fromkeys(names, "other"), names[-1]: value}
    return read(folder, f"{','.join(columns)}\n{','.join(columns.values())}\n")


@pytest.mark.parametrize("option", COLUMNS)
def test_every_name_on_the_page_is_recognized_and_the_first_of_two_counts(option: str, tmp_path: Path) -> None:
    names = names_on_the_page(option)
    for name in names:
        (row,), *said = read_named(tmp_path, option, name.upper())
        expected = ("7" if option == "--id-column" else "why", "Why?", {"a": 1})
        assert (row["id"], row["query"], row["relevance"], *said) == (*expected, [], []), name
    for first, second in pairwise(names):
        if not {first, second} & {"expected", "relevant"}:  # which may be grades
            (row,), *_ = read_named(tmp_path, option, second, first)
            assert (row["id"], row["query"], row["relevance"]) == expected, first


@pytest.mark.parametrize("option", COLUMNS)
def test_names_that_are_not_on_the_page_are_not_recognized(option: str, tmp_path: Path) -> None:
    on_the_page = {name for column in COLUMNS for name in names_on_the_page(column)}
    words = sorted({word for name in on_the_page for word in name.split("_")} | {"answer", "doc", "gold", "key"})
    made = {"_".join(parts) for size in (1, 2, 3) for parts in product(words, repeat=size)} - on_the_page
    rows, problems, _ = read_named(tmp_path, option, *sorted(made))
    assert [row["id"] for row in rows] == ["why"] if option == "--id-column" else "name it with" in problems[0]


def test_an_empty_cell_is_still_to_be_labelled_and_an_empty_list_is_nothing(tmp_path: Path) -> None:
    rows, problems, warnings = read(tmp_path, f"{HEAD}Why?,\nWhen?,[]\n")
    assert problems == []
    advice = "TODO is written for it; use `rag-contract label`, or write [] if nothing answers the question"
    assert warnings == [f"csv:2: 1 query ('why') without an expected id: {advice}"]
    assert {row["id"]: row["relevance"] for row in rows} == {"why": {"TODO": 1}, "when": {}}


def test_several_empty_cells_are_said_once(tmp_path: Path) -> None:
    [warning] = read(tmp_path, f"{HEAD}Why?,\nWhen?,\n").warnings
    assert "csv:2: 2 queries ('why', 'when') without an expected id: TODO is written for each of them; use" in warning


def test_rows_with_one_question_are_put_together_with_a_warning(tmp_path: Path) -> None:
    rows, _, [warning] = read(tmp_path, f"{HEAD}Why?,a\nWhen?,b\nwhy,c\nWhy?,\n")
    assert {row["id"]: list(row["relevance"]) for row in rows}["why"] == ["a", "c"]
    assert warning.endswith("csv:4: 2 rows with a question of an earlier row: their ids are put together")


def test_one_id_for_two_questions_is_refused(tmp_path: Path) -> None:
    assert problems_in(tmp_path, "id,question,doc_ids\n1,Why?,a\n1,When?,b\n,How?,c\n") == [
        "csv:3: duplicate id '1' with another question, first defined at csv:2",
        "csv:4: the id of the question: expected text of 1 to 2,000 characters",
    ]


def grades(folder: Path, text: str) -> list[object]:
    """Return the grades in the golden rows."""
    return [row["relevance"] for row in read(folder, text).rows]


@pytest.mark.parametrize("name", ["relevance", "Grade"])
def test_a_column_of_grades_says_what_is_not_relevant(name: str, tmp_path: Path) -> None:
    text = (
        f"question,document_id,{name}\nWhy?,doc_policy,2\nWhy?,doc_old_policy,0\nWho?,a;b,1.0\nHow?,c,-1\nWhen?,[],\n"
    )
    assert grades(tmp_path, text) == [{"doc_policy": 2, "doc_old_policy": 0}, {"a": 1, "b": 1}, {"c": 0}, {}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "question,doc_id,relevance\nWhy?,a,\n",
            'csv:2: relevance: expected a grade, a number of at most a billion (0 is not relevant), found ""',
        ),
        ("question,doc_id,Grade\nWhy?,a,high\n", "csv:2: Grade: expected a grade"),
        ("question,doc_id,grade\nWhy?,a,inf\n", "csv:2: grade: expected a grade"),
        (
            "question,doc_id,relevance\nWhy?,a,0\nWhy?,a,1\n",
            'csv:3: "a" has the grade 1 here and 0 in an earlier row',
        ),
        ("question,doc_id,relevance,grade\nWhy?,a,0,1\n", 'csv:1: has several columns of grades, "relevance" and'),
        (
            "question,doc_id,label\nWhy?,a,1\nWho?,b,0\n",
            (
                "csv:1: the column \"label\" looks like the grades of the documents; call it 'relevance' if it is, "
                "otherwise remove it"
            ),
        ),
        ("question,doc_id,Relevance-Score\nWhy?,a,0.5\nWho?,b,\n", 'csv:1: the column "Relevance-Score" looks like'),
        ("question,doc_id,Relevance (0-2)\nWhy?,a,0\n", 'csv:1: the column "Relevance (0-2)" looks like'),
        ("question,doc_id,judgment\nWhy?,a,Not relevant\n", 'csv:1: the column "judgment" looks like the grades'),
        (
            "question,doc_id,relevant\nWhy?,a,0\n",
            'csv:1: has the ids in "relevant" or "doc_id"; name the column with --ids-column',
        ),
    ],
)
def test_what_may_be_grades_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    assert any(found.startswith(problem) for found in problems_in(tmp_path, text))


def test_a_named_column_of_ids_leaves_the_other_to_be_grades(tmp_path: Path) -> None:
    text = "question,doc_id,relevant\nWhy?,a,no\n"
    (problem,) = problems_in(tmp_path, text, ids_column="doc_id")
    assert 'the column "relevant" looks like the grades' in problem


@pytest.mark.parametrize("name", ["label", "score", "rating", "owner"])
def test_a_column_of_other_words_is_no_grade(name: str, tmp_path: Path) -> None:
    text = f"question,doc_ids,{name}\nWhy?,a,billing\nWho?,b,1\n"
    assert grades(tmp_path, text) == [{"a": 1}, {"b": 1}]


def test_a_column_without_any_value_is_no_grade(tmp_path: Path) -> None:
    assert grades(tmp_path, "question,doc_ids,label\nWhy?,a,\n") == [{"a": 1}]


def test_columns_that_are_not_read_are_left_out_with_a_warning(tmp_path: Path) -> None:
    text = "question,expected_ids,Forbidden Doc IDs,must_rank_at_most,,owner\nWhy?,a,b,1,x,e\n"
    rows, _, warnings = read(tmp_path, text)
    assert [row["relevance"] for row in rows] == [{"a": 1}]
    names = '"Forbidden Doc IDs", "must_rank_at_most", "owner"'
    advice = "add what is expected there to the golden rows"
    assert warnings == [f"csv:1: 3 columns not read, and left out: {names}; {advice}"]


MISTAKES = {
    "nothing": ("", "csv: is empty; expected CSV with a header, such as `question,expected_ids`"),
    "a header alone": (HEAD, "csv: is empty but for its header; expected a row for each question"),
    "a comma without quotes": (
        f"{HEAD}Why, how?,a\n",
        "csv:2: has 3 cells, but the header has 2; put cells with a separator in them in quotation marks",
    ),
    "no question": (f"{HEAD}\n,a\n", 'csv:3: question: expected text of 1 to 20,000 characters, found ""'),
    "an open quotation mark": (f'{HEAD}Why?,a\n"How?,b\nWhen?,c\n', "csv:3: a quotation mark is opened here and never"),
    "a quotation mark within": (f'{HEAD}"Why" not?,a\n', "csv:2: a quotation mark is closed within a cell; write it"),
    "line ends of old Macs": ("question,doc_ids\rWhy?,a\r", "csv:1: has the line ends of old Macs (CR)"),
    "Latin-1": (f"{HEAD}Über?,a\n".encode("latin-1"), "csv:2: is not UTF-8 (byte 0xdc at column 1); save the file as"),
    "UTF-16": (HEAD.encode("utf-16"), "csv:1: is UTF-16 or UTF-32; save the file as UTF-8"),
    "a spreadsheet": (b"PK\x03\x04\x00\x00", "csv:1: is a ZIP archive, as Excel files are too; expected CSV"),
    "a column twice": ("question,question,doc_ids\na,b,c\n", 'csv:1: has several columns "question"; give each a name'),
    "a long id": (f"{HEAD}Why?,{'x' * 2_001}\n", "csv:2: an id has at most 2,000 characters, found"),
    "a long question": (f"{HEAD}{'x' * 20_001},a\n", "csv:2: question: expected text of 1 to 20,000 characters"),
    "damaged gzip": (b"\x1f\x8b\x08", "csv: the gzip data is damaged or cut off"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_each_mistake_is_reported_with_its_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    [problem] = problems_in(tmp_path, text)
    assert problem.startswith(message)


def test_all_mistakes_are_reported_at_once_with_the_lines_on_which_rows_begin(tmp_path: Path) -> None:
    text = f'{HEAD}"Two\nlines?",a\n,b\n\nx,y,z\n'
    assert [problem.split(": ")[0] for problem in problems_in(tmp_path, text)] == ["csv:4", "csv:6"]


def test_csv_becomes_a_contract_that_can_be_checked_or_another_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.csv").write_text(f"{HEAD}Why?,a;b\n")
    ended = rag_contract("convert", "--from", "csv", "--csv", "q.csv", "--golden-out", "golden.jsonl")
    assert ended == (0, "converted 1 query (1 with relevant documents)\n", "")
    Path("current_run.jsonl").write_text('{"query_id": "why", "results": [{"doc_id": "a"}, {"doc_id": "b"}]}\n')
    assert rag_contract("check").code == 0
    assert rag_contract("convert", "--from", "csv", "--csv", "q.csv", "--to", "trec", "--qrels-out", "qrels").code == 0
    assert Path("qrels").read_text() == "why 0 a 1\nwhy 0 b 1\n"


def test_options_of_csv_are_refused_for_other_formats_and_nothing_is_written_as_csv() -> None:
    for options, message in {
        "--from trec --qrels q --golden-out g --separator ;": "--separator is for --from csv",
        "--from csv --csv q --golden-out g --separator=": "--separator is empty",
        "--from csv --csv q --run-out g": "--run-out cannot be made from csv, which has no run",
        "--to csv --golden g --golden-out h": "Invalid value for '--to'",
    }.items():
        ended = rag_contract("convert", *options.split(" "))
        assert ended.code == 2
        assert message in ended.err, ended.err
    assert FORMATS["csv"].load().outputs == {}


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=20)


@given(
    CELLS.filter(str.strip), st.lists(CELLS.filter(lambda name: name.strip() == name and "|" not in name), max_size=3)
)
def test_any_cell_is_read_as_csv_writes_it(question: str, ids: list[str]) -> None:
    if any(name.startswith("[") for name in ids):
        return
    file = io.StringIO()
    csv.writer(file).writerows([["question", "doc_ids"], [question, "|".join(ids)]])
    with tempfile.TemporaryDirectory() as folder:
        [row], problems, _ = read(Path(folder), file.getvalue(), separator="|")
    assert not problems
    assert row["query"] == question.strip()
    assert list(row["relevance"]) == (list(dict.fromkeys(ids)) or ["TODO"])
