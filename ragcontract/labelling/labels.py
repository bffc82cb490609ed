"""What is decided about the documents of a question, and the questions that are still to be labelled.

A golden file whose labels change: every other line, and every other field, stays as it is, byte for byte.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.built_in import BUILT_IN
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE, GoldenQuery
from ragcontract.files.locking import digest_of, rewrite
from ragcontract.files.opening import GZIP_MAGIC, READ_ERRORS, UTF8_BOM, read_problem
from ragcontract.files.paths import not_readable
from ragcontract.files.problems import Problem, Problems
from ragcontract.files.rows import is_parquet
from ragcontract.files.writing import check_outputs

NOT_RELEVANT = 0


class Labels(Struct, frozen=True, kw_only=True):
    """The grades of documents, relevant from the ``level`` of the config, without the placeholder of ``init``.

    ``unanswerable`` is true once it is decided that nothing answers the question.
    """

    grades: Mapping[str, float] = {}
    unanswerable: bool = False
    level: float = RELEVANT_GRADE

    @property
    def relevant(self) -> list[str]:
        """The ids of the relevant documents."""
        return [doc_id for doc_id, grade in self.grades.items() if grade >= self.level]

    def graded(self, grades: Mapping[str, float]) -> Self:
        """Return these labels with more grades, or other ones; a relevant document answers the question."""
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
    """Return the labels in a golden row; documents without a grade that are relevant have that of the level."""
    grades = dict.fromkeys(query.relevant_doc_ids, float(level)) if query.relevance is None else query.relevance
    labelled = {doc_id: grade for doc_id, grade in grades.items() if doc_id != PLACEHOLDER}
    return Labels(grades=labelled, unanswerable=not query.answerable, level=level)


class Candidate(Struct, frozen=True, kw_only=True, gc=False):
    """A retrieved document: its best rank, the score there, and the start of its text (empty if the run has none)."""

    doc_id: str
    rank: int
    score: float | None = None
    text: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """A question and the documents to judge for it, best first; ``labels`` are those of the golden file.

    ``can_be_unanswerable`` is false if a rule of its row needs a relevant document.
    """

    id: str
    text: str
    candidates: tuple[Candidate, ...]
    labels: Labels = Labels()
    can_be_unanswerable: bool = True

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
    """The lines of a golden file, and the queries in them."""

    def __init__(
        self, path: str, data: bytes, queries: Mapping[str, GoldenQuery], level: float = RELEVANT_GRADE
    ) -> None:
        """Store the file's bytes, and its queries by id; both are empty for a file that does not exist yet."""
        self.path = path
        self.queries = queries
        self.level = level
        self._lines = data.split(b"\n")
        self._rows = {query.id: int(query.location.rpartition(":")[2]) - 1 for query in queries.values()}
        self._digest = digest_of(data)

    def with_labels(self, labels: Mapping[str, Labels], texts: Mapping[str, str]) -> bytes:
        """Return the file with these labels; ``texts`` has the questions of queries that are not in it yet.

        A row whose labels are those in the file stays as it is. New rows are added at the end.
        """
        lines = list(self._lines)
        added = []
        for query_id, one in labels.items():
            if query_id not in self._rows:
                added.append(_new_row(query_id, texts[query_id], one))
            elif one != labels_of(self.queries[query_id], self.level):
                at = self._rows[query_id]
                lines[at] = relabelled(lines[at], one)
        if added and lines[-1].strip():
            lines.append(b"")
        return b"\n".join([*lines[:-1], *added, lines[-1]]) if added else b"\n".join(lines)

    def save(self, labels: Mapping[str, Labels], texts: Mapping[str, str]) -> None:
        """Write the file with these labels, unless nothing changes.

        Raises :class:`OutputError` if the file is not as it was read or last written: somebody else is editing it.
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
    """Read the golden file to label, and the problems in it; the rest as in :func:`read_golden`.

    Raises :class:`InputError` if it cannot be edited: a folder, a pipe, gzip or Parquet; or if it is missing.
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
    """Return a golden row with other labels, in ``relevance``; its other fields stay as they are, byte for byte."""
    return _replaced(line, LABELS, "relevance", labels.relevance())


def with_field(line: bytes, name: str, value: object) -> bytes:
    """Return a golden row with another value of a field; its other fields stay as they are, byte for byte."""
    return _replaced(line, (name,), name, value)


def _replaced(line: bytes, names: Sequence[str], name: str, value: object) -> bytes:
    """Return a row in which a field stands in place of the first of some, or at the end."""
    start = UTF8_BOM if line.startswith(UTF8_BOM) else b""
    body = line[len(start) :]
    space = b" " if SPACED.match(body) else b""
    written = _json(value, spaced=bool(space))
    changed: dict[str, bytes] = {}
    for other, given in msgspec.json.decode(body, type=dict[str, msgspec.Raw]).items():
        if other not in names:
            changed[other] = bytes(given)
        elif name not in changed:
            changed[name] = written
    changed.setdefault(name, written)
    row = (b"," + space).join(_json(one) + b":" + space + given for one, given in changed.items())
    return start + b"{" + row + b"}" + body[len(body.rstrip()) :]


def _new_row(query_id: str, text: str, labels: Labels) -> bytes:
    return _json({"id": query_id, "query": text, "relevance": labels.relevance()}, spaced=True)


def _json(value: object, *, spaced: bool = True) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps(value, ensure_ascii=False, separators=separators).encode()
