"""Asks a collection of Chroma: one that a persistent client stored in a folder, or one that Python code has open."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.chroma.chroma_embedding import FORMS, Embedding, embedding_of, space_of, stored
from ragcontract.record.adapters.chroma.chroma_folder import ChromaFolder, explained
from ragcontract.record.adapters.framework import FrameworkSystem
from ragcontract.record.adapters.introspection import bases
from ragcontract.record.adapters.user_exceptions import redacting
from ragcontract.record.interface import Context, Response, Surroundings, System
from ragcontract.record.returned.result_forms import chroma_results

INCLUDE = ["documents", "metadatas", "distances"]
PROBE = "rag-contract"

Text = Annotated[str, Meta(min_length=1, title="text")]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A collection that a persistent client of Chroma stored in a folder."""

    path: Annotated[Text, Meta(description="The folder, relative to the target file.")]
    collection: Annotated[Text, Meta(description="The name of the collection.")]
    doc_id: Annotated[
        str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a result.")
    ] = None
    embedding: Annotated[
        Text | None, Meta(description=f"How questions are embedded: {FORMS}; by default, as the collection says.")
    ] = None
    device: Annotated[str | None, Meta(description="Where `sentence-transformers:` computes, as `cuda`.")] = None
    api_key: Annotated[str | None, Meta(description="The key for `openai:`, as `${secret:OPENAI_API_KEY}`.")] = None
    where: Annotated[dict[str, Any] | None, Meta(description="A filter on metadata, as Chroma has it.")] = None
    in_place: Annotated[bool, Meta(description="Work on the folder itself, to which Chroma writes.")] = False


def system(options: Options, surroundings: Surroundings) -> System:
    """Return the system for a collection; raises InputError if the options contradict each other."""
    kind, _, rest = (options.embedding or "").partition(":")
    problems = []
    if options.embedding not in {None, "default"} and not rest:
        problems.append(f"chroma.embedding: expected {FORMS}, found {options.embedding!r}")
    if options.device is not None and kind != "sentence-transformers":
        problems.append("chroma.device: is only for `embedding: sentence-transformers:…`")
    if (options.api_key is not None) != (kind == "openai"):
        needs = "belongs to `embedding: openai:…`, which needs it, as `${secret:OPENAI_API_KEY}`"
        problems.append(f"chroma.api_key: {needs}")
    if problems:
        raise InputError(problems)
    return Chroma(options, surroundings)


def of_object(given: Any, surroundings: Surroundings) -> System | None:
    """Return the system for a collection that is open; None for other objects of Chroma's."""
    return OpenCollection(given, surroundings) if "chromadb.Collection" in bases(given) else None


class OpenCollection(FrameworkSystem):
    """A collection that is open, and embeds questions with its own function."""

    def __init__(self, collection: Any, surroundings: Surroundings, doc_id: str | None = None) -> None:
        """Store the collection."""
        super().__init__(collection, surroundings, doc_id)
        self._where: Mapping[str, Any] | None = None

    def setup(self) -> None:
        """Find out how much there is; raises InputError if there is nothing."""
        with explained("chroma: the collection cannot be read"):
            self._count = self.given.count()
        if not self._count:
            raise InputError([f"chroma.collection: {self.given.name}: is empty"])
        self._space = space_of(self.given)
        super().setup()

    def question(self, query: str) -> dict[str, Any]:
        """Return the arguments that say what is asked."""
        return {"query_texts": [query]}

    def found(self, asked: Mapping[str, Any], top: int) -> Any:
        """Return what Chroma finds."""
        # Some versions warn of each query that wants more than there is.
        wanted = min(top, self._count)
        return self.given.query(**asked, n_results=wanted, where=self._where, include=INCLUDE)

    def ask(self, query: str, context: Context) -> Response:
        """Return the results for a question."""
        with self.failures():
            found = self.found(self.question(query), context.top)
            results = chroma_results(found, self.doc_ids)
            distances = (found.get("distances") or [[]])[0]
        scored = zip(results, distances, strict=True)
        return Response(results=[result | {"score": self._score(float(distance))} for result, distance in scored])

    def _score(self, distance: float) -> float:
        """Return a score for a distance: the larger, the nearer. It is the cosine or the product, where it can be."""
        return -distance if self._space == "l2" else 1 - distance

    def versions(self) -> Mapping[str, str]:
        """Return the collection and how much is in it."""
        return {"index_version": f"chroma:{self.given.id}:{self._count}"}

    def facts(self) -> Mapping[str, Any]:
        """Return what is known of the collection."""
        known = {"collection": self.given.name, "count": self._count, "space": self._space}
        return {"chroma": known}


class Chroma(OpenCollection):
    """A collection in a folder, asked with vectors."""

    def __init__(self, options: Options, surroundings: Surroundings) -> None:
        """Store the options; nothing is opened yet."""
        super().__init__(None, surroundings, options.doc_id)
        self._options = options
        self._surroundings = surroundings
        self._where = options.where
        self._folder: ChromaFolder | None = None
        self._embedding: Embedding | None = None

    def setup(self) -> None:
        """Open the collection and embed a text, so that what would fail for every question fails before the first."""
        try:
            with redacting(self._surroundings.secrets):
                self._open()
        except BaseException:
            self.teardown()
            raise

    def _open(self) -> None:
        options = self._options
        self._folder = ChromaFolder(self._surroundings.folder / options.path, in_place=options.in_place)
        self.given = self._folder.collection(options.collection)
        super().setup()
        self._embedding = self._chosen()
        with explained("chroma.embedding: a text cannot be embedded"):
            asked = self.question(PROBE)
        with explained("chroma: the collection cannot be asked with this embedding and this filter"):
            self.found(asked, 1)

    def _chosen(self) -> Embedding:
        options, surroundings = self._options, self._surroundings
        if options.embedding is None:
            return stored(self.given, surroundings, surroundings.say)
        with explained(f"chroma.embedding: {options.embedding}: cannot be made"):
            return embedding_of(
                options.embedding,
                device=options.device,
                api_key=options.api_key,
                surroundings=surroundings,
                say=surroundings.say,
            )

    def question(self, query: str) -> dict[str, Any]:
        """Return the vector of a question."""
        if self._embedding is None:
            raise RuntimeError("setup() comes before the first question")
        return {"query_embeddings": [self._embedding.vector(query)]}

    def versions(self) -> Mapping[str, str]:
        """Return the embedding model, if it has a name, and the collection and how much is in it."""
        model = self._embedding.model if self._embedding else None
        return {**super().versions(), **({"embedding_model": model} if model else {})}

    def teardown(self) -> None:
        """Close the collection and remove the copy."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None
        super().teardown()
