"""Code in answers: which part of an answer is code, and whether it parses. Nothing is executed or constructed.

Parsers are made for code of friends: some take exponential time (SQL joins without conditions) or quadratic time
(Python's f-strings, YAML in brackets), and some recurse. So code has a largest size, a largest depth, and SQL a number
of steps.
"""

import ast
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import yaml
from msgspec import Struct

from ragcontract.answers.json_answer import NotJsonError, parsed
from ragcontract.core import bounds

Language: TypeAlias = Literal["python", "json", "yaml", "sql"]
TITLES: dict[Language, str] = {"python": "Python", "json": "JSON", "yaml": "YAML", "sql": "SQL"}
INSTALL = 'needs sqlglot, which is not installed; run `pip install "rag-contract[code]"`'
# What authors write after the marks of a block.
_INFO: dict[Language, frozenset[str]] = {
    "python": frozenset({"python", "py", "python3", "py3"}),
    "json": frozenset({"json"}),
    "yaml": frozenset({"yaml", "yml"}),
    "sql": frozenset({"sql", "postgresql", "postgres", "psql", "mysql", "sqlite", "tsql", "bigquery", "snowflake"}),
}
_FENCE = re.compile(r"(?P<indent>[ \t]*(?:>[ \t]?)*)(?P<marks>`{3,}(?=[^`]*$)|~{3,})[ \t]*(?P<info>[^\s{]*)")
_TOO_DEEP = "is nested too deeply"
_LINE = re.compile(r"\(byte (?P<byte>\d+)\)")


class Block(Struct, frozen=True):
    """A part of an answer that is code, and the number of its first line in the answer."""

    text: str
    line: int
    info: str = ""


class Fault(Struct, frozen=True):
    """Why code does not parse; ``line`` is that of the answer, if the parser names one."""

    problem: str
    line: int | None = None


class TooManyStepsError(BaseException):
    """A parser takes too long. No handler of a parser may catch this."""


def code_in(answer: str, language: Language) -> list[Block]:
    """Return the code in an answer: the blocks of the language, else those without one, else the whole answer.

    There is none in an answer whose blocks are all of other languages.
    """
    blocks = [*_blocks(answer)]
    if not blocks:
        return [Block(answer, 1)]
    named = [block for block in blocks if block.info.lower() in _INFO[language]]
    return named or [block for block in blocks if not block.info]


def _blocks(answer: str) -> Iterator[Block]:
    """Yield the fenced blocks. What stands before the marks of a block (blanks, signs of quotes) is not part of it."""
    marks = indent = info = ""
    lines: list[str] = []
    start = 0
    for number, line in enumerate(answer.split("\n"), 1):
        fence = _FENCE.match(line.rstrip("\r"))
        if not marks:
            if fence:
                marks, indent, info, lines, start = fence["marks"], fence["indent"], fence["info"], [], number + 1
        elif fence and fence["marks"].startswith(marks) and not line[fence.end("marks") :].strip():
            yield Block("\n".join(lines), start, info)
            marks = ""
        else:
            lines.append(_without(line, indent))
    if marks:  # a block that nothing closes ends with the answer
        yield Block("\n".join(lines), start, info)


def _without(line: str, indent: str) -> str:
    """Return a line of a block without as much of the block's indentation as it has."""
    at = 0
    while at < len(indent) and at < len(line) and line[at] == indent[at]:
        at += 1
    return line[at:]


def fault_of(block: Block, language: Language, dialect: str | None = None) -> Fault | None:
    """Return why a block does not parse, or None if it does. Raises ImportError for SQL without sqlglot."""
    if len(block.text) > bounds.CODE and language != "json":
        return Fault(f"has more than {bounds.CODE:,} characters")
    if not block.text.strip():
        return Fault("is empty", block.line)
    try:
        if language == "sql":
            _parse_sql(block.text, dialect)
        else:
            _PARSERS[language](block.text)
    except _Unparsable as error:
        return Fault(error.problem, None if error.line is None else block.line + error.line - 1)
    except (RecursionError, MemoryError):
        return Fault(_TOO_DEEP)
    return None


class _Unparsable(Exception):  # noqa: N818 (it never leaves this module)
    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.line = " ".join(problem.split()), line


def _parse_python(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise _Unparsable(error.msg, error.lineno) from None
        except (ValueError, OverflowError) as error:  # a zero byte, half of a surrogate pair
            raise _Unparsable(str(error)) from None
    if not tree.body:
        raise _Unparsable("has no statement")


def _parse_json(text: str) -> None:
    try:
        parsed(text)
    except NotJsonError as error:
        place = _LINE.search(str(error))
        line = text.encode(errors="replace")[: int(place["byte"])].count(b"\n") + 1 if place else None
        raise _Unparsable(str(error).removeprefix("is not JSON (").removesuffix(")"), line) from None


def _parse_yaml(text: str) -> None:
    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.depth > bounds.NESTING:
                raise RecursionError
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    nodes = []
    try:
        loader = Loader(text)
        while loader.check_node():
            nodes.append(loader.get_node())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _Unparsable(error.problem or error.context or "", mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        raise _Unparsable(error.reason, text[: error.position].count("\n") + 1) from None
    except (ValueError, OverflowError):  # PyYAML passes the number after a \U to chr()
        raise _Unparsable(r"has an escape \U… that is not a character") from None
    if not nodes:
        raise _Unparsable("has no value")
    if all(isinstance(node, yaml.ScalarNode) and not node.style for node in nodes):
        raise _Unparsable("is plain text, without a mapping or a list")


_PARSERS: dict[str, Callable[[str], None]] = {"python": _parse_python, "json": _parse_json, "yaml": _parse_yaml}


def sql_fault(dialect: str | None) -> str | None:
    """Return what a rule on SQL lacks or has wrong: sqlglot, or a dialect that it knows."""
    try:
        from sqlglot.dialects.dialect import Dialect, Dialects
    except ImportError:
        return INSTALL
    known = sorted(each.value for each in Dialects if each.value)
    if dialect is None or (dialect in known and Dialect.get(dialect) is not None):
        return None
    return f"expected one of {', '.join(known)}"


def _parse_sql(text: str, dialect: str | None) -> None:
    import sqlglot
    from sqlglot import errors, expressions

    logger = logging.getLogger("sqlglot")  # it warns of each statement that it does not know
    was, logger.disabled = logger.disabled, True
    try:
        statements = _within_steps(lambda: sqlglot.parse(text, read=dialect))
    except errors.ParseError as error:
        first = error.errors[0] if error.errors else {}
        raise _Unparsable(str(first.get("description") or error), first.get("line")) from None
    except errors.SqlglotError as error:
        raise _Unparsable(str(error).partition(":")[0]) from None
    finally:
        logger.disabled = was
    statements = [statement for statement in statements if statement is not None]
    if not statements:
        raise _Unparsable("has no statement")
    for statement in statements:
        if isinstance(statement, expressions.Command):
            word = str(statement.this).upper()
            raise _Unparsable(f"has a statement that cannot be checked: {word}")
        is_expression = isinstance(statement, expressions.Condition | expressions.Alias | expressions.Identifier)
        if is_expression and not isinstance(statement, expressions.Query):
            raise _Unparsable("has an expression without a statement")


def _within_steps(parse: Callable[[], Any]) -> Any:
    """Return what a function returns, if it calls at most so many functions; otherwise the code does not parse."""
    left = bounds.CODE_STEPS

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal left
        if event == "call":
            left -= 1
            if left < 0:
                raise TooManyStepsError

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return parse()
    except TooManyStepsError:
        raise _Unparsable(f"takes more than {bounds.CODE_STEPS:,} steps to parse") from None
    finally:
        sys.setprofile(before)
