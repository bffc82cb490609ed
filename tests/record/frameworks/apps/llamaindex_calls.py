"""Agents of LlamaIndex whose models say something before they ask for a tool."""

from collections.abc import AsyncGenerator
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool


class Script(FunctionCallingLLM):
    """A model that says one text after the other; with the first, it asks for a tool."""

    said: list[str]
    reason: str
    asks: bool
    times: list[int] = []  # noqa: RUF012 (pydantic copies it)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    complete = stream_complete = stream_chat = acomplete = astream_complete = astream_chat = achat = chat

    def _prepare_chat_with_tools(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}

    async def astream_chat_with_tools(self, *_: Any, **__: Any) -> Any:
        self.times.append(1)
        raw = {"choices": [{"finish_reason": self.reason, "delta": {}}]}
        message = ChatMessage(role="assistant", content=self.said[len(self.times) - 1])

        async def streamed() -> AsyncGenerator[ChatResponse, None]:
            yield ChatResponse(message=message, raw=raw)

        return streamed()

    def get_tool_calls_from_response(self, *_: Any, **__: Any) -> list[ToolSelection]:
        asked = ToolSelection(tool_id="c1", tool_name="refund", tool_kwargs={"order": 7})
        return [asked] if self.asks and len(self.times) == 1 else []


def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


def agent(*said: str, reason: str = "stop", direct: bool = False) -> FunctionAgent:
    """Return an agent that says these texts; it calls a tool if there are several, or if the tool answers."""
    tool = FunctionTool.from_defaults(refund, return_direct=direct)
    return FunctionAgent(tools=[tool], llm=Script(said=list(said), reason=reason, asks=direct or len(said) > 1))
