"""Reads text that people write: questions, one per line."""

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.questions import COLUMNS, column_name, same_question
from ragcontract.files.opening import READ_ERRORS, read_problem, read_within
from ragcontract.files.patterns import not_readable


def read_text(path: str, limit: int, what: str) -> str:
    """Return the text of a file of at most ``limit`` bytes; ``what`` it is, such as "a list of questions".

    Raises :class:`InputError` if it cannot be read, is too large or not UTF-8.
    """
    if problem := not_readable(path):
        raise InputError([f"{path or repr(path)}: {problem}"])
    try:
        data, _ = read_within(limit, path, beyond=f", the limit for {what}")
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError([f"{path}:{line}: is not UTF-8; save the file as UTF-8"]) from error
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    return text


def read_questions(path: str) -> tuple[list[str], int]:
    """Return the distinct questions of a file with one question per line, and the number of duplicates.

    Raises :class:`InputError` if the file is not a list of questions.
    """
    text = read_text(path, bounds.QUESTIONS, "a list of questions")
    lines = [line.strip() for line in text.splitlines()]
    if _is_table(lines):
        way = "convert it with `rag-contract convert --from csv`, or list one question per line, without a header"
        raise InputError([f"{path}: is CSV, not a list of questions; {way}"])
    if problems := [f"{path}:{n}: {problem}" for n, line in enumerate(lines, 1) if (problem := _no_question(line))]:
        raise InputError(problems[: bounds.QUESTION_PROBLEMS], more=len(problems[bounds.QUESTION_PROBLEMS :]))
    asked = [line for line in lines if line]
    if not asked:
        raise InputError([f"{path}: is empty; expected one question per line"])
    once: dict[str, str] = {}
    for question in asked:
        once.setdefault(same_question(question), question)
    return list(once.values()), len(asked) - len(once)


def _is_table(lines: list[str]) -> bool:
    """Return whether the first line is a header of several columns, one of them for questions."""
    first = next(filter(None, lines), "").removeprefix("\ufeff")
    return "?" not in first and any(
        len(cells := first.split(mark)) > 1 and any(column_name(cell.strip('" ')) in COLUMNS for cell in cells)
        for mark in ",;\t"
    )


def _no_question(line: str) -> str | None:
    if line.startswith("{"):
        return "is JSON; expected plain text, one question per line"
    if len(line) > bounds.QUESTION:
        return f"has more than {bounds.QUESTION:,} characters, the limit for a question"
    return "is binary data; expected plain text, one question per line" if "\0" in line else None
