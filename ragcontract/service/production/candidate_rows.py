"""The golden row of an accepted candidate: what it must have, as whoever reads the golden file says.

The questions that are golden are compared without what is taken out of texts, as candidates are stored without it.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from os import sep
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import RowMapping

from ragcontract.contract.golden_file import Golden, read_golden
from ragcontract.contract.golden_row import GoldenRow
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE, GoldenQuery, Mode
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import shorten
from ragcontract.registry import BUILT_IN
from ragcontract.service.known_contract import KnownContract, golden_of
from ragcontract.service.production.interactions import asked_texts, question_digest
from ragcontract.service.redaction import redactor

NOTHING_WANTED = (
    "expects nothing: name the relevant documents, give [] if nothing answers the question, or give an expected_mode"
)
FILE = "row.jsonl"
_WORD = re.compile(r"\w+")
_kept: dict[tuple[str, tuple[str, ...]], "GoldenQuestions"] = {}  # of the projects that are looked at
_keeping = threading.Lock()
KEPT = 4


class GoldenQuestions(Struct, frozen=True, kw_only=True):
    """The questions of a contract."""

    by_digest: Mapping[str, str] = {}  # the ids of golden queries by the digests of their questions
    ids: frozenset[str] = frozenset()
    modes: Sequence[Mode] = ()  # that it expects

    def golden_id(self, candidate: RowMapping) -> str | None:
        """Return the id of the golden query that a candidate has become, or was before; None if it is not golden."""
        known = self.by_digest.get(candidate["query_sha"])
        if known is not None or not candidate["row"]:
            return known
        row = msgspec.json.decode(candidate["row"], type=dict[str, Any])
        golden_id = as_id(row["id"])
        return golden_id if golden_id in self.ids else self.by_digest.get(question_digest(row["query"]))


def golden_questions(contract: KnownContract, patterns: tuple[str, ...]) -> GoldenQuestions:
    """Return the questions of a contract, without what a project takes out of texts."""
    key = contract.digest or "", patterns
    with _keeping:
        questions = _kept.pop(key, None) or _questions(golden_of(contract), patterns)
        _kept[key] = questions  # the newest at the end
        for old in [*_kept][:-KEPT]:
            del _kept[old]
    return questions


def _questions(golden: Mapping[str, GoldenQuery], patterns: tuple[str, ...]) -> GoldenQuestions:
    redact = redactor(patterns)
    by_digest, modes = dict[str, str](), list[Mode]()
    for query in golden.values():
        for text in asked_texts(query):
            for compared in (text, redact.text(text)):
                by_digest.setdefault(question_digest(compared), query.id)
        if query.answer and query.answer.expected_mode:
            modes.append(query.answer.expected_mode)
    return GoldenQuestions(by_digest=by_digest, ids=frozenset(golden), modes=[*dict.fromkeys(modes)])


def suggested_id(question: str) -> str:
    """Return an id that says what is asked."""
    name = ""
    for word in _WORD.findall(question.casefold()):
        if len(name) + len(word) >= bounds.SUGGESTED_ID:
            break
        name = f"{name}_{word}" if name else word
    return name or "question"


def golden_row(
    row: Mapping[str, Any], question: str, contract: KnownContract, golden: GoldenQuestions
) -> Mapping[str, Any]:
    """Return the golden row of a candidate, with its question unless the row has its own.

    Raises InputError with everything that is wrong with it.
    """
    whole: dict[str, Any] = {"id": suggested_id(question), "query": question}
    whole |= {name: value for name, value in row.items() if value is not None}
    data = msgspec.json.encode(whole)
    if len(data) > bounds.CANDIDATE_ROW:
        raise InputError([f"row: is larger than {mebibytes(bounds.CANDIDATE_ROW)}"])
    allowed = frozenset(contract.today[0].config.allow_fields) if contract.today else frozenset[str]()
    unknown = [name for name in whole if name not in GoldenRow.__struct_fields__ and name not in allowed]
    problems = [
        f"row.{shorten(name, bounds.NAME)}: no golden row has this field; put fields of your own into metadata"
        for name in unknown
    ]
    read = _read({name: value for name, value in whole.items() if name not in unknown}, contract)
    problems += read.problems.problems
    for query in read.queries.values():
        problems += _problems_of(query, golden)
    if problems:
        raise InputError(problems)
    return whole


def _problems_of(query: GoldenQuery, golden: GoldenQuestions) -> list[str]:
    problems = []
    if not (query.names_documents or query.rules or (query.answer and query.answer.expected_mode)):
        problems.append(f"row: {NOTHING_WANTED}")
    if PLACEHOLDER in query.relevant_doc_ids:
        problems.append(f"row.relevant_doc_ids: still holds the placeholder {PLACEHOLDER!r}")
    if query.id in golden.ids:
        problems.append("row.id: a golden query has it; choose another one")
    elif same := golden.by_digest.get(question_digest(query.query)):
        problems.append(f"row.query: the golden query {shorten(same, bounds.NAME)!r} has this question")
    return problems


def _read(row: Mapping[str, Any], contract: KnownContract) -> Golden:
    """Read a golden row as a check reads it. Its problems begin with the field."""
    config = contract.today[0].config if contract.today else None
    with TemporaryDirectory(prefix="rag-contract-") as folder:
        path = Path(folder, FILE)
        path.write_bytes(msgspec.json.encode(row) + b"\n")
        golden = read_golden(
            [str(path)],
            BUILT_IN,
            level=config.relevance_level if config else RELEVANT_GRADE,
            allow_fields=None if config is None else config.allow_fields,
        )
    start = f"{folder}{sep}{FILE}:1: "
    problems = tuple(f"row.{text.removeprefix(start)}" for text in golden.problems.problems)
    return msgspec.structs.replace(golden, problems=msgspec.structs.replace(golden.problems, problems=problems))
