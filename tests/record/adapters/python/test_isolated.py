"""Python code in a process of its own is asked as in ours, and can be killed."""

import os
from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.record.interface import CallFailed, System
from tests.record.systems import asked, context, doc_ids, target_of

CODE = """
import asyncio, os, subprocess, sys, time
import msgspec

class App:
    def __init__(self):
        self.prepared = False

    def setup(self):
        self.prepared = True

    async def run(self, query, context):
        print("printed in Python")
        os.system("echo printed by a program")
        if query == "hang":
            time.sleep(3600)
        if query == "die":
            os._exit(7)
        if query == "fail":
            raise ConnectionResetError("down")
        if query == "nothing":
            return None
        if query == "read":
            return [sys.stdin.read() or "nothing to read"]
        return {"results": [{"doc_id": "a", "score": 0.5}], "response": None, "metadata": {"of": context["query_id"],
                "prepared": self.prepared, "turns": len(context.messages), "ours": os.getpid()}}

    def versions(self):
        return {"index_version": 7}

    def teardown(self):
        open("torn down", "w").close()
"""


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(CODE)
    return target_of(tmp_path, "app.py:App", isolate=True).system


def test_it_is_asked_in_its_process(system: System) -> None:
    response = asked(system, messages=({"role": "user", "content": "Hi"},))
    assert (response.results, response.response) == ([{"doc_id": "a", "score": 0.5}], None)
    metadata = dict(response.metadata or {})
    assert metadata.pop("ours") != os.getpid()
    assert metadata == {"of": "q1", "prepared": True, "turns": 1}
    assert Path("torn down").exists()


def test_what_it_prints_is_no_answer(system: System) -> None:
    system.setup()
    system.ask("?", context())
    assert system.facts()["stray_lines"] == 0
    system.teardown()


def test_it_finds_nothing_on_standard_input(system: System) -> None:
    assert doc_ids(asked(system, "read")) == ["nothing to read"]


def test_its_versions_and_packages_are_known(system: System) -> None:
    system.setup()
    assert system.versions() == {"index_version": "7"}
    assert "msgspec" in system.facts()["packages"]
    system.teardown()


def test_it_is_not_started_again_to_say_its_versions(system: System) -> None:
    asked(system)
    assert (system.versions(), dict(system.facts())) == ({}, {"stray_lines": 0})


@pytest.mark.parametrize(
    ("query", "kind", "said"),
    [
        ("hang", "read_timeout", "no answer within 3 s"),
        ("die", "process_ended", "the process ended with exit code 7"),
        ("fail", "exception", "ConnectionResetError: down"),
    ],
)
def test_after_a_failure_it_can_be_asked_again(query: str, kind: str, said: str, system: System) -> None:
    system.setup()
    with pytest.raises(CallFailed) as failed:
        system.ask(query, context(seconds=3 if query == "hang" else 30))
    assert (failed.value.kind, failed.value.again) == (kind, True)
    assert said in str(failed.value)
    assert doc_ids(system.ask("?", context(seconds=30))) == ["a"]
    system.teardown()


def test_what_cannot_be_read_ends_the_recording(system: System) -> None:
    with pytest.raises(InputError, match="returned nothing"):
        asked(system, "nothing")


def test_code_that_cannot_be_imported_ends_the_recording(system: System, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import no_such_thing\n")
    with pytest.raises(InputError, match=r"app.py: cannot be imported: ModuleNotFoundError"):
        system.setup()
    system.teardown()


def test_code_whose_preparation_was_interrupted_is_not_asked_for_its_versions(system: System) -> None:
    assert system.versions() == {}
    assert system.facts() == {"stray_lines": 0}
