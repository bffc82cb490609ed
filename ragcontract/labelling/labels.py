"""Labels: the grades of a question's documents, the questions to label, and the golden file that has the labels.

When labels are saved, every other line and every other field of the golden file stays as it is, byte for byte.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.golden_file import read_golden
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE, GoldenQuery
from ragcontract.files.locking import digest_of, rewrite
from ragcontract.files.opening import GZIP_MAGIC, READ_ERRORS, UTF8_BOM, read_problem
from ragcontract.files.paths import not_readable
from ragcontract.files.problems import Problem, Problems
from ragcontract.files.rows import is_parquet
from ragcontract.files.writing import check_outputs
from ragcontract.registry import BUILT_IN

NOT_RELEVANT = 0


class Labels(Struct, frozen=True, kw_only=True):
    """The labels of a question's documents."""

    grades: Mapping[str, float] = {}  # by document, without the placeholder of ``init``
    unanswerable: bool = False  # true once it is decided that nothing answers the question
    level: float = RELEVANT_GRADE  # the grade from which a document is relevant

    @property
    def relevant(self) -> list[str]:
        """The ids of the relevant documents."""
        return [doc_id for doc_id, grade in self.grades.items() if grade >= self.level]

    def graded(self, grades: Mapping[str, float]) -> Self:
        """Return these labels with added or changed grades; they no longer say that nothing answers the question."""
        return replace(self, grades={**self.grades, **grades}, unanswerable=False)

    def relevance(self) -> dict[str, float]:
        """Return the field ``relevance`` of a golden row.

        Without a relevant document, it has the placeholder, because a row without any would mean that nothing answers
        the question.
        """
        missing = not self.unanswerable and not self.relevant
        grades = {**self.grades, **({PLACEHOLDER: self.level} if missing else {})}
        return {doc_id: int(grade) if grade == int(grade) else grade for doc_id, grade in grades.items()}


def labels_of(query: GoldenQuery, level: float = RELEVANT_GRADE) -> Labels:
    """Return the labels in a golden row. Relevant documents without a grade get the grade ``level``."""
    grades = dict.fromkeys(query.relevant_doc_ids, float(level)) if query.relevance is None else query.relevance
    labelled = {doc_id: grade for doc_id, grade in grades.items() if doc_id != PLACEHOLDER}
    return Labels(grades=labelled, unanswerable=not query.answerable, level=level)


class Candidate(Struct, frozen=True, kw_only=True, gc=False):
    """A retrieved document."""

    doc_id: str
    rank: int  # the best one
    score: float | None = None  # at that rank
    text: str = ""  # the start of the text, with its lines; empty if the run has none

    @property
    def line(self) -> str:
        """The text as one line, with single blanks."""
        return " ".join(self.text.split())


class Question(Struct, frozen=True, kw_only=True):
    """A question and the documents to label for it."""

    id: str
    text: str
    candidates: tuple[Candidate, ...]  # best first
    labels: Labels = Labels()  # those of the golden file
    can_be_unanswerable: bool = True  # false if a rule of its row needs a relevant document

    def undecided(self, labels: Labels) -> list[Candidate]:
        """Return the candidates without a grade; none if nothing answers the question."""
        if labels.unanswerable:
            return []
        return [candidate for candidate in self.candidates if candidate.doc_id not in labels.grades]

    def is_decided(self, labels: Labels) -> bool:
        """Return whether all candidates have a grade and one document is relevant, or nothing answers the question."""
        return labels.unanswerable or (bool(labels.relevant) and not self.undecided(labels))


SPACED = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s')
LABELS = ("relevant_doc_ids", "relevance")


class GoldenRows:
    """The lines of a golden file, and the queries in them by id. Both are empty for a file that does not exist yet."""

    def __init__(
        self, path: str, data: bytes, queries: Mapping[str, GoldenQuery], level: float = RELEVANT_GRADE
    ) -> None:
        self.path = path
        self.queries = queries
        self.level = level
        self._lines = data.split(b"\n")
        self._rows = {query.id: query.location.line - 1 for query in queries.values()}
        self._digest = digest_of(data)

    def with_labels(self, labels: Mapping[str, Labels], texts: Mapping[str, str]) -> bytes:
        """Return the file with these labels; ``texts`` has the questions of queries that are not in it yet.

        A row whose labels are those in the file stays as it is. New rows are added at the end.
        """
        lines = list(self._lines)
        added = []
        for query_id, of_query in labels.items():
            if query_id not in self._rows:
                added.append(_new_row(query_id, texts[query_id], of_query))
            elif of_query != labels_of(self.queries[query_id], self.level):
                at = self._rows[query_id]
                lines[at] = relabelled(lines[at], of_query)
        if added and lines[-1].strip():
            lines.append(b"")
        return b"\n".join([*lines[:-1], *added, lines[-1]]) if added else b"\n".join(lines)

    def save(self, labels: Mapping[str, Labels], texts: Mapping[str, str]) -> None:
        """Write the file with these labels, unless nothing changes.

        Raises :class:`OutputError` if somebody else has changed the file since it was read or last written.
        """
        self._save(self.with_labels(labels, texts))

    def save_field(self, name: str, values: Mapping[str, object]) -> None:
        """Write the file with a field in the rows of these queries, as :meth:`save` does."""
        lines = list(self._lines)
        for query_id, value in values.items():
            lines[self._rows[query_id]] = with_field(lines[self._rows[query_id]], name, value)
        self._save(b"\n".join(lines))

    def _save(self, data: bytes) -> None:
        if (digest := digest_of(data)) != self._digest:
            rewrite(self.path, data, self._digest)
            self._digest = digest


def read_golden_rows(
    path: str, *, must_exist: bool = True, level: float = RELEVANT_GRADE, allow_fields: Sequence[str] = ()
) -> tuple[GoldenRows, Problems]:
    """Return the golden file to label and the problems in it, as :func:`read_golden` reads it.

    Raises :class:`InputError` if it is missing, or cannot be edited because it is a folder, a pipe, gzip or Parquet.
    """
    if not Path(path).exists() and not must_exist:
        if problems := check_outputs([path], []):
            raise OutputError(problems)
        return GoldenRows(path, b"", {}, level), Problems()
    if problem := not_readable(path) or _not_editable(path):
        raise InputError([str(Problem(path or repr(path), problem))])
    try:
        data = Path(path).read_bytes()
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    if data.startswith(GZIP_MAGIC):
        raise InputError([f"{path}: is gzip, which cannot be edited; unpack it first"])
    if not data.strip():
        return GoldenRows(path, data, {}, level), Problems()
    if problems := check_outputs([path], []):
        raise OutputError(problems)
    golden = read_golden([path], BUILT_IN, level=level, allow_fields=allow_fields)
    return GoldenRows(path, data, golden.queries, level), golden.problems


def _not_editable(path: str) -> str | None:
    if not Path(path).is_file():
        return "is not a regular file, so it cannot be edited"
    return "is Parquet, which cannot be edited; convert it to JSON lines first" if is_parquet(path) else None


def relabelled(line: bytes, labels: Labels) -> bytes:
    """Return a golden row with other labels, in ``relevance``. Its other fields stay as they are, byte for byte."""
    return _replaced(line, LABELS, "relevance", labels.relevance())


def with_field(line: bytes, name: str, value: object) -> bytes:
    """Return a golden row with another value of a field. Its other fields stay as they are, byte for byte."""
    return _replaced(line, (name,), name, value)


def _replaced(line: bytes, names: Sequence[str], name: str, value: object) -> bytes:
    """Return a row in which the field ``name`` replaces the first of ``names``, or is at the end; the others go."""
    start = UTF8_BOM if line.startswith(UTF8_BOM) else b""
    body = line[len(start) :]
    space = b" " if SPACED.match(body) else b""
    written = _json(value, spaced=bool(space))
    changed: dict[str, bytes] = {}
    for field, raw in msgspec.json.decode(body, type=dict[str, msgspec.Raw]).items():
        if field not in names:
            changed[field] = bytes(raw)
        elif name not in changed:
            changed[name] = written
    changed.setdefault(name, written)
    row = (b"," + space).join(_json(field) + b":" + space + encoded for field, encoded in changed.items())
    return start + b"{" + row + b"}" + body[len(body.rstrip()) :]


def _new_row(query_id: str, text: str, labels: Labels) -> bytes:
    return _json({"id": query_id, "query": text, "relevance": labels.relevance()}, spaced=True)


def _json(value: object, *, spaced: bool = True) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps(value, ensure_ascii=False, separators=separators).encode()
