"""How Chroma is asked and what is read of it, with stand-ins; `make test-record` does it with Chroma itself."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.chroma import MODEL_FILES, Chroma, ChromaOptions, of_object, system
from ragcontract.record.interface import CallFailed, Surroundings
from tests.record.adapters.stand_ins import Collection, Made, chroma, of
from tests.record.systems import asked, context, doc_ids

EMBED = """
calls = []

def embed(texts):
    calls.extend(texts)
    return [[float(len(text)), 0.0] for text in texts]

def none(texts):
    return [[] for text in texts]

def infinite(texts):
    return [[float("inf"), 0.0] for text in texts]

def one(texts):
    return [1.0, 2.0]

def long(texts):
    return [[1.0, 2.0, 3.0]]

def secretive(texts):
    raise ValueError("refused with 0123456789abcdef")

class Embedder:
    model_name = "toy-1"

    def __call__(self, texts):
        return embed(texts)

number = 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with what Chroma stores, and code that embeds."""
    (tmp_path / "db" / "index").mkdir(parents=True)
    (tmp_path / "db" / "chroma.sqlite3").write_text("tables")
    (tmp_path / "db" / "index" / "data.bin").write_text("vectors")
    (tmp_path / "embed.py").write_text(EMBED)
    return tmp_path


def target(folder: Path, embedding: str | None = "embed.py:embed", **options: Any) -> Chroma:
    """Return the system for the collection."""
    around = {name: options.pop(name) for name in ("offline", "secrets", "say", "doc_id") if name in options}
    given = {"path": "db", "collection": "help", "embedding": embedding} | options
    made = system(ChromaOptions(**given), Surroundings(folder=folder, **around))
    assert isinstance(made, Chroma)
    return made


# Asking


@pytest.mark.parametrize(
    ("space", "scores"), [("l2", [-0.25, -0.5, -2.0]), ("cosine", [0.75, 0.5, -1.0]), ("ip", [0.75, 0.5, -1.0])]
)
def test_the_nearest_has_the_highest_score(
    space: str, scores: list[float], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection(configuration_json={"hnsw": {"space": space}})
    chroma(monkeypatch, folder, collection)
    response = asked(target(folder, where={"lang": "en"}), "four", top=9)
    assert [one["score"] for one in response.results or ()] == scores
    assert doc_ids(response) == ["doc_a", "doc_b", "doc_c"]
    assert (response.results or [{}])[0]["text"] == "A"
    assert "text" not in (response.results or [{}])[2]
    probe, question = collection.asked
    assert probe["n_results"] == 1
    assert question == {
        "n_results": 3,
        "query_embeddings": [[4.0, 0.0]],
        "where": {"lang": "en"},
        "include": ["documents", "metadatas", "distances"],
    }


def test_an_old_collection_has_its_space_in_its_metadata(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"hnsw_configuration": {"space": "l2"}}
    collection = Collection(metadata={"hnsw:space": "cosine"}, configuration_json=old)
    clients = chroma(monkeypatch, folder, collection, old=True)
    assert (asked(target(folder), top=1).results or [{}])[0]["score"] == 0.75
    assert not clients[0].path.exists()


def test_versions_and_facts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection())
    made = target(folder, "embed.py:Embedder")
    asked(made)
    assert made.versions() == {"embedding_model": "toy-1", "index_version": "chroma:c-1:3"}
    assert made.facts() == {"chroma": {"collection": "help", "count": 3, "space": "l2"}}
    nameless = target(folder)
    asked(nameless)
    assert nameless.versions() == {"index_version": "chroma:c-1:3"}


def test_it_is_set_up_before_it_is_asked(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"setup\(\) comes before"):
        target(folder).question("?")


def test_what_fails_later_is_a_failed_attempt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection())
    made = target(folder)
    made.setup()
    made.target = Collection(query=None)
    with pytest.raises(CallFailed, match="TypeError"):
        made.ask("?", context())
    made.teardown()


# The folder


def test_chroma_works_on_a_copy_that_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = chroma(monkeypatch, folder, Collection())
    made = target(folder)
    made.setup()
    [client] = clients
    assert client.path != folder / "db"
    assert (client.path / "index" / "data.bin").read_text() == "vectors"
    assert client.settings == {"anonymized_telemetry": False}
    made.teardown()
    assert client.closed
    assert not client.path.exists()
    made.teardown()


def test_in_place_chroma_works_on_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = chroma(monkeypatch, folder, Collection())
    asked(target(folder, in_place=True))
    assert clients[0].path == folder / "db"
    assert (folder / "db" / "chroma.sqlite3").exists()


@pytest.mark.parametrize(("path", "why"), [("nowhere", "there is no such folder"), ("db/index", "has no chroma.sql")])
def test_a_folder_of_nothing_is_refused_and_not_created(path: str, why: str, folder: Path) -> None:
    with pytest.raises(InputError, match=f"chroma.path: .*{path}: {why}"):
        target(folder, path=path).setup()
    assert not (folder / "nowhere").exists()


def test_a_panic_of_chromas_is_an_input_error_and_leaves_no_copy(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    chroma(monkeypatch, folder, Collection())
    (folder / "db" / "chroma.sqlite3").write_text("broken")
    with pytest.raises(InputError, match=r"db: cannot be opened by the Chroma that is installed \(Panic: range end"):
        target(folder).setup()
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_collection_that_is_not_there_is_refused_with_those_that_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chroma(monkeypatch, folder, Collection())
    with pytest.raises(InputError, match=r"there is no collection 'halp'; did you mean 'help'\?"):
        target(folder, collection="halp").setup()
    with pytest.raises(InputError, match=r"there is no collection 'x'; there are help"):
        target(folder, collection="x").setup()
    chroma(monkeypatch, folder)
    with pytest.raises(InputError, match=r"there are none"):
        target(folder).setup()


def test_an_empty_collection_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection(size=0))
    with pytest.raises(InputError, match=r"chroma.collection: help: is empty"):
        target(folder).setup()


def test_chroma_must_be_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "chromadb", None)
    with pytest.raises(InputError, match="pip install chromadb"):
        target(folder).setup()


# Embedding


def test_a_text_is_embedded_before_the_first_question(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection())
    with pytest.raises(InputError, match=r"cannot be asked with this embedding .* dimension of 2, got 3"):
        target(folder, "embed.py:long").setup()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("one", r"returned \[1.0, 2.0\]; it gets a list of texts and returns a list with a vector for each"),
        ("none", "a vector without numbers"),
        ("infinite", "a vector without numbers"),
        ("number", "embed.py:number is a builtins.int, not a function"),
    ],
)
def test_what_makes_no_vectors_is_refused(name: str, why: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection())
    with pytest.raises(InputError, match=why):
        target(folder, f"embed.py:{name}").setup()


def test_secrets_are_not_in_what_embedding_fails_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection())
    with pytest.raises(InputError, match=r"a text cannot be embedded \(ValueError: refused with \*\*\*"):
        target(folder, "embed.py:secretive", secrets=Secrets({"KEY": "0123456789abcdef"})).setup()


def test_models_of_other_packages_are_made_by_chroma(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, Collection())
    asked(target(folder, "sentence-transformers:BAAI/bge-m3"))
    made = target(folder, "sentence-transformers:BAAI/bge-m3", device="cuda", offline=True)
    asked(made)
    secrets = Secrets({"KEY": "sk-0123456789"})
    asked(target(folder, "openai:text-embedding-3-small", api_key="${secret:KEY}", secrets=secrets))
    assert Made.made == [
        {"model_name": "BAAI/bge-m3", "device": "cpu"},
        {"model_name": "BAAI/bge-m3", "device": "cuda", "local_files_only": True},
        {"model_name": "text-embedding-3-small", "api_key": "sk-0123456789"},
    ]
    assert made.versions()["embedding_model"] == "BAAI/bge-m3"


@pytest.mark.parametrize("package", ["langchain_core.Embeddings", "llama_index.BaseEmbedding"])
def test_embeddings_of_frameworks_are_functions_too(
    package: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection()
    chroma(monkeypatch, folder, collection)
    method = "embed_query" if package.startswith("langchain") else "get_query_embedding"
    name, base = package.split(".")
    code = f"from tests.record.adapters.stand_ins import of\nmine = of({name!r}, {base!r}, "
    (folder / "mine.py").write_text(f"{code}{method}=lambda _, text: [float(len(text)), 1.0])()\n")
    asked(target(folder, "mine.py:mine"), "four")
    assert collection.asked[-1]["query_embeddings"] == [[4.0, 1.0]]


def test_a_sentence_transformer_is_a_function_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = Collection()
    chroma(monkeypatch, folder, collection)
    code = "from tests.record.adapters.stand_ins import of\nmine = of('sentence_transformers', 'SentenceTransformer', "
    (folder / "mine.py").write_text(f"{code}encode=lambda _, texts: [[2.0, 2.0] for text in texts])()\n")
    asked(target(folder, "mine.py:mine"))
    assert collection.asked[-1]["query_embeddings"] == [[2.0, 2.0]]


def test_the_default_function_is_announced_before_it_is_downloaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chroma(monkeypatch, folder, Collection())
    said: list[str] = []
    made = target(folder, "default", say=said.append)
    asked(made)
    where = folder / "models" / "onnx"
    what = "Chroma's default embedding function is a model of 80 MB"
    assert said == [f"{what}, which is not in {where}: Chroma downloads it"]
    assert made.versions()["embedding_model"] == "all-MiniLM-L6-v2"
    asked(target(folder, "default"))
    with pytest.raises(InputError, match=r"must not be downloaded \(--offline\)"):
        target(folder, "default", offline=True).setup()
    (folder / "models" / "onnx").mkdir(parents=True)
    (folder / "models" / "onnx" / "model.onnx").touch()
    with pytest.raises(InputError, match=r"must not be downloaded \(--offline\)"):
        target(folder, "default", offline=True).setup()
    for name in MODEL_FILES:
        (folder / "models" / "onnx" / name).touch()
    said.clear()
    asked(target(folder, "default", offline=True, say=said.append))
    assert said == []


# The function that a collection stores


def storing(name: str, *, function: Any = None, **config: Any) -> Collection:
    """Return a collection that says how it was embedded."""
    stored = {"embedding_function": {"type": "known", "name": name, "config": config}}
    return Collection(configuration_json=stored, configuration={"embedding_function": function})


def test_the_stored_function_embeds_questions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = storing("cohere", function=lambda texts: [[7.0, 7.0] for _ in texts], model_name="embed-4")
    chroma(monkeypatch, folder, collection)
    made = target(folder, None)
    asked(made)
    assert collection.asked[-1]["query_embeddings"] == [[7.0, 7.0]]
    assert made.versions()["embedding_model"] == "embed-4"
    chroma(monkeypatch, folder, storing("default"))
    made = target(folder, None)
    asked(made)
    assert made.versions()["embedding_model"] == "all-MiniLM-L6-v2"


@pytest.mark.parametrize(
    ("collection", "why"),
    [
        (Collection(), "does not say how its documents were embedded"),
        (Collection(configuration_json={"embedding_function": {"type": "legacy"}}), "does not say how its documents"),
        (Collection(configuration_json={"embedding_function": None}), "does not say how its documents were embedded"),
        (storing("openai", api_key_env_var="KEY"), "function 'openai' takes a key from the environment"),
        (storing("st", kwargs={"trust_remote_code": True}), "function 'st' runs code from elsewhere"),
    ],
)
def test_what_is_not_stored_or_not_trusted_needs_to_be_told(
    collection: Collection, why: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chroma(monkeypatch, folder, collection)
    with pytest.raises(InputError, match=f"{why}.*; say `embedding:` in the target file: default, sentence-transfo"):
        target(folder, None).setup()


def test_a_stored_sentence_transformer_is_made_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"model_name": "BAAI/bge-m3", "device": "cpu", "normalize_embeddings": True, "kwargs": {"revision": "1"}}
    chroma(monkeypatch, folder, storing("sentence_transformer", **config))
    made = target(folder, None)
    asked(made)
    asked(target(folder, None, offline=True))
    plain = {"model_name": "BAAI/bge-m3", "device": "cpu", "normalize_embeddings": True, "revision": "1"}
    assert Made.made == [plain, {**plain, "local_files_only": True}]
    assert made.versions()["embedding_model"] == "BAAI/bge-m3"


def test_what_a_stored_function_downloads_is_not_known_offline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chroma(monkeypatch, folder, storing("instructor", function=lambda texts: [[1.0, 2.0] for _ in texts]))
    with pytest.raises(InputError, match=r"function 'instructor' may download a model \(--offline\); say `embedding:`"):
        target(folder, None, offline=True).setup()


def test_a_stored_function_that_cannot_be_made_needs_to_be_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = storing("mine")
    collection.configuration = {}
    chroma(monkeypatch, folder, collection)
    with pytest.raises(InputError, match=r"function 'mine' cannot be made \('embedding_function'\); say `embedding:`"):
        target(folder, None).setup()


# Options and objects


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"embedding": "bge-m3"},
            r"chroma.embedding: expected default, sentence-transformers:MODEL, .* found 'bge-m3'",
        ),
        ({"embedding": "default", "device": "cuda"}, "chroma.device: is only for `embedding: sentence-transformers:"),
        ({"embedding": "openai:m"}, "chroma.api_key: belongs to `embedding: openai:…`, which needs it"),
        ({"api_key": "${secret:KEY}"}, "chroma.api_key: belongs to `embedding: openai:…`, which needs it"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], why: str, folder: Path) -> None:
    with pytest.raises(InputError, match=why):
        target(folder, **options)


def test_an_open_collection_embeds_for_itself() -> None:
    collection = Collection()
    made = of_object(collection, Surroundings())
    assert made is not None
    assert doc_ids(asked(made, "q", top=2)) == ["doc_a", "doc_b"]
    assert collection.asked[0]["query_texts"] == ["q"]
    assert made.versions() == {"index_version": "chroma:c-1:3"}
    assert of_object(of("chromadb", "Client")(), Surroundings()) is None


def test_an_open_collection_that_cannot_be_read_is_refused() -> None:
    made = of_object(Collection(count=lambda: SimpleNamespace().none), Surroundings())
    assert made is not None
    with pytest.raises(InputError, match="chroma: the collection cannot be read"):
        made.setup()
