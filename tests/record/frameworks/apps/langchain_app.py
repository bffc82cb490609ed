"""Applications with LangChain: retrievers, chains and agents over a vector store, with models that make no calls."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from tests.recipes.apps.toy_corpus import CHUNKS, embed


class ToyEmbeddings(Embeddings):
    """LangChain's interface to the toy embedding."""

    model_name = "toy-embedding-1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return list(embed(text))


store = InMemoryVectorStore(ToyEmbeddings())
store.add_documents([Document(page_content=text, metadata={"source": source}) for source, text in CHUNKS])
retriever = store.as_retriever(search_kwargs={"k": 4})


class Both(BaseRetriever):
    """A retriever that asks two others, as an ensemble does."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        return [*retriever.invoke(query, config), *narrow.invoke(query, config)][:5]


narrow = store.as_retriever(search_kwargs={"k": 1})
both = Both()


class ToyModel(BaseChatModel):
    """A model that calls the tools it is told to, all at once, and then answers with the last thing that was said."""

    calls: list[Any] = []  # noqa: RUF012 (pydantic copies it)

    @property
    def _llm_type(self) -> str:
        return "toy"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        usage = {"input_tokens": len(messages), "output_tokens": 1, "total_tokens": len(messages) + 1}
        common: dict[str, Any] = {"usage_metadata": usage, "response_metadata": {"model_name": "toy-1"}}
        if self.calls and messages[-1].type == "human":
            query = str(messages[-1].content)
            calls = [
                {"name": name, "args": {key: query if value is None else value for key, value in args.items()}}
                for name, args in self.calls
            ]
            asked = [call | {"id": f"call-{number}"} for number, call in enumerate(calls)]
            message = AIMessage(content="", tool_calls=asked, **common)
        else:
            said = [str(one.content) for one in messages if one.type in {"human", "tool"}]
            message = AIMessage(content=f"{len(messages)} messages: {said[-1]}", **common)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _joined(documents: list[Document]) -> str:
    return " ".join(document.page_content for document in documents)


_prompt = ChatPromptTemplate.from_template("{context} {question}")
# The usual chain, which returns the answer only.
chain = {"context": retriever | _joined, "question": RunnablePassthrough()} | _prompt | ToyModel() | StrOutputParser()
# A chain with an object as input, which returns its documents, too.
sourced = RunnablePassthrough.assign(context=RunnableLambda(lambda given: given["input"]) | retriever).assign(
    answer=RunnableLambda(lambda given: f"{given['input']} {_joined(given['context'])}") | ToyModel()
)
twice = RunnableLambda(lambda query: retriever.invoke(query)[:1] + narrow.invoke(f"refund {query}")) | _joined
several = _prompt | ToyModel()
no_answer = RunnableLambda(lambda _: 7)


def _fails(_: str) -> str:
    raise ConnectionError("the vector store is down")


failing = RunnableLambda(_fails)


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search the help pages."""
    found = retriever.invoke(query)
    return _joined(found), found


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(response_format="content_and_artifact")
def look_up(query: str) -> tuple[str, list[Document]]:
    """Search without a retriever of LangChain's."""
    found = [one for one, _ in store.similarity_search_with_score(query, k=2)]
    return _joined(found), found


def graph(model: ToyModel, *, checkpointer: Any = None, only_async: bool = False) -> Any:
    """Return an agent: a model that may call the tools, in a loop."""

    def think(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    async def think_async(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def whether(state: MessagesState) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    made = StateGraph(MessagesState)
    made.add_node("think", think_async if only_async else think)
    made.add_node("tools", ToolNode([search, add, look_up]))
    made.add_edge(START, "think")
    made.add_conditional_edges("think", whether)
    made.add_edge("tools", "think")
    return made.compile(checkpointer=checkpointer)


_calls = [("search", {"query": None}), ("add", {"a": 1, "b": 2}), ("erase", {"all": True})]
agent = graph(ToyModel(calls=_calls), checkpointer=MemorySaver())
async_agent = graph(ToyModel(calls=_calls), only_async=True)
looking_up = graph(ToyModel(calls=[("look_up", {"query": None})]))
silent = graph(ToyModel())


def _prebuilt(model: ToyModel) -> Any:
    """Return the agent that comes with the libraries, which has moved."""
    try:
        from langchain.agents import create_agent
    except ModuleNotFoundError:
        from langgraph.prebuilt import create_react_agent as create_agent
    return create_agent(model, tools=[search, add])


prebuilt = _prebuilt(ToyModel(calls=_calls))
