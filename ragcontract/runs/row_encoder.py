"""Encodes a row of a run as a line of JSON, and validates it as the reader would."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

import msgspec
from msgspec import UNSET, UnsetType

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import mebibytes
from ragcontract.core.run import VERSION_FIELDS, RunRow
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import has_more_text
from ragcontract.files.schema import dotted, mismatches, shown

Id = str | int
Result = Id | Mapping[str, Any]
BYTES = (bytes, bytearray, memoryview)
SETS = (set, frozenset)
UNFIT = (*BYTES, *SETS)  # refused, although msgspec would encode bytes as base64, and a set in any order
TOO_LONG = f"the row is longer than {mebibytes(bounds.LINE)}"


class Further(TypedDict, total=False):
    """The fields of a row beside its results: what the application answered, and what is known of the answer.

    A ``response`` of None means that there was no answer. For other fields, None leaves the field out.
    """

    query: str | None
    response: str | None
    error: str | None
    error_detail: Mapping[str, Any] | None
    context_chars: int | None
    retrieved_contexts: Sequence[str] | None
    tool_calls: Sequence[Mapping[str, Any]] | None
    messages: Sequence[Mapping[str, Any]] | None
    mode: str | None
    label: str | None
    refusal: str | None
    finish_reason: str | None
    scores: Mapping[str, float | None] | None
    checks: Mapping[str, bool | Mapping[str, Any]] | None


FURTHER = (*Further.__annotations__, *VERSION_FIELDS)


class RowEncoder:
    """Encodes the rows of a run, and refuses rows that the reader would refuse.

    ``name`` is that of the run, for messages. The ``versions``, except None, are added to every row.
    """

    def __init__(self, name: str, versions: Mapping[str, Id | None], decode_as: type[RunRow] | None = None) -> None:
        self._name = name
        self._versions = {key: value for key, value in versions.items() if value is not None}
        self._type = decode_as or RunRow
        self._decode = msgspec.json.Decoder(self._type).decode
        self._encode = msgspec.json.Encoder(enc_hook=_plain).encode
        self._encoded({"query_id": "any", "results": []}, name)

    def location(self, query_id: object) -> str:
        return f"{self._name}: query {shown(query_id) if isinstance(query_id, str | int) else repr(query_id)}"

    def row(
        self,
        query_id: Id,
        results: Iterable[Result] | UnsetType,
        latency_ms: float | None = None,
        further: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, RunRow]:
        """Return the encoded line and the decoded row; raises :class:`InputError` if the reader would refuse it.

        Results may be unset for a query that names no documents, if there are ``further`` fields.
        """
        location = self.location(query_id)
        row: dict[str, Any] = {"query_id": query_id}
        if not isinstance(results, UnsetType) or not further:
            row["results"] = _listed(results, location)
        if has_more_text([row, further], bounds.LINE):
            raise InputError([f"{location}: {TOO_LONG}"])
        numbers: dict[str, Any] = {
            f"results[{index}].score": result.get("score") for index, result in enumerate(row.get("results", ()))
        }
        if latency_ms is not None:
            row["latency_ms"] = numbers["latency_ms"] = latency_ms
        for name, value in (further or {}).items():
            if name not in FURTHER:
                near = nearest(name, FURTHER) or RunRow.other_names.get(name, ("",))[0]
                raise InputError([f"{location}: {name}: unknown field" + (f"; did you mean {near!r}?" if near else "")])
            if value is not None or name == "response":
                row[name] = value
                numbers |= {at: leaf for at, leaf in _leaves(name, value) if isinstance(leaf, float)}
        encoded = self._encoded(row, location)
        for name, number in numbers.items():
            if number is not None and not math.isfinite(number):  # would be written as null
                raise InputError([f"{location}: {name}: expected a number, found {number}"])
        return encoded

    def _encoded(self, row: dict[str, Any], location: str) -> tuple[bytes, RunRow]:
        line = b""
        if unfit := [(name, value) for name, value in _texts(row | self._versions) if isinstance(value, UNFIT)]:
            raise InputError([f"{location}: {name}: {_unfit(value)}" for name, value in unfit])
        try:
            line = self._encode(row | self._versions) + b"\n"
            decoded = self._decode(line)
        except msgspec.ValidationError as error:
            reasons = mismatches(msgspec.json.decode(line), self._type)
            problems = [f"{location}: {dotted(mismatch.path)}: {mismatch.message}" for mismatch in reasons]
            raise InputError(problems or [f"{location}: {error}"]) from error
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError([f"{location}: cannot be written as JSON ({error})"]) from error
        if len(line) > bounds.LINE:
            raise InputError([f"{location}: {TOO_LONG}"])
        return line, decoded


def _unfit(value: object) -> str:
    if isinstance(value, BYTES):
        return "is bytes, which is neither an id nor text; decode it first"
    return "is a set, which has no order of its own; give a list"


def _listed(results: object, location: str) -> list[dict[str, Any]]:
    if isinstance(results, SETS):
        raise InputError([f"{location}: results: {_unfit(results)}, the best result first"])
    if isinstance(results, str | bytes | Mapping) or not isinstance(results, Iterable):
        shown_results = "nothing" if results is UNSET else shorten(repr(results), bounds.VALUE)
        raise InputError([f"{location}: results: expected a list of document ids or results, found {shown_results}"])
    return [dict(result) if isinstance(result, Mapping) else {"doc_id": result} for result in results]


def _texts(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of possible texts."""
    for name, value in row.items():
        if name != "results":
            yield from _leaves(name, value)
    for index, result in enumerate(row.get("results", ())):
        for name, value in result.items():
            yield f"results[{index}].{name}", value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values within lists and mappings, with their paths; the value itself if it is neither."""
    stack = [(name, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, Mapping):
            stack += [(f"{at}.{key}", inner) for key, inner in item.items()]
        elif isinstance(item, list | tuple):
            stack += [(f"{at}[{index}]", inner) for index, inner in enumerate(item)]
        else:
            yield at, item


def _plain(value: Any) -> Any:
    """Convert scalars of numpy and torch to Python values."""
    item = getattr(value, "item", None)
    if callable(item):
        value = item()
        if not isinstance(value, bytes):
            return value
    raise TypeError(f"a value of type {type(value).__name__} is not a JSON value")
