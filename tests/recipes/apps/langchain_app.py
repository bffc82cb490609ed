"""An application with a LangChain retriever: chunks in a vector store, each with its source."""

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from toy_corpus import CHUNKS, embed


class ToyEmbeddings(Embeddings):  # type: ignore[misc]
    """LangChain's interface to the toy embedding."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return list(embed(text))


store = InMemoryVectorStore(ToyEmbeddings())
store.add_documents([Document(page_content=text, metadata={"source": source}) for source, text in CHUNKS])
retriever = store.as_retriever(search_kwargs={"k": 20})
