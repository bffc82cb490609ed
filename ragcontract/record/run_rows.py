"""Make rows of a run from responses, and write the run.

A run whose document ids are random, as frameworks make them if nobody names a document, gets a warning, because no
golden query can name such documents. So does a run in which the ids that golden queries name are those of chunks.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError, RagContractError
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import mebibytes
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import has_more_text
from ragcontract.files.paths import AnchoredPath
from ragcontract.files.problems import Collector, located
from ragcontract.files.rows import is_parquet, needs_pyarrow, read_rows
from ragcontract.files.writing import check_outputs, is_device
from ragcontract.net.secrets import Secrets
from ragcontract.record.interface import CallFailed, Response
from ragcontract.runs.run_writer import RowEncoder, RunWriter

# The fields of a response that a row has under the same name; `results` and `response` have rules of their own.
FIELDS = (
    "error",
    "error_detail",
    "context_chars",
    "retrieved_contexts",
    "tool_calls",
    "messages",
    "mode",
    "label",
    "refusal",
    "finish_reason",
    "llm_model",
)
IN_MEMORY = "(in memory)"


class Rows:
    """Encodes responses as rows of one run."""

    def __init__(self, out: str | None, secrets: Secrets) -> None:
        """Prepare to encode; ``out`` is the path of the run, None if it is in memory."""
        self._encoder = RowEncoder(out or IN_MEMORY, {})
        self._out = out
        self._secrets = secrets

    def encoded(self, query_id: str, response: Response, ms: float) -> bytes:
        """Return the row as JSON, without secrets; raises CallFailed if the response does not fit into a run."""
        further = {name: value for name in FIELDS if (value := getattr(response, name)) is not None}
        if response.response is not UNSET:
            further["response"] = response.response
        if further and self._out is not None and is_parquet(self._out):
            raise InputError(
                [f"{self._out}: {next(iter(further))} is not written to Parquet; name a .jsonl with --out"]
            )
        results = UNSET if response.results is None else response.results
        try:
            line, _ = self._encoder.row(query_id, results, round(ms, 3), further)
        except InputError as error:
            raise CallFailed("invalid", self._secrets.redacted(error.problems[0])) from error
        if has_more_text([response.usage, response.metadata], bounds.LINE):  # they go into the details
            what = f"`usage` and the fields that a run does not have are longer than {mebibytes(bounds.LINE)}"
            raise CallFailed("invalid", what)
        if not self._secrets:
            return line.rstrip(b"\n")
        return msgspec.json.encode(self._secrets.redacted(msgspec.json.decode(line)))


def write_run(
    out: AnchoredPath,
    rows: Iterable[dict[str, Any]],
    *,
    system_versions: Mapping[str, str],
    chosen: Mapping[str, str],
    repeats: bool,
) -> int:
    """Write rows as a run and return how many there are; the file appears whole at the end.

    The versions in ``chosen`` win over those of the rows and of the system. The model of a row wins over the system's.
    """
    of_rows = {name: system_versions[name] for name in ("llm_model",) if name in system_versions and name not in chosen}
    versions: Any = {**{name: value for name, value in system_versions.items() if name not in of_rows}, **chosen}
    written = 0
    with RunWriter(out, repeats=repeats, **versions) as run:
        for row in rows:
            fields: Any = {**of_rows, **row}
            run.write(fields.pop("query_id"), fields.pop("results", UNSET), fields.pop("latency_ms", None), **fields)
            written += 1
    return written


def with_versions(
    row: Mapping[str, Any], system_versions: Mapping[str, str], chosen: Mapping[str, str]
) -> dict[str, Any]:
    """Return a row with the versions that :func:`write_run` would write."""
    return {**system_versions, **row, **chosen}


def usable_versions(stated: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the versions that a run can have, as text, and warnings about the others that a system reported."""
    usable = {name: str(value) for name, value in stated.items() if name in VERSION_FIELDS and value is not None}
    fits = {name: value for name, value in usable.items() if 1 <= len(value) <= bounds.ID}
    known = ", ".join(VERSION_FIELDS)
    strange = [shorten(str(name), bounds.NAME) for name in stated if stated[name] is not None and name not in fits]
    warnings = [f"the system's version {name!r} is left out: a run has {known}, each a short text" for name in strange]
    return fits, warnings[: bounds.NAMES]


def refuse_output(out: str, inputs: Iterable[str]) -> None:
    """Raise OutputError, before anything is asked, if the run cannot be written at the end."""
    problems = check_outputs([out], inputs)
    if not problems and is_device(out):
        problems = [f"{out}: is not a file of its own, so the run cannot be written there whole; name a file"]
    if problems:
        raise OutputError(problems)
    if is_parquet(out) and find_spec("pyarrow") is None:
        raise needs_pyarrow(out)


# UUIDs of versions 1, 4, 6 and 7. Those of versions 3 and 5 are made from a name, so they stay the same.
# Anything but a hexadecimal digit may stand before and after one, as in `doc-<UUID>` or `<UUID>_0`.
RANDOM = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-?[0-9a-f]{4}-?[1467][0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}(?![0-9a-f])",
    re.IGNORECASE,
)


class _EarlierRow(Struct, frozen=True, kw_only=True):
    query_id: Any = None
    results: Any = None


class OddIds:
    """Looks for ids that no golden query can name, while rows are written: random ones, and those of something else."""

    def __init__(self, out: AnchoredPath | None, wanted: Collection[str] = ()) -> None:
        """Read the beginning of the run that is to be overwritten, if there is one.

        ``wanted`` are the documents that golden queries name.
        """
        self._wanted = frozenset(wanted)
        self._are_documents = False  # whether any document that is wanted is there
        self._chunks: dict[str, str] = {}  # those that are the id of a chunk, with the document of the chunk
        self._before: dict[str, frozenset[str]] = {}
        self._differs: str | None = None
        self._is_stable = False
        with suppress(RagContractError, OSError):  # the file there may not be a run
            for row in _earlier(out):
                self._compare(row.query_id, row.results)

    def passing(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield rows unchanged, and compare their ids."""
        for row in rows:
            self._compare(row["query_id"], row.get("results"))
            if self._wanted and not self._are_documents:
                self._look_for_chunks(row.get("results"))
            yield row

    def warnings(self) -> Iterator[str]:
        """Yield a warning if golden queries name chunks, or if ids differ from earlier ones and none is the same."""
        if self._chunks and not self._are_documents:
            chunk_id, doc_id = (shorten(value, bounds.NAME) for value in next(iter(self._chunks.items())))
            which = f"the golden queries name ids of chunks ({chunk_id!r}), and the recorded doc_id is {doc_id!r}"
            how = "return these as doc_id (`--doc-id chunk_id` if a framework makes the results)"
            yield f"{which}; {how}, or name documents"
        if self._differs is not None and not self._is_stable:
            query = shorten(self._differs, bounds.NAME)
            what = f"ids of documents look like random UUIDs, and differ from those of before (as for query {query!r})"
            yield f"{what}; no golden query can name them, so say with --doc-id where a result names its document"

    def _look_for_chunks(self, results: object) -> None:
        for result in results if isinstance(results, list) else ():
            doc_id, chunk_id = str(result.get("doc_id")), result.get("chunk_id")
            self._are_documents |= doc_id in self._wanted
            if chunk_id in self._wanted and len(self._chunks) < bounds.NAMES:
                self._chunks[chunk_id] = doc_id

    def _compare(self, query_id: object, results: object) -> None:
        ids = frozenset(_random(results))
        if not ids or not isinstance(query_id, str | int):
            return
        known_as = as_id(query_id)
        before = self._before.get(known_as)
        if before is not None:
            self._is_stable |= not ids.isdisjoint(before)
            self._differs = self._differs or known_as
        elif len(self._before) < bounds.COMPARED_QUESTIONS:
            self._before[known_as] = ids


def _earlier(out: AnchoredPath | None) -> Iterator[_EarlierRow]:
    if out is not None and Path(out).is_file():
        rows = located(read_rows([str(Path(out))], _EarlierRow, spell_check=0), Collector())
        yield from (row for _, row in islice(rows, bounds.COMPARED_QUESTIONS))


def _random(results: object) -> Iterator[str]:
    for result in results if isinstance(results, list) else ():
        doc_id = result.get("doc_id") if isinstance(result, Mapping) else result
        if isinstance(doc_id, str) and RANDOM.search(doc_id):
            yield doc_id
