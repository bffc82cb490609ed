"""Encodes a row of a run as a line of JSON, and validates it as the reader would."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.run import RunRow, row_type
from ragcontract.core.text import shorten
from ragcontract.files.schema import dotted, mismatches, shown

Id = str | int
Result = Id | Mapping[str, Any]


class RowEncoder:
    """Encodes the rows of a run, and refuses rows that the reader would refuse."""

    def __init__(self, name: str, versions: Mapping[str, Id | None], decode_as: type[RunRow] | None = None) -> None:
        """Store the name of the run, for messages, and the versions to add to every row (None for none)."""
        self._name = name
        self._versions = {key: value for key, value in versions.items() if value is not None}
        self._decode = msgspec.json.Decoder(decode_as or row_type()).decode
        self._encode = msgspec.json.Encoder(enc_hook=_plain).encode
        self._encoded({"query_id": "any", "results": []}, name)

    def location(self, query_id: object) -> str:
        """Return the prefix of messages about a row."""
        return f"{self._name}: query {shown(query_id) if isinstance(query_id, str | int) else repr(query_id)}"

    def row(self, query_id: Id, results: Iterable[Result], latency_ms: float | None = None) -> tuple[bytes, RunRow]:
        """Return the encoded line and the decoded row; raises :class:`InputError` if the reader would refuse it."""
        location = self.location(query_id)
        if isinstance(results, str | bytes | Mapping) or not isinstance(results, Iterable):
            found = shorten(repr(results), bounds.VALUE)
            raise InputError([f"{location}: results: expected a list of document ids or results, found {found}"])
        listed = [dict(result) if isinstance(result, Mapping) else {"doc_id": result} for result in results]
        row: dict[str, Any] = {"query_id": query_id, "results": listed}
        numbers: dict[str, Any] = {
            f"results[{index}].score": result.get("score") for index, result in enumerate(listed)
        }
        if latency_ms is not None:
            row["latency_ms"] = numbers["latency_ms"] = latency_ms
        encoded = self._encoded(row, location)
        for name, number in numbers.items():
            if number is not None and not math.isfinite(number):  # would be written as null
                raise InputError([f"{location}: {name}: expected a number, found {number}"])
        return encoded

    def _encoded(self, row: dict[str, Any], location: str) -> tuple[bytes, RunRow]:
        line = b""
        if packed := [
            name for name, value in _ids(row | self._versions) if isinstance(value, bytes | bytearray | memoryview)
        ]:
            problems = [f"{location}: {name}: is bytes, which is not an id; decode it first" for name in packed]
            raise InputError(problems)
        try:
            line = self._encode(row | self._versions) + b"\n"
            decoded = self._decode(line)
        except msgspec.ValidationError as error:
            found = mismatches(msgspec.json.decode(line), row_type())
            problems = [f"{location}: {dotted(mismatch.path)}: {mismatch.message}" for mismatch in found]
            raise InputError(problems or [f"{location}: {error}"]) from error
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError([f"{location}: cannot be written as JSON ({error})"]) from error
        if len(line) > bounds.LINE:
            raise InputError([f"{location}: the row is longer than {mebibytes(bounds.LINE)}"])
        return line, decoded


def _ids(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of possible ids; msgspec would encode bytes as base64, which is a different id."""
    for name, value in row.items():
        if name != "results":
            yield name, value
    for index, result in enumerate(row["results"]):
        for name, value in result.items():
            yield f"results[{index}].{name}", value


def _plain(value: Any) -> Any:
    """Convert scalars of numpy and torch to Python values."""
    item = getattr(value, "item", None)
    if callable(item):
        value = item()
        if not isinstance(value, bytes):
            return value
    raise TypeError(f"a value of type {type(value).__name__} is not a JSON value")
