"""Sends what a LangChain application is asked to the team service.

client = InteractionClient("https://rag.example.com", "docs", os.environ["RAG_CONTRACT_TOKEN"])
handler = SendInteractions(client)
chain.invoke(question, {"callbacks": [handler], "metadata": {"user": user_id}})
"""

import time
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from ragcontract.interaction_client import InteractionClient

QUESTION = ("question", "query", "input", "messages")  # where chains have it
ANSWER = ("answer", "response", "output", "result", "messages")


class SendInteractions(BaseCallbackHandler):
    """Sends an interaction for each outermost call: its question, answer or error, documents and time."""

    def __init__(self, client: InteractionClient) -> None:
        self._client = client
        self._calls: dict[UUID, dict[str, Any]] = {}  # by their runs and all runs within them

    def on_chain_start(
        self, _serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Begin an interaction, or note what this step is part of."""
        if parent_run_id is None:
            user = (more.get("metadata") or {}).get("user")
            fields = (
                {"query": text_of(inputs, QUESTION), "user": user} if user else {"query": text_of(inputs, QUESTION)}
            )
            self._calls[run_id] = {"fields": fields, "begin": time.perf_counter(), "runs": [run_id]}
        elif call := self._calls.get(parent_run_id):
            call["runs"].append(run_id)
            self._calls[run_id] = call

    def on_retriever_end(self, documents: list[Document], *, parent_run_id: UUID | None = None, **_more: Any) -> None:
        """Keep what the last retriever has found."""
        if parent_run_id and (call := self._calls.get(parent_run_id)):
            ids = [document.metadata.get("source") or document.id for document in documents]
            call["fields"]["results"] = [{"doc_id": str(each)} for each in ids if each]

    def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_more: Any) -> None:
        """Send the interaction with its answer."""
        self._end(run_id, parent_run_id, response=text_of(outputs, ANSWER))

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_more: Any
    ) -> None:
        """Send the interaction with its error."""
        self._end(run_id, parent_run_id, error=f"{type(error).__name__}: {error}")

    def _end(self, run_id: UUID, parent_run_id: UUID | None, **fields: str) -> None:
        if parent_run_id is None and (call := self._calls.get(run_id)):
            for run in call["runs"]:
                self._calls.pop(run, None)
            milliseconds = (time.perf_counter() - call["begin"]) * 1_000
            self._client.send(**call["fields"], **fields, latency_ms=round(milliseconds, 1))


def text_of(value: Any, names: tuple[str, ...]) -> str:
    """Return the text of what goes into a chain or comes out: itself, a field, or the last message."""
    if isinstance(value, dict):
        value = next((value[name] for name in names if name in value), value)
    if isinstance(value, list) and value:
        value = value[-1]
    content = getattr(value, "content", value)
    return content if isinstance(content, str) else str(content)
