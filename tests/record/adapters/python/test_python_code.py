"""Python code is called as it is written: functions, classes, objects, asynchronous or not."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.python_code import of_object
from ragcontract.record.interface import CallFailed, Context, Surroundings
from tests.record.systems import asked, context, doc_ids

HERE = Surroundings(environ={})


def retrieve(query: str, top: int) -> list[str]:
    return [query] * min(top, 2)


async def retrieve_later(query: str, context: Context) -> list[str]:
    await asyncio.sleep(0)
    return [query, context.query_id]


class Adapter:
    """As the eval harness' adapters."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def setup(self) -> None:
        self.calls.append("setup")

    def run(self, query: str, context: dict[str, Any]) -> Mapping[str, Any]:
        self.calls.append("run")
        return {"results": [context["query_id"]], "answer": query}

    def versions(self) -> Mapping[str, Any]:
        return {"embedding_model": "e-1", "index_version": 7, "llm_model": None}

    def teardown(self) -> None:
        self.calls.append("teardown")


class Later:
    """The same, asynchronous: all of it runs in one event loop."""

    loops: set[int]

    async def setup(self) -> None:
        self.loops = {id(asyncio.get_running_loop())}

    async def run(self, query: str) -> list[str]:
        self.loops.add(id(asyncio.get_running_loop()))
        return [query]

    async def versions(self) -> Mapping[str, str]:
        return {"index_version": "1"}

    async def teardown(self) -> None:
        self.loops.add(id(asyncio.get_running_loop()))


class Callable:
    def __call__(self, query: str) -> list[str]:
        return [query]


@pytest.mark.parametrize("given", [retrieve, Callable, Callable(), lambda query: [query], Later])
def test_it_is_asked(given: object) -> None:
    assert doc_ids(asked(of_object(given, HERE)))[0] == "?"


def test_an_asynchronous_function_is_awaited() -> None:
    assert doc_ids(asked(of_object(retrieve_later, HERE))) == ["?", "q1"]


def test_an_adapter_is_set_up_asked_and_torn_down_once() -> None:
    adapter = Adapter()
    system = of_object(adapter, HERE)
    system.setup()
    response = system.ask("?", context())
    assert system.versions() == {"embedding_model": "e-1", "index_version": "7"}
    system.teardown()
    assert (response.response, adapter.calls) == ("?", ["setup", "run", "teardown"])


def test_asynchronous_methods_share_one_event_loop() -> None:
    adapter = Later()
    system = of_object(adapter, HERE)
    system.setup()
    system.ask("?", context())
    assert system.versions() == {"index_version": "1"}
    system.teardown()
    assert len(adapter.loops) == 1


def test_an_asynchronous_function_is_cancelled_at_its_deadline() -> None:
    ended = []

    async def hang(_query: str) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    with pytest.raises(CallFailed) as failed:
        asked(of_object(hang, HERE), seconds=0.01)
    assert (failed.value.kind, failed.value.again, ended) == ("timeout", True, [True])


def test_what_still_runs_at_the_end_is_cancelled() -> None:
    ended: list[bool] = []
    kept = []

    async def leave(query: str) -> list[str]:
        async def hang() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(True)

        kept.append(asyncio.create_task(hang()))
        await asyncio.sleep(0)
        return [query]

    asked(of_object(leave, HERE))
    assert ended == [True]


def test_what_it_prints_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def talk(query: str) -> list[str]:
        sys.stdout.write(f"looking for {query}\n")
        return []

    asked(of_object(talk, HERE))
    sys.stdout.write("ours\n")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("ours\n", "looking for ?\n")


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("no")
        self.status_code = status


class AnsweredError(Exception):
    def __init__(self, status: int, **headers: str) -> None:
        super().__init__("no")
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


class APIConnectionError(Exception):
    pass


class ReadTimeout(Exception):  # noqa: N818 (as in the clients that users have)
    pass


@pytest.mark.parametrize(
    ("error", "kind", "again"),
    [
        (ValueError("no"), "exception", False),
        (KeyError("no"), "exception", False),
        (TimeoutError("no"), "timeout", True),
        (ConnectionResetError("no"), "exception", True),
        (OSError("no"), "exception", True),
        (FileNotFoundError("no"), "exception", False),
        (APIConnectionError("no"), "exception", True),
        (ReadTimeout("no"), "exception", True),
        (StatusError(429), "exception", True),
        (StatusError(503), "exception", True),
        (StatusError(400), "exception", False),
        (AnsweredError(500), "exception", True),
        (AnsweredError(404), "exception", False),
        (SystemExit("no"), "exception", False),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else "",
)
def test_what_it_raises_fails_the_attempt(error: BaseException, kind: str, again: bool) -> None:
    def fail(_query: str) -> None:
        raise error

    with pytest.raises(CallFailed) as failed:
        asked(of_object(fail, HERE))
    assert (failed.value.kind, failed.value.again) == (kind, again)
    assert f"{type(error).__name__}: " in str(failed.value)
    assert "test_python_code.py:" in str(failed.value)
    assert failed.value.detail is not None
    assert failed.value.detail["at"].startswith("tests/record/adapters/python/test_python_code.py:")


@pytest.mark.parametrize(
    ("headers", "pause"),
    [({"retry-after": "7"}, 7), ({"Retry-After": "1m30s"}, 90), ({"retry-after": "soon"}, None), ({}, None)],
)
def test_a_pause_that_a_server_asked_for_is_passed_on(headers: dict[str, str], pause: float | None) -> None:
    def fail(_query: str) -> None:
        raise AnsweredError(429, **headers)

    with pytest.raises(CallFailed) as failed:
        asked(of_object(fail, HERE))
    assert failed.value.pause == pause


def test_a_secret_in_an_exception_is_blanked() -> None:
    def fail(_query: str) -> None:
        raise ValueError("denied for topsecretvalue")

    with pytest.raises(CallFailed) as failed:
        asked(of_object(fail, Surroundings(environ={}, secrets=Secrets({"TOKEN": "topsecretvalue"}))))
    assert "topsecret" not in str(failed.value)
    assert "denied for ***" in str(failed.value)


def test_what_cannot_be_read_ends_the_recording() -> None:
    with pytest.raises(InputError, match="returned nothing"):
        asked(of_object(lambda _query: None, HERE))


class NeedsMore:
    def __init__(self, index: str) -> None:
        self.index = index


class Broken:
    def run(self, query: str) -> list[str]:
        return [query]

    def setup(self) -> None:
        raise RuntimeError("no index")

    def versions(self) -> str:
        return "1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (NeedsMore, r"the class cannot be made without arguments: TypeError: .* 'index'$"),
        (7, "is neither a function nor an object with a method `run`: 7"),
    ],
)
def test_what_cannot_be_asked_is_refused(given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        of_object(given, HERE)


def test_a_setup_that_fails_is_explained_and_gives_standard_output_back() -> None:
    system, before = of_object(Broken(), HERE), sys.stdout
    with pytest.raises(InputError, match=r"Broken: setup\(\) failed: RuntimeError: no index \(at tests/record"):
        system.setup()
    assert sys.stdout is before


def test_versions_must_be_a_mapping() -> None:
    with pytest.raises(InputError, match=r"versions\(\) returned '1', not a mapping"):
        of_object(Broken(), HERE).versions()


def test_the_place_is_the_last_line_of_the_users_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception is raised deep in a library; what its user can look at is where it was called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("import json\n\ndef retrieve(query):\n    return json.loads('{')\n")
    from ragcontract.record.adapters.user_code import imported

    with pytest.raises(CallFailed, match=r"\(at own.py:4\)"):
        asked(of_object(imported("own.py:retrieve", tmp_path), HERE))


class Leaves:
    """Ends the program wherever it is called."""

    def setup(self) -> None:
        sys.exit(1)

    async def run(self, query: str) -> list[str]:
        if query == "leave":
            sys.exit(1)
        return [query]


def test_code_that_ends_the_program_when_it_is_set_up_is_an_error_of_input() -> None:
    with pytest.raises(InputError, match=r"setup\(\) failed: SystemExit: 1"):
        of_object(Leaves, HERE).setup()


def test_a_class_that_ends_the_program_is_an_error_of_input() -> None:
    class Ends:
        def __init__(self) -> None:
            sys.exit(1)

    with pytest.raises(InputError, match="SystemExit: 1"):
        of_object(Ends, HERE)


def test_asynchronous_code_that_ends_the_program_fails_and_others_are_asked_on() -> None:
    system = of_object(Leaves, HERE)
    with pytest.raises(CallFailed, match="SystemExit: 1"):
        system.ask("leave", context(seconds=5))
    assert doc_ids(system.ask("stay", context(seconds=5))) == ["stay"]
    system.teardown()
