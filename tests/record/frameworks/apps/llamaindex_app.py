"""Applications with LlamaIndex: retrievers, query engines and chat engines, with a model that echoes its prompt."""

from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from tests.recipes.apps.toy_corpus import CHUNKS, embed


class ToyEmbedding(BaseEmbedding):
    """LlamaIndex's interface to the toy embedding."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return list(embed(text))

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(embed(query))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return list(embed(query))


def text_of(source: str) -> str:
    """Return the whole text of a document."""
    return " ".join(text for of, text in CHUNKS if of == source)


documents: list[Any] = [
    Document(text=text_of(source), id_=source, metadata={"pages": len(source)})
    for source in dict.fromkeys(of for of, _ in CHUNKS)
]
index = VectorStoreIndex.from_documents(documents, embed_model=ToyEmbedding(model_name="toy-embedding-2"))
retriever = index.as_retriever(similarity_top_k=3)
query_engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=2)
streaming_engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=2, streaming=True)
context_engine = index.as_chat_engine(chat_mode="context", llm=MockLLM(), similarity_top_k=2)
condensing_engine = index.as_chat_engine(chat_mode="condense_question", llm=MockLLM(), similarity_top_k=2)
both_engine = index.as_chat_engine(chat_mode="condense_plus_context", llm=MockLLM(), similarity_top_k=2)
simple_engine = index.as_chat_engine(chat_mode="simple", llm=MockLLM())


def agent() -> Any:
    """Return an agent that searches first, and then answers; there are none in the oldest version."""
    from llama_index.core.agent.workflow import ReActAgent
    from llama_index.core.llms import CompletionResponse, CompletionResponseGen
    from llama_index.core.tools import QueryEngineTool

    class Thinking(MockLLM):  # LlamaIndex's own, with a script
        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:  # noqa: ARG002
            said = prompt.rsplit("user: ", 1)[1].split("\n", 1)[0]
            search = f'Action: help\nAction Input: {{"input": "{said}"}}'
            step = "Answer: it is in the help" if said.startswith("Observation: ") else search
            text = f"Thought: I need to think.\n{step}"
            yield CompletionResponse(text=text, delta=text)

    return ReActAgent(
        tools=[QueryEngineTool.from_defaults(query_engine, name="help", description="help")], llm=Thinking()
    )


class ByHand(BaseRetriever):
    """A retriever of nodes that no document is known of."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=query_bundle.query_str, id_="node-7"))]


by_hand = ByHand()
