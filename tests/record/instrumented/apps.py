"""Applications over chunks with ids of their own, so that two processes that load them name the same chunks."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from tests.recipes.apps.toy_corpus import CHUNKS
from tests.record.frameworks.apps.langchain_app import ToyEmbeddings, ToyModel
from tests.record.frameworks.apps.llamaindex_app import ToyEmbedding

_named = [(f"{source}-{number}", source, text) for number, (source, text) in enumerate(CHUNKS)]
store = InMemoryVectorStore(ToyEmbeddings())
store.add_documents([Document(id=own, page_content=text, metadata={"source": source}) for own, source, text in _named])
retriever = store.as_retriever(search_kwargs={"k": 4})


def _joined(documents: list[Document]) -> str:
    return " ".join(document.page_content for document in documents)


_prompt = ChatPromptTemplate.from_template("{context} {question}")
_given = {"context": retriever | _joined, "question": RunnablePassthrough()}
chain: Any = _given | _prompt | ToyModel() | StrOutputParser()


@tool
def search(query: str) -> str:
    """Search the help pages."""
    return _joined(retriever.invoke(query))


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _agent(model: ToyModel) -> Any:
    def think(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def whether(state: MessagesState) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    made = StateGraph(MessagesState)
    made.add_node("think", think)
    made.add_node("tools", ToolNode([search, add]))
    made.add_edge(START, "think")
    made.add_conditional_edges("think", whether)
    made.add_edge("tools", "think")
    return made.compile()


agent = _agent(ToyModel(calls=[("search", {"query": None}), ("add", {"a": 1, "b": 2})]))

nodes: list[Any] = [TextNode(id_=own, text=text, metadata={"source": source}) for own, source, text in _named]
index = VectorStoreIndex(nodes, embed_model=ToyEmbedding(model_name="toy-embedding-2"))
engine: Any = index.as_query_engine(llm=MockLLM(), similarity_top_k=2)
