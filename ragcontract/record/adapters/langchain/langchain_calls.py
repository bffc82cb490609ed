"""Notes what a LangChain application does on the way to its answer: retrievals, tool calls, tokens.

LangChain reports every step to callbacks with an id and the id of the step that it is part of. A retriever that asks
others, as an ensemble does, is one retrieval: what counts is what the outermost returned.
"""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from msgspec import Struct, field

Step = Any  # a UUID


class Called(Struct):
    """A step that was begun; ``returned`` is None if it failed, or has not ended."""

    step: Step
    returned: Sequence[Any] | None = None
    name: str = ""
    arguments: Mapping[str, Any] = {}


class Noted(Struct):
    """What was noted while one question was answered."""

    parents: dict[Step, Step | None] = field(default_factory=dict)
    retrievals: list[Called] = field(default_factory=list)
    tools: list[Called] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    llm_model: str | None = None

    def found(self) -> list[Sequence[Any]]:
        """Return the documents of each retrieval that ended, in the order in which they were begun."""
        return [one.returned for one in self._outermost(self.retrievals) if one.returned is not None]

    def tool_calls(self) -> list[dict[str, Any]]:
        """Return the tools that were called; one that another tool calls is not the application's own call."""
        return [{"name": one.name, "arguments": dict(one.arguments)} for one in self._outermost(self.tools)]

    def _outermost(self, calls: list[Called]) -> list[Called]:
        steps = {call.step for call in calls}
        return [call for call in calls if steps.isdisjoint(self._above(call.step))]

    def _above(self, step: Step) -> list[Step]:
        above: list[Step] = []
        parent = self.parents.get(step)
        while parent is not None and parent not in above:
            above.append(parent)
            parent = self.parents.get(parent)
        return above


class Listening:
    """What LangChain calls; it logs and swallows what a handler raises."""

    run_inline = True  # with ainvoke, too, in the order in which things happen

    def __init__(self, noted: Noted) -> None:
        """Store where to note what happens."""
        super().__init__()
        self._noted = noted
        self._lock = Lock()  # steps that run side by side call back from several threads

    def on_chain_start(self, *_: Any, run_id: Step, parent_run_id: Step = None, **__: Any) -> None:
        """Note which step this one is part of."""
        self._noted.parents[run_id] = parent_run_id

    on_chat_model_start = on_chain_start

    def on_retriever_start(self, *_: Any, run_id: Step, parent_run_id: Step = None, **__: Any) -> None:
        """Note that a retriever was asked."""
        self._noted.parents[run_id] = parent_run_id
        self._noted.retrievals.append(Called(step=run_id))

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: Step, **_: Any) -> None:
        """Note what it returned."""
        for call in self._noted.retrievals:
            if call.step == run_id:
                call.returned = list(documents)

    def on_tool_start(
        self,
        serialized: Mapping[str, Any] | None,
        input_str: str,
        *,
        run_id: Step,
        parent_run_id: Step = None,
        inputs: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Note that a tool was called, and with what."""
        self._noted.parents[run_id] = parent_run_id
        name = (serialized or {}).get("name") or more.get("name") or "unknown"
        arguments = inputs if isinstance(inputs, Mapping) else {"input": input_str}
        self._noted.tools.append(Called(step=run_id, name=str(name), arguments=arguments))

    def on_llm_end(self, response: Any, **_: Any) -> None:
        """Add up the tokens, and note which model it was."""
        message = getattr(response.generations[0][0], "message", None)
        usage = self._noted.usage
        with self._lock:
            for name, count in (getattr(message, "usage_metadata", None) or {}).items():
                if isinstance(count, int):
                    usage[name] = usage.get(name, 0) + count
            said = getattr(message, "response_metadata", None) or {}
            model = said.get("model_name") or said.get("model")
            self._noted.llm_model = model if isinstance(model, str) else self._noted.llm_model


def listener(noted: Noted) -> Any:
    """Return a callback handler of LangChain's that notes what happens. One belongs to one question."""
    from langchain_core.callbacks import BaseCallbackHandler

    return type("Listener", (Listening, BaseCallbackHandler), {})(noted)
