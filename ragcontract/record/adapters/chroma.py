"""Ask a collection of Chroma that a persistent client stored in a folder, or that Python code has open.

A stored collection is opened from a copy of its folder, because Chroma cannot read a folder without writing to it. It
is always asked with a vector, embedded as its documents were. Left to itself, Chroma takes its default function
wherever it does not know another, loads it again for each question, and downloads it.
"""

import math
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.writing import unwritable_temporary
from ragcontract.record.adapters.framework import FrameworkSystem, bases, named, redacting, text_at
from ragcontract.record.adapters.user_code import imported
from ragcontract.record.interface import Context, DocIdExpression, Response, Surroundings, System
from ragcontract.record.returned.result_forms import chroma_results

FORMS = "default, sentence-transformers:MODEL, openai:MODEL or module:attribute"

INCLUDE = ["documents", "metadatas", "distances"]
PROBE = "rag-contract"

Text = Annotated[str, Meta(min_length=1, title="text")]


class ChromaOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A collection that a persistent client of Chroma stored in a folder."""

    path: Annotated[Text, Meta(description="The folder, relative to the target file.")]
    collection: Annotated[Text, Meta(description="The name of the collection.")]
    doc_id: DocIdExpression = None
    embedding: Annotated[
        Text | None, Meta(description=f"How questions are embedded: {FORMS}; by default, as the collection says.")
    ] = None
    device: Annotated[str | None, Meta(description="Where `sentence-transformers:` computes, as `cuda`.")] = None
    api_key: Annotated[str | None, Meta(description="The key for `openai:`, as `${secret:OPENAI_API_KEY}`.")] = None
    where: Annotated[dict[str, Any] | None, Meta(description="A filter on metadata, as Chroma has it.")] = None
    in_place: Annotated[bool, Meta(description="Work on the folder itself, to which Chroma writes.")] = False


OPTIONS = ChromaOptions


def system(options: ChromaOptions, surroundings: Surroundings) -> System:
    """Return the system for a stored collection; raises InputError if the options contradict each other."""
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


def of_object(target: Any, surroundings: Surroundings) -> System | None:
    """Return the system for an open collection; None for other objects of Chroma."""
    return OpenCollection(target, surroundings) if "chromadb.Collection" in bases(target) else None


Embed = Callable[[Sequence[str]], Any]


class Embedding(Struct, frozen=True, kw_only=True):
    """A function that makes vectors of texts."""

    embed: Embed
    model: str | None  # its name, if that is known

    def vector(self, text: str) -> list[float]:
        """Return the vector of a text; raises InputError if the function returns something else."""
        returned = self.embed([text])
        try:
            [vector] = returned
            numbers = [float(number) for number in vector]
        except (TypeError, ValueError) as error:
            shown = shorten(visible(repr(returned)), bounds.RETURNED_SHOWN)
            expected = "it gets a list of texts and returns a list with a vector for each"
            raise InputError([f"chroma.embedding: the function returned {shown}; {expected}"]) from error
        if not numbers or not all(map(math.isfinite, numbers)):
            raise InputError(["chroma.embedding: the function returned a vector without numbers"])
        return numbers


class OpenCollection(FrameworkSystem):
    """An open collection, which embeds questions with its own function."""

    def __init__(self, collection: Any, surroundings: Surroundings, doc_id: str | None = None) -> None:
        super().__init__(collection, surroundings, doc_id)
        self._where: Mapping[str, Any] | None = None

    def setup(self) -> None:
        with explained("chroma: the collection cannot be read"):
            self._count = self.target.count()
        if not self._count:
            raise InputError([f"chroma.collection: {self.target.name}: is empty"])
        self._space = space_of(self.target)
        super().setup()

    def question(self, query: str) -> dict[str, Any]:
        return {"query_texts": [query]}

    def search(self, asked: Mapping[str, Any], top: int) -> Any:
        # Some versions warn of each query that wants more results than the collection has.
        wanted = min(top, self._count)
        return self.target.query(**asked, n_results=wanted, where=self._where, include=INCLUDE)

    def ask(self, query: str, context: Context) -> Response:
        with self.failures():
            returned = self.search(self.question(query), context.top)
            results = chroma_results(returned, self.doc_ids)
            distances = (returned.get("distances") or [[]])[0]
        scored = zip(results, distances, strict=True)
        return Response(results=[result | {"score": self._score(float(distance))} for result, distance in scored])

    def _score(self, distance: float) -> float:
        """Return a score, which is larger for nearer documents: the cosine or the product, if Chroma measures that."""
        return -distance if self._space == "l2" else 1 - distance

    def versions(self) -> Mapping[str, str]:
        return {"index_version": f"chroma:{self.target.id}:{self._count}"}

    def facts(self) -> Mapping[str, Any]:
        known = {"collection": self.target.name, "count": self._count, "space": self._space}
        return {"chroma": known}


class Chroma(OpenCollection):
    """A collection in a folder, which is asked with vectors."""

    def __init__(self, options: ChromaOptions, surroundings: Surroundings) -> None:
        super().__init__(None, surroundings, options.doc_id)
        self._options = options
        self._surroundings = surroundings
        self._where = options.where
        self._folder: ChromaFolder | None = None
        self._embedding: Embedding | None = None

    def setup(self) -> None:
        """Open the collection and try a query, so that what fails for every question fails before the first."""
        try:
            with redacting(self._surroundings.secrets):
                self._open()
        except BaseException:
            self.teardown()
            raise

    def _open(self) -> None:
        options = self._options
        self._folder = ChromaFolder(self._surroundings.folder / options.path, in_place=options.in_place)
        self.target = self._folder.collection(options.collection)
        super().setup()
        self._embedding = self._chosen()
        with explained("chroma.embedding: a text cannot be embedded"):
            asked = self.question(PROBE)
        with explained("chroma: the collection cannot be asked with this embedding and this filter"):
            self.search(asked, 1)

    def _chosen(self) -> Embedding:
        options, surroundings = self._options, self._surroundings
        if options.embedding is None:
            return stored(self.target, surroundings)
        with explained(f"chroma.embedding: {options.embedding}: cannot be made"):
            return embedding_of(options.embedding, options, surroundings)

    def question(self, query: str) -> dict[str, Any]:
        if self._embedding is None:
            raise RuntimeError("setup() comes before the first question")
        return {"query_embeddings": [self._embedding.vector(query)]}

    def versions(self) -> Mapping[str, str]:
        model = self._embedding.model if self._embedding else None
        return {**super().versions(), **({"embedding_model": model} if model else {})}

    def teardown(self) -> None:
        if self._folder is not None:
            self._folder.close()
            self._folder = None
        super().teardown()


DATABASE = "chroma.sqlite3"


class ChromaFolder:
    """A folder of Chroma that is open."""

    def __init__(self, folder: Path, *, in_place: bool) -> None:
        """Open a copy of a folder, or the folder itself with ``in_place``; raises InputError if that fails."""
        if not (folder / DATABASE).is_file():
            # Chroma would create the folder, without any collection in it.
            missing = f"has no {DATABASE}" if folder.is_dir() else "there is no such folder"
            raise InputError([f"chroma.path: {folder}: {missing}; it is what a persistent client of Chroma writes"])
        self._copy = None if in_place else copied(folder)
        self._client: Any = None
        try:
            with explained(f"chroma.path: {folder}: cannot be opened by the Chroma that is installed"):
                self._client = _client(self._copy or folder)
        except BaseException:
            self.close()
            raise

    def collection(self, name: str) -> Any:
        """Return a collection; raises InputError if there is no collection of that name."""
        with explained(f"chroma.collection: {name}: cannot be opened"):
            names = [entry if isinstance(entry, str) else entry.name for entry in self._client.list_collections()]
            if name not in names:
                near = nearest(name, names)
                there = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(names)) or 'none'}"
                shown = shorten(visible(there), bounds.FAILURE)
                raise InputError([f"chroma.collection: there is no collection {name!r}; {shown}"])
            return self._client.get_collection(name)

    def close(self) -> None:
        close = getattr(self._client, "close", None)  # since 1.5
        if callable(close):
            close()
        if self._copy is not None:
            shutil.rmtree(self._copy, ignore_errors=True)


def copied(folder: Path) -> Path:
    """Copy a folder to a temporary one; raises InputError if it is too large or cannot be copied."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > bounds.CHROMA_COPY:
        why = f"is larger than {mebibytes(bounds.CHROMA_COPY)}, too large to copy"
        raise InputError([f"chroma.path: {folder}: {why}; with `in_place: true`, Chroma writes to the folder itself"])
    try:
        copy = Path(tempfile.mkdtemp(prefix="rag-contract-chroma-"))
    except OSError as error:
        raise unwritable_temporary(error) from error
    try:
        for path in sorted(folder.rglob("*")):
            target = copy / path.relative_to(folder)
            # Only contents, not permissions: the copy of a read-only folder must be writable.
            if path.is_dir():
                target.mkdir()
            elif path.is_file():
                shutil.copyfile(path, target)
    except OSError as error:
        shutil.rmtree(copy, ignore_errors=True)
        raise InputError([f"chroma.path: {folder}: cannot be copied ({error.strerror or error})"]) from error
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    return copy


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn what Chroma raises into an InputError."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, InputError):
        raise
    except BaseException as error:  # a panic in Chroma's Rust code is not an Exception
        message = shorten(visible(str(error)), bounds.FAILURE)
        raise InputError([f"{what} ({type(error).__name__}: {message})"]) from error


def _client(folder: Path) -> Any:
    try:
        import chromadb
    except ModuleNotFoundError as error:
        raise InputError(["this target needs Chroma: pip install chromadb, of the version that wrote it"]) from error
    from chromadb.config import Settings

    return chromadb.PersistentClient(str(folder.absolute()), settings=Settings(anonymized_telemetry=False))


DEFAULT = frozenset({"default", "onnx_mini_lm_l6_v2"})
SENTENCE_TRANSFORMER = "sentence_transformer"
# Chroma downloads the model of its default function again if one of these is missing.
MODEL_FILES = (
    "config.json",
    "model.onnx",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "vocab.txt",
)


def embedding_of(name: str, options: ChromaOptions, surroundings: Surroundings) -> Embedding:
    """Return the embedding that the target file names under ``embedding``; raises InputError if there is none."""
    kind, _, model = name.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about keys in arguments: they are not stored
        if name == "default":
            return default(surroundings)
        if kind == "sentence-transformers" and model:
            made = _sentence_transformer({"model_name": model, "device": options.device or "cpu"}, surroundings)
            return Embedding(embed=_of_questions(made), model=model)
        if kind == "openai" and model:
            from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction

            api_key = surroundings.secrets.filled(options.api_key or "")
            made = OpenAIEmbeddingFunction(api_key=api_key, model_name=model)
            return Embedding(embed=_of_questions(made), model=model)
    return _of_object(imported(name, surroundings.folder), name)


def stored(collection: Any, surroundings: Surroundings) -> Embedding:
    """Return the embedding of a collection's documents, as the collection names it; raises InputError."""
    hint = f"say `embedding:` in the target file: {FORMS}"
    known = _configuration(collection).get("embedding_function")
    if not isinstance(known, Mapping) or not isinstance(known.get("name"), str):
        raise InputError([f"chroma: the collection does not say how its documents were embedded; {hint}"])
    name, config = known["name"], known.get("config") or {}
    if name in DEFAULT:
        return default(surroundings)
    shown = shorten(visible(repr(name)), bounds.NAME)
    # A folder must not decide which secrets are read, nor whose code is run.
    if any(str(key).endswith("_env_var") for key in config):
        raise InputError([f"chroma: the collection's function {shown} takes a key from the environment; {hint}"])
    if "trust_remote_code" in repr(config):
        raise InputError([f"chroma: the collection's function {shown} runs code from elsewhere; {hint}"])
    if surroundings.offline and name != SENTENCE_TRANSFORMER:
        raise InputError([f"chroma: the collection's function {shown} may download a model (--offline); {hint}"])
    try:
        if name == SENTENCE_TRANSFORMER:
            function = _sentence_transformer(config, surroundings)
        else:
            function = collection.configuration["embedding_function"]
    except Exception as error:
        message = shorten(visible(str(error)), bounds.FAILURE)
        raise InputError([f"chroma: the collection's function {shown} cannot be made ({message}); {hint}"]) from error
    model = next((config[key] for key in ("model_name", "model") if isinstance(config.get(key), str)), name)
    return Embedding(embed=_of_questions(function), model=model)


def space_of(collection: Any) -> str:
    """Return how a collection measures distances: ``l2``, ``cosine`` or ``ip``."""
    configuration = _configuration(collection)
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    # Up to version 0.6, the metadata has the measure, and the configuration always says `l2`.
    return str(index.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2")


def default(surroundings: Surroundings) -> Embedding:
    """Return Chroma's default embedding; raises InputError if its model is missing and must not be downloaded."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    folder = ONNXMiniLM_L6_V2.DOWNLOAD_PATH / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    if not all((folder / name).exists() for name in MODEL_FILES):
        what = f"Chroma's default embedding function is a model of 80 MB, which is not in {folder}"
        if surroundings.offline:
            raise InputError([f"chroma: {what}, and must not be downloaded (--offline)"])
        surroundings.say(f"{what}: Chroma downloads it")
    return Embedding(embed=ONNXMiniLM_L6_V2(), model=ONNXMiniLM_L6_V2.MODEL_NAME)


def _sentence_transformer(config: Mapping[str, Any], surroundings: Surroundings) -> Any:
    from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

    named = {name: config[name] for name in ("model_name", "device", "normalize_embeddings") if name in config}
    # Older versions of the library do not have this setting.
    offline = {"local_files_only": True} if surroundings.offline else {}
    return SentenceTransformerEmbeddingFunction(**{**(config.get("kwargs") or {}), **named, **offline})


def _configuration(collection: Any) -> Mapping[str, Any]:
    configuration = getattr(collection, "configuration_json", None)
    return configuration if isinstance(configuration, Mapping) else {}


def _of_questions(function: Any) -> Embed:
    """Return Chroma's function for questions, which some models embed in another way than documents."""
    embed: Embed = getattr(function, "embed_query", function)
    return embed


def _of_object(embedder: Any, name: str) -> Embedding:
    """Return the embedding of a user's function, class or object."""
    embedder = embedder() if isinstance(embedder, type) else embedder
    known = bases(embedder)
    model = text_at(embedder, "model_name", "model")
    if "langchain_core.Embeddings" in known:
        return Embedding(embed=lambda texts: [embedder.embed_query(text) for text in texts], model=model)
    if "llama_index.BaseEmbedding" in known:
        return Embedding(embed=lambda texts: [embedder.get_query_embedding(text) for text in texts], model=model)
    if "sentence_transformers.SentenceTransformer" in known:
        return Embedding(embed=embedder.encode, model=model)
    if not callable(embedder):
        raise InputError([f"chroma.embedding: {name} is a {named(embedder)}, not a function; {FORMS}"])
    return Embedding(embed=_of_questions(embedder), model=model)
