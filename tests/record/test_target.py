"""TARGET is a text, a file or an object, and stands for one system."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.python_code import PythonCode
from ragcontract.record.interface import Surroundings
from ragcontract.record.target import read_target
from ragcontract.record.target_registry import KINDS, Modules
from tests.process import spawn
from tests.record.systems import asked, doc_ids, target_of
from tests.runner import ROOT

TOYS = {**KINDS, "toy": Line(home="tests.record.toy_kind")}
AROUND: Modules = {"louder": Line(home="tests.record.toy_around")}


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    Path("search.py").write_text("def find(query, top):\n    return [query, str(top)]\n")


def retrieve(query: str) -> list[str]:
    return [query]


def test_a_text_names_code(tmp_path: Path) -> None:
    target = target_of(tmp_path, "search.py:find")
    assert target.name == "search.py:find"
    assert doc_ids(asked(target.system)) == ["?", "5"]


@pytest.mark.parametrize("address", ["http://localhost:8000/search", "https://search.example/record.yml"])
def test_an_address_is_written_into_a_file(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError) as error:
        target_of(tmp_path, address)
    assert error.value.problems == [
        "an address is no target; write the service into a file, such as http.yml: `http: {url: …}`"
    ]


def test_an_object_is_named_as_it_was_made(tmp_path: Path) -> None:
    target = target_of(tmp_path, retrieve)
    assert target.name == "tests.record.test_target:retrieve"
    assert isinstance(target.system, PythonCode)
    assert target.sha256 == target_of(tmp_path, retrieve).sha256 != ""


def test_an_object_without_a_file_has_no_digest(tmp_path: Path) -> None:
    assert target_of(tmp_path, len).sha256 == ""


def test_a_digest_changes_with_the_code(tmp_path: Path) -> None:
    before = target_of(tmp_path, "search.py:find").sha256
    Path("search.py").write_text("def find(query):\n    return []\n")
    assert target_of(tmp_path, "search.py:find").sha256 != before


def test_a_digest_changes_with_a_file_that_a_command_names(tmp_path: Path) -> None:
    Path("record.yml").write_text("command:\n  each: [python, search.py]\n")
    before = target_of(tmp_path, "record.yml").sha256
    Path("search.py").write_text("print()\n")
    assert target_of(tmp_path, "record.yml").sha256 != before


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("python: {object: 'search.py:find'}", "PythonCode"),
        ("python: {object: 'search.py:find', isolate: true}", "IsolatedCode"),
        ("command: {each: [python, search.py]}", "Each"),
        ("command: {serve: [python, search.py]}", "Serve"),
    ],
)
@pytest.mark.parametrize("name", ["record.yml", "record.yaml"])
def test_a_file_names_a_kind(text: str, kind: str, name: str, tmp_path: Path) -> None:
    Path(name).write_text(text)
    target = target_of(tmp_path, name)
    assert (target.name, type(target.system).__name__) == (name, kind)


def test_paths_in_a_file_are_relative_to_its_folder(tmp_path: Path) -> None:
    Path("rag").mkdir()
    Path("rag/own.py").write_text("def find(query):\n    return ['own']\n")
    Path("rag/record.yml").write_text("python: {object: 'own.py:find'}")
    assert doc_ids(asked(target_of(tmp_path, "rag/record.yml").system)) == ["own"]


def test_versions_of_a_file_are_above_those_of_the_system(tmp_path: Path) -> None:
    Path("own.py").write_text(
        "class Own:\n    def run(self, query): return []\n"
        "    def versions(self): return {'index_version': '1', 'llm_model': 'm'}\n"
    )
    Path("record.yml").write_text("python: {object: 'own.py:Own'}\nversions: {index_version: 007}")
    system = target_of(tmp_path, "record.yml").system
    assert doc_ids(asked(system)) == []
    assert (system.versions(), dict(system.facts())) == ({"index_version": "007", "llm_model": "m"}, {})


def test_a_kind_is_a_module_and_a_line(tmp_path: Path) -> None:
    from ragcontract.record.interface import Surroundings
    from ragcontract.record.target import read_target

    Path("record.yml").write_text("toy: {says: doc_a}\nlouder: {times: 2}")
    target = read_target("record.yml", Surroundings(folder=tmp_path, environ={}), kinds=TOYS, around=AROUND)
    assert doc_ids(asked(target.system)) == ["doc_a", "doc_a"]


def test_isolation_is_for_code_that_is_named(tmp_path: Path) -> None:
    Path("own.py").write_text("import os\n\ndef find(query):\n    return [str(os.getpid())]\n")
    assert doc_ids(asked(target_of(tmp_path, "own.py:find").system)) == [str(os.getpid())]
    assert doc_ids(asked(target_of(tmp_path, "own.py:find", isolate=True).system)) != [str(os.getpid())]
    with pytest.raises(InputError, match="an object has no process of its own; name it"):
        target_of(tmp_path, retrieve, isolate=True)
    Path("record.yml").write_text("command: {each: [python]}")
    with pytest.raises(InputError, match="--isolate is for a target of Python; this one is command"):
        target_of(tmp_path, "record.yml", isolate=True)


def refusal(text: str, folder: Path, **surroundings: Any) -> list[str]:
    Path("record.yml").write_text(text)
    with pytest.raises(InputError) as refused:
        target_of(folder, "record.yml", **surroundings)
    return refused.value.problems


REFUSED: Mapping[str, list[str]] = {
    "": ["record.yml: is empty; write one of python, command, http, langchain, llamaindex, chroma, and what it needs"],
    "versions: {}": [
        "record.yml:1: names no target; write one of python, command, http, langchain, llamaindex, chroma"
    ],
    "python: {object: 'a:b'}\ncommand: {each: [x]}": [
        "record.yml:2: command: is a second target beside python; write a file for each"
    ],
    "pyton: {object: 'a:b'}": [
        "record.yml:1: names no target; write one of python, command, http, langchain, llamaindex, chroma",
        "record.yml:1: pyton: unknown key; did you mean 'python'?",
    ],
    "python: {objct: 'a:b'}\npython: {}\nversions:\n  indx_version: 1\n  llm_model: ''": [
        "record.yml:1: python.objct: unknown key; did you mean 'object'?",
        "record.yml:1: python.object: is missing; is 'objct' a misspelling of it?",
        "record.yml:2: python: duplicate key, first defined at line 1",
        "record.yml:4: versions.indx_version: unknown key; did you mean 'index_version'?",
        'record.yml:5: versions.llm_model: expected text that is not empty; quote numbers, found "" (text)',
    ],
    "python: {object: 'a:b', doc_di: }\nversions: {llm_modl: ~, prompt_version: }": [
        "record.yml:1: python.doc_di: unknown key; did you mean 'doc_id'?",
        "record.yml:2: versions.llm_modl: unknown key; did you mean 'llm_model'?",
    ],
    "python: my_app:find": [
        'record.yml:1: python: expected an object, found "my_app:find"; write {"object": "my_app:find"}'
    ],
    "command: {each: python answer.py}": [
        (
            "record.yml:1: command.each: expected a list of arguments, as [python, answer.py], without a shell, found "
            '"python answer.py" (text); write ["python answer.py"] for a list of one'
        )
    ],
    "command: {}": ["record.yml: command: needs either `each` or `serve`"],
    "command: {each: [a], serve: [b], ready: true}": ["record.yml: command: needs either `each` or `serve`"],
    "command: {each: [a], ready: true, folder: nowhere}": [
        "record.yml: command.ready: is for `serve`; a program under `each` takes its question at once",
        "record.yml: command.folder: there is no folder nowhere",
    ],
    "command:\n  serve: [a]\n  environ:\n    KEY: ${secret:TOKEN}\n": [
        (
            "record.yml:4: command.environ.KEY: the secret TOKEN is not given: add --secret TOKEN to the command, and "
            "the variable to its step"
        )
    ],
    "python: {object: 'search.py:nothing'}": ["record.yml: search.py:nothing: search.py has no 'nothing'"],
}


@pytest.mark.parametrize(("text", "problems"), REFUSED.items())
def test_everything_that_is_wrong_with_a_file_is_said_at_once(text: str, problems: list[str], tmp_path: Path) -> None:
    assert [problem.replace(f"{tmp_path}/", "") for problem in refusal(text, tmp_path)] == problems


def test_a_secret_in_arguments_is_refused(tmp_path: Path) -> None:
    secrets = Secrets({"TOKEN": "topsecretvalue"})
    (problem,) = refusal("command: {each: [curl, '${secret:TOKEN}']}", tmp_path, secrets=secrets)
    assert "seen by all who list processes; put it under environ" in problem


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"record\.yml: is larger than 1 MiB"):
        refusal_of_size(bounds.CONFIG + 1, tmp_path)
    refusal("# " + "x" * (bounds.CONFIG - 2), tmp_path)


def refusal_of_size(size: int, folder: Path) -> None:
    Path("record.yml").write_text("# " + "x" * (size - 2))
    target_of(folder, "record.yml")


def test_a_folder_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    Path("folder.yml").mkdir()
    with pytest.raises(InputError, match=r"folder\.yml: is a folder"):
        target_of(tmp_path, "folder.yml")
    Path("record.yml").write_bytes(b"\x1f\x8b\x08broken")
    with pytest.raises(InputError, match=r"record\.yml: the gzip data is damaged"):
        target_of(tmp_path, "record.yml")


def test_a_module_of_a_kind_that_needs_an_extra_says_so(tmp_path: Path) -> None:
    """In an interpreter of its own, in which jmespath cannot be imported."""
    program = """
import os
import sys
sys.modules["jmespath"] = None
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.record.interface import Surroundings
from ragcontract.record.target import read_target
assert read_target("search.py:find", Surroundings()).system.ask  # which needs none
assert read_target("search.py:find", Surroundings(doc_id="metadata.source")).system.ask
for fails in (
    lambda: read_target("search.py:find", Surroundings(doc_id="id || text")),
    lambda: read_target("record.yml", Surroundings(), kinds={"needy": Line(home="needy")}),
):
    try:
        fails()
    except InputError as error:
        print(error)
"""
    Path("needy.py").write_text("import jmespath\n")
    Path("record.yml").write_text("needy: {}")
    environ = {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    ended = spawn(cwd=tmp_path, command=(sys.executable, "-c", program), environ=environ)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "doc_id: an expression needs jmespath: pip install 'rag-contract[record]'",
        "this target needs jmespath: pip install 'rag-contract[record]'",
    ]


def test_a_mistake_is_named_without_the_extra_of_another_kind() -> None:
    Path("needy.py").write_text("raise ModuleNotFoundError(name='jmespath')\n")
    sys.path.insert(0, "")
    kinds = {**KINDS, "needy": Line(home="needy")}
    Path("record.yml").write_text("python:\n  objekt: search.py:find\n")
    with pytest.raises(InputError, match=r"record\.yml:2: python\.objekt: unknown key; did you mean 'object'\?"):
        read_target("record.yml", Surroundings(), kinds=kinds)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.yml"):
        target_of(tmp_path, "nothing.yml")
