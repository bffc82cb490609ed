"""Which document a retrieved text comes from, where a framework leaves that to its users."""

from collections.abc import Callable, Mapping
from typing import Any

from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten
from ragcontract.record.interface import CallFailed

# In this order: names that people give, then those that loaders of LlamaIndex and LangChain give.
USUAL = ("doc_id", "source_uri", "source", "path", "file", "file_name", "filename", "url")


class DocumentIds:
    """Finds the id of a document from what a framework says about a result."""

    def __init__(self, expression: str | None) -> None:
        """Use a JMESPath expression over ``id``, ``metadata`` and ``text``; raises InputError if it is none.

        Without one, the document is the first of the metadata's ``doc_id``, ``source_uri``, ``source``, ``path``,
        ``file``, ``file_name``, ``filename`` and ``url`` that can be an id, and otherwise the result's own id.
        """
        self._expression = expression
        self._search = None if expression is None else _compiled(expression)

    def of(self, *, own: str | None, metadata: Mapping[str, Any], text: str | None = None) -> str:
        """Return the id of a result's document; raises CallFailed if there is none. ``own`` is the result's id."""
        if self._search is None:
            found = next((metadata[name] for name in USUAL if _is_id(metadata.get(name))), own)
        else:
            try:
                found = self._search({"id": own, "metadata": dict(metadata), "text": text})
            except ValueError:  # a function of the expression that got a value of another type, such as null
                found = None
        if not _is_id(found):
            names = ", ".join(sorted(map(str, metadata))[:20]) or "none"
            looked = self._expression or "metadata." + ", metadata.".join(USUAL) + ", id"
            message = f"a result names no document under {looked} (its metadata has: {names}); say where with --doc-id"
            raise CallFailed("no_doc_id", shorten(message, 500))
        return str(found)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _compiled(expression: str) -> Callable[[Any], Any]:
    try:
        import jmespath  # an extra, which plain functions do not need
    except ModuleNotFoundError as error:
        raise InputError(["doc_id: an expression needs jmespath: pip install 'rag-contract[record]'"]) from error
    try:
        search: Callable[[Any], Any] = jmespath.compile(expression).search
    except jmespath.exceptions.JMESPathError as error:
        raise InputError([f"doc_id: is not a JMESPath expression: {expression!r} ({error})"]) from error
    return search
