"""Code in answers: what is code, what parses, and that no answer takes long or ends the process."""

import sys
import time
import warnings
from collections.abc import Callable

import pytest

from ragcontract.answers import code_blocks as code
from ragcontract.answers.code_blocks import Block, Fault, Language, code_in, fault_of
from ragcontract.core import bounds

DEEP = Fault("is nested too deeply")


def fault(text: str, language: Language, dialect: str | None = None) -> Fault | None:
    return fault_of(Block(text, 1), language, dialect)


PARSES: list[tuple[Language, str]] = [
    ("python", "def f(x: int) -> int:\n    return x\n"),
    ("python", "x = 'a\\d'; y = 1 is 1"),  # Python warns of both
    ("python", "print('sys.exit()')\nraise SystemExit"),
    ("json", '{"a": [1, 2.5, null, "b"]}'),
    ("json", "[]"),
    ("yaml", "a: 1\nb: [x, y]\n"),
    ("yaml", "--- {a: 1}\n--- [b]\n"),
    ("yaml", "a: &x [1]\nb: *x\n"),
    ("yaml", '"a quoted text"'),
    ("yaml", "|\n  a text in lines\n"),
    ("yaml", "!!python/object/apply:os.system [echo]"),
    ("sql", "SELECT a, count(*) FROM t WHERE b > 1 GROUP BY a;"),
    ("sql", "INSERT INTO t VALUES (1); UPDATE t SET a = 1; DELETE FROM t; DROP TABLE t"),
    ("sql", "CREATE TABLE t (a INT PRIMARY KEY)"),
    ("sql", "WITH a AS (SELECT 1) SELECT * FROM a UNION ALL (SELECT 2)"),
    ("sql", "(SELECT 1)"),
]


@pytest.mark.parametrize(("language", "text"), PARSES)
def test_what_parses(language: Language, text: str) -> None:
    assert fault(text, language) is None


BROKEN: list[tuple[Language, str, int | None, str]] = [
    ("python", "def f(:\n    pass", 1, "invalid syntax"),
    ("python", "x = 1\ny = (2\n", 2, "'(' was never closed"),
    ("python", "a\0b", None, "null bytes"),
    ("python", "a = '\ud800'", None, "surrogates not allowed"),
    ("python", "# only a comment\n", None, "has no statement"),
    ("python", "Sorry, I cannot do that.", 1, "invalid syntax"),
    ("json", '{"a": 1,\n "b": }', 2, "invalid character"),
    ("json", '{"a": NaN}', 1, "invalid character"),
    ("json", "Sorry", 1, "invalid character"),
    ("yaml", "a: 1\n  b: 2\n", 2, "mapping values are not allowed here"),
    ("yaml", "a: [1, 2\nb: 3\n", 2, "expected ',' or ']'"),
    ("yaml", "a: *missing", 1, "undefined alias"),
    ("yaml", "a: \0", 1, "special characters are not allowed"),
    ("yaml", 'a: "\\UFFFFFFFF"', None, "is not a character"),
    ("yaml", "Sorry, I cannot do that.", None, "is plain text, without a mapping or a list"),
    ("yaml", "# only a comment\n", None, "has no value"),
    ("sql", "SELECT a FROM t\nWHERE (b = 1", 2, "Expecting )"),
    ("sql", "SELECT 'a", None, "Error tokenizing"),
    ("sql", "SELEC a FROM t", 1, "Invalid expression"),
    ("sql", "Sorry", None, "has an expression without a statement"),
    ("sql", "I cannot", None, "has an expression without a statement"),
    ("sql", "Show me the orders", None, "has a statement that cannot be checked: SHOW"),
    ("sql", "-- only a comment", None, "has no statement"),
]


@pytest.mark.parametrize(("language", "text", "line", "problem"), BROKEN)
def test_what_does_not_parse_has_a_line_and_a_problem(
    language: Language, text: str, line: int | None, problem: str
) -> None:
    found = fault(text, language)
    assert found is not None
    assert (found.line, problem in found.problem) == (line, True), found


def test_sql_is_that_of_its_dialect() -> None:
    text = "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1"
    assert fault(text, "sql", "snowflake") is None
    assert fault("SELECT `a` FROM `t`", "sql", "mysql") is None
    assert fault("SELECT `a` FROM `t`", "sql", "postgres") is not None


def test_the_code_of_an_answer_is_its_blocks_of_the_language() -> None:
    answer = (
        "First:\n```py\na = 1\n```\nthen\n~~~ Python title=x\nb = (\n~~~~\nand\n```sh\nls (\n```\n```\nnone (\n```\n"
    )
    assert code_in(answer, "python") == [Block("a = 1", 3, "py"), Block("b = (", 7, "Python")]
    assert fault_of(code_in(answer, "python")[1], "python") == Fault("'(' was never closed", 7)
    assert code_in(answer, "sql") == [Block("none (", 14)]
    assert code_in("```sh\nls\n```", "python") == []
    assert code_in("a = 1\nb = 2", "python") == [Block("a = 1\nb = 2", 1)]


def test_a_block_loses_the_indentation_that_is_around_it() -> None:
    answer = (
        "1. Do:\n   ```python\n   if a:\n       b()\n   ```\n> ```python\n> c\n> ```\n\t```python\r\n\td()\r\n\t```\r\n"
    )
    blocks = code_in(answer, "python")
    assert [block.text for block in blocks] == ["if a:\n    b()", "c", "d()\r"]
    assert [fault_of(block, "python") for block in blocks] == [None] * 3


def test_a_block_that_nothing_closes_ends_with_the_answer() -> None:
    assert code_in("```json\n{\n``\n[1", "json") == [Block("{\n``\n[1", 2, "json")]
    assert code_in("````json\n```\n````", "json") == [Block("```", 2, "json")]
    assert code_in("a ``` b", "json") == [Block("a ``` b", 1)]


def test_marks_with_a_word_after_them_close_no_block() -> None:
    assert code_in("```json\n1\n```json\n2\n``` \n3", "json") == [Block("1\n```json\n2", 2, "json")]


N = bounds.CODE // 10
LEVELS = [f"l{level}: &l{level} [*l{level - 1}, *l{level - 1}]\n" for level in range(1, 60)]
BOMB = "".join(["l0: &l0 [x, x]\n", *LEVELS])  # if it is constructed and read
HOSTILE: dict[str, tuple[Language, str]] = {
    "parentheses": ("python", "(" * N),
    "minus": ("python", "-" * N + "1"),
    "not": ("python", "not " * N + "1"),
    "attributes": ("python", "a" + ".b" * N),
    "sums": ("python", "1" + "+1" * N),
    "calls": ("python", "f" + "()" * N),
    "lambdas": ("python", "lambda:" * N + "1"),
    "powers": ("python", "1**" * N + "1"),
    "elif": ("python", "if a: pass\n" + "elif b: pass\n" * (N // 2)),
    "blocks": ("python", "".join(" " * depth + "if 1:\n" for depth in range(400))),
    "f-strings in each other": ("python", "f'{" * N),
    "digits": ("python", "9" * N),
    "arrays": ("json", "[" * (1 << 20)),
    "objects": ("json", '{"":' * N),
    "lists": ("yaml", "[" * N),
    "mappings": ("yaml", "{" * N),
    "dashes": ("yaml", "- " * N),
    "questions": ("yaml", "? " * N),
    "anchors": ("yaml", "&a " * N),
    "SQL parentheses": ("sql", "SELECT " + "(" * N + "1" + ")" * N),
    "subqueries": ("sql", "SELECT * FROM (" * (N // 2)),
    "cases": ("sql", "SELECT " + "CASE WHEN " * N),
    "joins without conditions": ("sql", "SELECT 1 FROM a" + " JOIN a" * 40),
    "casts": ("sql", "SELECT " + "CAST(" * N),
    "types": ("sql", "CREATE TABLE a (b " + "ARRAY<STRUCT<a " * 6_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_is_broken(name: str) -> None:
    language, text = HOSTILE[name]
    found = fault(text, language)
    assert found is not None
    assert found.problem


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "a = b\n" * (bounds.CODE // 6)),
        ("yaml", "a: 1\n" * (bounds.CODE // 5)),
        ("yaml", BOMB),
    ],
)
def test_large_code_parses(language: Language, text: str) -> None:
    assert fault(text, language) is None


@pytest.mark.parametrize("language", ["python", "yaml", "sql"])
def test_code_past_the_limit_is_broken(language: Language) -> None:
    assert fault("-" * (bounds.CODE + 1), language) == Fault("has more than 100,000 characters")


def test_sql_that_takes_too_long_is_broken_after_a_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CODE_STEPS", 100)
    assert fault("SELECT a, b FROM t", "sql") == Fault("takes more than 100 steps to parse")
    monkeypatch.setattr(bounds, "CODE_STEPS", 100_000)
    assert fault("SELECT a, b FROM t", "sql") is None


def test_parsing_leaves_warnings_and_profilers_as_they_are() -> None:
    def profiler(*_: object) -> None:
        pass

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        assert fault("SELECT 1", "sql") is None
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fault("x = 1 is 1\ny = '\\d'", "python") is None


def test_nothing_is_executed_or_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    for name in ("exec", "eval", "__import__"):
        monkeypatch.setattr(code, name, refuse, raising=False)
    began = time.monotonic()
    assert fault("import time\ntime.sleep(60)\nopen('/tmp/x', 'w')", "python") is None
    assert fault("!!python/object/apply:time.sleep [60]", "yaml") is None
    assert time.monotonic() - began < 50


def test_the_log_of_the_parser_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    assert fault("Show me the orders", "sql") is not None
    assert caplog.text == ""


@pytest.fixture
def without_sqlglot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def leave_out() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "sqlglot"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "sqlglot", None)

    return leave_out


def test_a_rule_on_sql_names_what_to_install(without_sqlglot: Callable[[], None]) -> None:
    assert code.sql_fault("postgres") is None
    assert (code.sql_fault("oracel") or "").startswith("expected one of athena, bigquery")
    without_sqlglot()
    assert code.sql_fault(None) == code.INSTALL
