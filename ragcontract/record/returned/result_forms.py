"""Turn what a system retrieved into results of a run.

This includes the forms of items, their document ids, and which of several retrievals counts. Frameworks leave it to
their users where a result names its document. Objects of LangChain, LlamaIndex and Chroma are recognised by their
attributes, so that no framework is imported for it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.returned_messages import fields_of, plain

# In this order: names that people choose, then those of loaders of LlamaIndex and LangChain.
USUAL = ("doc_id", "source_uri", "source", "path", "file", "file_name", "filename", "url")


class DocumentIds:
    """Finds the document id of a result."""

    def __init__(self, expression: str | None) -> None:
        """Use a JMESPath expression over id, chunk_id, metadata and text; raises InputError if it cannot be compiled.

        Without an expression, the document id is the first of the metadata's ``doc_id``, ``source_uri``, ``source``,
        ``path``, ``file``, ``file_name``, ``filename`` and ``url`` that can be an id, and otherwise the result's own
        id.
        """
        self._expression = expression
        self._search = None if expression is None else _compiled(expression)

    def of(
        self, *, own: str | None, metadata: Mapping[str, Any], text: str | None = None, chunk_id: str | None = None
    ) -> str:
        """Return the document id of a result; raises CallFailed if there is none.

        ``own`` is the result's own id. Of a node, that is its document's, and ``chunk_id`` its own.
        """
        if self._search is None:
            doc_id = next((metadata[name] for name in USUAL if _is_id(metadata.get(name))), own)
        else:
            try:
                doc_id = self._search(
                    {"id": own, "chunk_id": chunk_id or own, "metadata": dict(metadata), "text": text}
                )
            except ValueError:  # a function in the expression got a value of another type, such as null
                doc_id = None
        if not _is_id(doc_id):
            names = ", ".join(sorted(map(str, metadata))[:20]) or "none"
            looked = self._expression or "metadata." + ", metadata.".join(USUAL) + ", id"
            message = f"a result names no document under {looked} (its metadata has: {names}); say where with --doc-id"
            raise CallFailed("no_doc_id", shorten(message, 500))
        return str(doc_id)


NAMES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)  # such as metadata.source
PAIR = 2
BOOLEANS = {"True", "False"}  # also numpy's
EXAMPLE = 'return document ids, best first, as in `return ["doc_a", "doc_b"]`, or `{"results": […], "response": "…"}`'


def results_of(value: object, ids: DocumentIds) -> list[dict[str, Any]]:
    """Return the results of a run row for a list of retrieved items, best first.

    Raises InputError if an item has none of the known forms, CallFailed if it names no document.
    """
    if isinstance(value, str | bytes | Mapping | set | frozenset) or not isinstance(value, Iterable):
        raise refused(value, "where a list of results was expected, best first")
    return [_result(item, ids) for item in listed(value)]


def chroma_results(value: Mapping[str, Any], ids: DocumentIds) -> list[dict[str, Any]]:
    """Return the results of a query of Chroma, in ascending order of distance; scores are 1 - distance.

    Raises InputError if the query had several questions.
    """
    if len(value["ids"]) != 1:
        raise refused(value, f"with the results of {len(value['ids'])} questions, not of one")

    def column(name: str) -> Sequence[Any]:
        lists = value.get(name)
        return lists[0] if lists and lists[0] is not None else [None] * len(value["ids"][0])

    rows = zip(value["ids"][0], column("documents"), column("metadatas"), column("distances"), strict=True)
    return [
        _result_of(
            own=own, text=text, metadata=metadata, score=None if distance is None else 1 - float(distance), ids=ids
        )
        for own, text, metadata, distance in rows
    ]


def is_document(value: object) -> bool:
    """Return whether a value is a document of LangChain."""
    return hasattr(value, "page_content") and hasattr(value, "metadata")


def is_node(value: object) -> bool:
    """Return whether a value is a node with a score, of LlamaIndex."""
    return hasattr(value, "node") and hasattr(value, "score")


def is_query_result(value: object) -> bool:
    """Return whether a value is the answer of a Chroma collection: a list of lists for each field."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("ids"), list)
        and all(isinstance(inner, list) for inner in value["ids"])
        and any(name in value for name in ("distances", "documents", "metadatas"))
    )


def listed(value: Iterable[Any]) -> list[Any]:
    """Return the items of an iterable, such as a generator; raises InputError if there are too many."""
    items = list(islice(value, bounds.RETURNED + 1))
    if len(items) > bounds.RETURNED:
        raise refused(value, f"with more than {bounds.RETURNED:,} items")
    return items


def refused(value: object, why: str = "") -> InputError:
    """Return the error for a value that a system must not return; ``why`` completes "returned a value …"."""
    if value is None and not why:
        return InputError([f"the target returned nothing (None), as a function without `return` does; {EXAMPLE}"])
    name = type(value).__qualname__
    shown = shorten(visible(repr(value)), bounds.RETURNED_SHOWN)
    problem = why or "that says neither what was retrieved nor what was answered"
    return InputError([f"the target returned a value of type {name} {problem}: {shown}; {EXAMPLE}"])


T = TypeVar("T")
Retrieved = Literal["first", "last", "concat"]


def that_counts(retrievals: Sequence[Sequence[T]], retrieved: Retrieved | None) -> Sequence[T]:
    """Return the items of the first or last retrieval, or of all together; there must be a retrieval."""
    if retrieved == "concat":
        return [item for items in retrievals for item in items]
    return retrievals[-1 if retrieved == "last" else 0]


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _compiled(expression: str) -> Callable[[Any], Any]:
    if NAMES.fullmatch(expression):  # as most are; it means the same in JMESPath
        return partial(_looked_up, expression.split("."))
    try:
        import jmespath  # an extra, which plain functions do not need
    except ModuleNotFoundError as error:
        raise InputError(["doc_id: an expression needs jmespath: pip install 'rag-contract[record]'"]) from error
    try:
        search: Callable[[Any], Any] = jmespath.compile(expression).search
    except jmespath.exceptions.JMESPathError as error:
        raise InputError([f"doc_id: is not a JMESPath expression: {expression!r} ({error})"]) from error
    return search


def _looked_up(names: Sequence[str], value: Any) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _result(item: Any, ids: DocumentIds) -> dict[str, Any]:
    if isinstance(item, str):
        return {"doc_id": str(item)}  # not a subclass, as numpy's
    if isinstance(item, Integral):
        if str(item) in BOOLEANS:
            raise refused(item, "among its results, which is not an id")
        return {"doc_id": int(item)}
    if isinstance(item, tuple | list) and not hasattr(item, "_fields"):
        if len(item) != PAIR or not isinstance(item[1], Real) or isinstance(item[0], tuple | list):
            raise refused(item, "among its results, of which a list or tuple must be a result and its score")
        return {**_result(item[0], ids), "score": float(item[1])}
    if is_node(item):
        node = item.node
        own = getattr(node, "ref_doc_id", None) or getattr(node, "node_id", None)
        text = node.get_content() if hasattr(node, "get_content") else getattr(node, "text", None)
        metadata, chunk_id = getattr(node, "metadata", None), getattr(node, "node_id", None)
        result = _result_of(own=own, text=text, metadata=metadata, score=item.score, ids=ids, chunk_id=chunk_id)
        return {**result, "chunk_id": chunk_id}
    if is_document(item):
        own = getattr(item, "id", None)
        return _result_of(own=own, text=item.page_content, metadata=item.metadata, score=None, ids=ids)
    fields = fields_of(item)
    if fields is None:
        raise refused(item, "among its results, which is neither an id nor something with a `doc_id`")
    return _of_fields(item, fields, ids)


def _of_fields(item: object, fields: Mapping[str, Any], ids: DocumentIds) -> dict[str, Any]:
    made = {name: plain(value) for name, value in fields.items() if value is not None}
    if "doc_id" in made:
        return made
    metadata = made.get("metadata")
    if "id" not in made and not isinstance(metadata, dict):
        raise refused(item, "among its results, which has no `doc_id`")
    own = made.pop("id", None)
    made["doc_id"] = ids.of(own=own, metadata=metadata or {}, text=made.get("text"), chunk_id=made.get("chunk_id"))
    return {"chunk_id": own, **made} if own is not None else made


def _result_of(
    *, own: Any, text: Any, metadata: Any, score: Any, ids: DocumentIds, chunk_id: Any = None
) -> dict[str, Any]:
    fields = plain(metadata or {})
    made = {
        "doc_id": ids.of(own=own, metadata=fields, text=text, chunk_id=chunk_id),
        "chunk_id": own,
        "score": None if score is None else float(score),
        "text": text,
        "metadata": fields or None,
    }
    return {name: value for name, value in made.items() if value is not None}
