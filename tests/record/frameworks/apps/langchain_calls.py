"""Applications with LangChain whose models ask for a tool that is not in what the application returns."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

ASKING = AIMessage("", tool_calls=[{"name": "refund", "args": {"order": 7}, "id": "c1"}])
DONE = AIMessage("fine")


class Script(BaseChatModel):
    """A model that says one message after the other."""

    said: Sequence[Any] = (ASKING, DONE)
    times: list[int] = []  # noqa: RUF012 (pydantic copies it)

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **options: Any) -> Any:  # noqa: ARG002
        return self.bind(**{name: value for name, value in options.items() if name.startswith("ls_")})

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        message = self.said[len(self.times) % len(self.said)]
        self.times.append(1)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


@tool
def erase(order: int) -> str:
    """Erase an order."""
    return f"erased {order}"


def _loop(*, runs: bool) -> Any:
    model = Script()

    def answer(query: str) -> str:
        for call in model.invoke(query).tool_calls:
            if runs:
                refund.invoke(call["args"])
        return str(model.invoke(query).content)

    return RunnableLambda(answer)


def _graph(node: Any, state: Any = MessagesState, **schemas: Any) -> Any:
    made = StateGraph(state, **schemas)
    made.add_node("node", node)
    made.add_edge(START, "node")
    made.add_edge("node", END)
    return made.compile()


def _messages(*, trims: bool = False, criticises: bool = False, erases: bool = False) -> Any:
    model = Script()

    def node(state: MessagesState) -> Any:
        asking, done = model.invoke(state["messages"]), model.invoke("?")
        if erases:
            erase.invoke({"order": 7})
        if trims:
            return {"messages": [*(RemoveMessage(id=str(one.id)) for one in state["messages"]), done]}
        critique = [HumanMessage("Is that so?")] if criticises else []
        return {"messages": [asking, ToolMessage("refunded 7", tool_call_id="c1"), *critique, done]}

    return _graph(node)


class State(MessagesState):
    """A state with an answer of its own."""

    answer: str
    steps: list[str]


class Answer(BaseModel):
    """What an application shows of its state."""

    answer: str


def _answering(**schemas: Any) -> Any:
    model = Script()

    def node(state: State) -> Any:
        model.invoke(state["messages"])
        return {"answer": model.invoke("?").content, "steps": ["asked", "done"]}

    return _graph(node, State, **schemas)


class Grade(BaseModel):
    """Whether what was found fits."""

    fits: bool


def _graded() -> Any:
    asked = {"name": "Grade", "args": {"fits": True}, "id": "c1"}
    grader = Script(said=(AIMessage("", tool_calls=[asked]),)).with_structured_output(Grade)
    return RunnableLambda(lambda query: "fine" if grader.invoke(query).fits else "not")


def saying(message: AIMessage) -> Runnable[Any, Any]:
    """Return a chain that ends in the text of a message."""
    return Script(said=(message,)) | StrOutputParser()


APPS: dict[str, Runnable[Any, Any]] = {
    "a chain that ends in a text": saying(ASKING),
    "a loop that runs the tool": _loop(runs=True),
    "a loop that runs something else": _loop(runs=False),
    "trimmed messages": _messages(trims=True),
    "a critique": _messages(criticises=True),
    "another tool that a node runs": _messages(erases=True),
    "a state": _answering(),
}
graded = _graded()
plain = RunnableLambda(lambda _: "fine")
