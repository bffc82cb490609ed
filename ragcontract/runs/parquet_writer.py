"""Writes the lines of a run as rows of a Parquet file."""

import io
from collections.abc import Iterable
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ragcontract.core.ids import as_id
from ragcontract.core.run import VERSION_FIELDS

RESULTS = 500_000  # maximum number of results, plus rows, in a row group; they are held in memory until it is written


class ParquetStream:
    """A stream that takes lines of JSON and writes them to a file as Parquet.

    All ids are written as text, and ``metadata`` as JSON text. A row group is written when it has ``full`` results and
    rows, and the footer on ``close``, which does not close the file itself. To start writing may raise OSError.
    """

    def __init__(self, file: IO[bytes], *, full: int = RESULTS) -> None:
        self._schema = _schema()
        self._rows: list[dict[str, Any]] = []
        self._held = 0
        self._full = full
        self._writer = pq.ParquetWriter(file, self._schema)

    def write(self, line: bytes) -> None:
        """Add a row; raises OSError."""
        row = msgspec.json.decode(line)
        for name in ("query_id", *VERSION_FIELDS):
            _to_text(row, name)
        for result in row["results"]:
            _to_text(result, "doc_id")
            _to_text(result, "chunk_id")
            if result.get("metadata") is not None:
                result["metadata"] = msgspec.json.encode(result["metadata"]).decode()
        self._rows.append(row)
        self._held += 1 + len(row["results"])
        if self._held >= self._full:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and the footer; raises OSError."""
        if self._writer.is_open:
            try:
                self._flush()
            finally:
                self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._held = [], 0


def as_parquet(lines: Iterable[str]) -> bytes:
    """Return the lines of a run as the content of a Parquet file."""
    file = io.BytesIO()
    stream = ParquetStream(file)
    for line in lines:
        stream.write(line.encode())
    stream.close()
    return file.getvalue()


def _to_text(values: dict[str, Any], name: str) -> None:
    if values.get(name) is not None:
        values[name] = as_id(values[name])


def _schema() -> pa.Schema:
    result = {"doc_id": pa.string(), "score": pa.float64(), "chunk_id": pa.string(), "metadata": pa.string()}
    return pa.schema(
        {
            "query_id": pa.string(),
            "results": pa.list_(pa.struct(result)),
            "latency_ms": pa.float64(),
            **dict.fromkeys(VERSION_FIELDS, pa.string()),
        }
    )
