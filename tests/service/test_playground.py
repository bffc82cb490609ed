"""Asking the system of a mounted project: real processes, which answer, or do something wrong."""

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from ragcontract.core import bounds
from ragcontract.service.audit import Author
from ragcontract.service.database import Database, now_ms
from ragcontract.service.playground.playground import Playground, TargetBusyError, free_question
from ragcontract.service.production.interactions import (
    Interaction,
    add_candidate,
    add_interaction,
    interaction_numbered,
    question_digest,
)
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.redaction import redactor
from ragcontract.service.tables import audit, candidates, interactions, projects
from tests.builders import golden
from tests.service.askers import new_user
from tests.service.listening import until
from tests.service.mounting import is_gone
from tests.service.served import Served
from tests.service.targets import ANSWERS, BROKEN, mounted, project

QUESTION = {"query": "Where is the first text?"}
SECRET, OURS = "token-of-the-search-8841", "HUNTER2_1177_WE_HAVE"  # with no piece in common


class Asked:
    """A service with mounted projects, and an editor who asks."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.served = Served(database, projects=folder)
        self.key = database.write(lambda connection: new_user(connection, "ed", "editor"))

    def post(self, body: Any = QUESTION, slug: str = "docs") -> Any:
        return self.served.request("POST", f"/projects/{slug}/playground", key=self.key, json=body)

    def ask(self, slug: str = "docs", **body: Any) -> dict[str, Any]:
        """Return an answer that is as it should be."""
        answer = self.post(body or QUESTION, slug)
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def page(self, slug: str = "docs", **form: str) -> Any:
        """Return what the page shows of an answer."""
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "text/html"}
        return self.served.client.post(f"/p/{slug}/playground", data=form, headers=headers)

    def stored(self) -> list[Any]:
        with self.database.read() as connection:
            return [*connection.execute(select(interactions).order_by(interactions.c.id)).mappings()]

    def all_that_is_stored(self) -> str:
        with self.database.read() as connection:
            tables = interactions, candidates, audit
            return str([connection.execute(select(table)).all() for table in tables])


@pytest.fixture
def asked(database: Database, tmp_path: Path) -> Iterator[Asked]:
    folder = project(tmp_path / "projects")
    asked = Asked(database, folder)
    with asked.served:
        yield asked


@pytest.fixture
def kind() -> str:
    """Only SQLite, for what no database has a part in."""
    return "sqlite"


def test_an_answer_has_results_response_and_tool_calls(asked: Asked) -> None:
    answer = asked.ask()
    assert answer["error"] is None
    assert answer["response"] == "You said: Where is the first text?"
    assert answer["results"] == [{"doc_id": "d1", "score": 0.5, "text": "The first text."}, {"doc_id": "d2"}]
    assert answer["tool_calls"] == [{"name": "look_up", "arguments": QUESTION}]
    assert answer["latency_ms"] >= 0
    assert answer["golden"] is None
    assert [near["id"] for near in answer["nearest"]] == ["q1"]
    assert answer["nearest"][0]["likeness"] == 1


def test_two_turns(asked: Asked) -> None:
    first = asked.ask(query="Hello")
    second = asked.ask(query="And then?", messages=first["conversation"])
    assert second["response"] == "You said: Hello and You said: Hello and And then?"
    roles = [message["role"] for message in second["conversation"]]
    assert roles == ["user", "assistant", "user", "assistant"]


RULES = [
    {"type": "must_contain", "value": "first"},
    {"type": "must_contain", "value": "second"},
    {"type": "must_call_tool", "tool": "look_up"},
]


def test_a_golden_query_is_judged_by_its_rules_and_metrics(asked: Asked) -> None:
    query = golden("q1", "d2", query="Where is the first text?", must_rank_at_most=1, rules=RULES)
    project(asked.folder, queries=[query, golden("q2")], config="k: 5\nminimums: {mrr_at_k: 0.9}\n")
    judged = asked.ask(golden_id="q1")["golden"]
    assert (judged["id"], judged["status"], judged["ranks"]) == ("q1", "fail", {"d2": 2})
    holds = [(rule["rule"], rule["holds"]) for rule in judged["rules"]]
    assert ("must_rank_at_most", False) in holds
    assert [each for name, each in holds if name == "must_contain"] == [True, False]
    assert ("must_call_tool", True) in holds
    assert all(bool(rule["problems"]) != rule["holds"] for rule in judged["rules"])
    assert {metric["name"]: metric["value"] for metric in judged["metrics"]}["mrr_at_5"] == 0.5


def test_another_text_is_judged_by_the_rules_of_the_golden_query(asked: Asked) -> None:
    project(asked.folder, queries=[golden("q1", "d1", rules=[{"type": "must_contain", "value": "other words"}])])
    assert asked.ask(golden_id="q1", query="In other words?")["golden"]["status"] == "pass"
    assert asked.ask(golden_id="q1")["golden"]["status"] == "fail"


def test_a_golden_conversation_is_asked_turn_by_turn(asked: Asked) -> None:
    turns = [{"query": "Hello"}, {"query": "Bye", "rules": [{"type": "must_contain", "value": "Hello"}]}]
    talk = {"id": "talk", "query": "A greeting", "turns": turns}
    project(asked.folder, queries=[talk])
    answer = asked.ask(golden_id="talk")
    said = [message["content"] for message in answer["messages"]]
    assert said == ["Hello", "You said: Hello", "Bye", "You said: Hello and You said: Hello and Bye"]
    assert answer["golden"]["status"] == "pass"
    assert asked.post({"golden_id": "talk", "query": "Something else"}).status_code == 422
    assert asked.post({"golden_id": "talk", "messages": [{"role": "user", "content": "x"}]}).status_code == 422


def test_scores_of_other_tools_are_left_out(asked: Asked) -> None:
    config = "k: 5\nmetrics:\n  faithfulness: {from: scores}\n"
    rule = {"type": "min_score", "metric": "faithfulness", "value": 0.5}
    project(asked.folder, queries=[golden("q1", "d1", rules=[rule])], config=config)
    judged = asked.ask(golden_id="q1")["golden"]
    assert (judged["status"], judged["left_out"]) == ("pass", ["faithfulness"])


def test_metadata_and_versions_of_the_files_count(asked: Asked) -> None:
    code = "def answer(query, metadata):\n    return {'response': str(metadata), 'results': ['d1']}\n"
    record = "python:\n  object: target.py:answer\nversions:\n  llm_model: big-7\n"
    project(asked.folder, code, queries=[golden("q1", "d1", metadata={"user": "kari"})], record=record)
    answer = asked.ask(golden_id="q1")
    assert answer["response"] == "{'user': 'kari'}"
    assert answer["versions"] == {"llm_model": "big-7"}


@pytest.mark.parametrize("name", [name for name in BROKEN if name not in {"hangs", "does not start"}])
def test_what_a_system_does_wrong_is_a_sentence_and_the_service_answers_on(name: str, asked: Asked) -> None:
    project(asked.folder, BROKEN[name])
    answer = asked.post()
    assert answer.status_code == 200, answer.text
    error = answer.json()["error"]
    if name == "prints":  # which is no fault
        assert error is None
        assert answer.json()["results"] == [{"doc_id": "d1"}]
    else:
        assert error.startswith(("the system failed: ", "the system cannot be used: "))
        assert "\n" not in error
        assert len(error) < 4_000
    assert asked.page(query="again").status_code == 200
    project(asked.folder, ANSWERS, record="# changed\npython:\n  object: target.py:answer\n")
    assert asked.ask()["response"] == "You said: Where is the first text?"


@pytest.mark.parametrize("name", ["hangs", "does not start"])
def test_a_system_that_hangs_is_killed_in_time(name: str, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = bounds.PLAYGROUND_SECONDS
    monkeypatch.setattr(bounds, "PLAYGROUND_SECONDS", 3)
    project(asked.folder, BROKEN[name])
    answer = asked.post()
    assert answer.status_code == 504
    assert "3 s" in answer.json()["detail"]
    assert [row["error"] for row in asked.stored()] == [answer.json()["detail"]]
    page = asked.page(query="again")
    assert page.status_code == 504
    assert "the system did not answer" in page.text or "could not be started" in page.text
    monkeypatch.setattr(bounds, "PLAYGROUND_SECONDS", seconds)
    project(asked.folder, ANSWERS, record="# changed\npython:\n  object: target.py:answer\n")
    assert asked.ask()["error"] is None


def test_the_children_of_a_system_that_hangs_are_killed_too(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    start = f"print(subprocess.Popen(['sleep', '600']).pid, file=open({str(child)!r}, 'w'), flush=True)"
    hang = f"{start}\n    time.sleep(600 if query == 'hang' else 0)\n    return []"
    project(asked.folder, f"import subprocess, time\ndef answer(query):\n    {hang}\n")
    assert asked.ask()["error"] is None  # so that it has started, however long that takes
    child.unlink()
    monkeypatch.setattr(bounds, "PLAYGROUND_SECONDS", 4)
    assert asked.post({"query": "hang"}).status_code == 504
    number = int(child.read_text())
    until(lambda: is_gone(number))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"record": "python:\n  object: missing.py:answer\n"}, "there is no such file"),
        ({"record": "pyton: {}\n"}, "names no target"),
        ({"record": ""}, "is empty"),
        ({"file": "name: Docs\npython: /no/such/python\n"}, "cannot be started"),
        ({"file": "name: Docs\nsecrets: [NOT_SET_ANYWHERE]\n"}, "NOT_SET_ANYWHERE: there is no environment variable"),
    ],
)
def test_a_system_that_cannot_start_says_why(files: dict[str, Any], why: str, asked: Asked) -> None:
    project(asked.folder, **files)
    answer = asked.ask()
    assert why in answer["error"]
    assert "Traceback" not in answer["error"]


def test_a_project_without_a_record_file_is_409(asked: Asked) -> None:
    (asked.folder / "docs/record.yml").unlink()
    answer = asked.post()
    assert (answer.status_code, "record.yml" in answer.json()["detail"]) == (409, True)
    asked.database.write(
        lambda connection: connection.execute(
            projects.insert().values(slug="ci", name="ci", secret="x", created_at=now_ms())
        )
    )
    assert asked.post(slug="ci").status_code == 409
    (asked.folder / "docs/project.yml").write_text("nam: x\n")
    assert asked.post().status_code == 409
    assert asked.stored() == []


def test_a_link_in_place_of_the_record_file_is_not_followed(asked: Asked, tmp_path: Path) -> None:
    target = asked.folder / "docs/record.yml"
    target.rename(tmp_path / "elsewhere.yml")
    target.symlink_to(tmp_path / "elsewhere.yml")
    answer = asked.post()
    assert (answer.status_code, "record.yml: is a link" in answer.json()["detail"]) == (409, True)


def test_a_process_lives_on_until_its_files_change(asked: Asked) -> None:
    code = "import os\ndef answer(query):\n    return {'response': str(os.getpid()), 'results': []}\n"
    project(asked.folder, code)
    first = int(asked.ask()["response"])
    assert int(asked.ask()["response"]) == first
    project(asked.folder, code, file="name: Other\n")
    second = int(asked.ask()["response"])
    assert second != first
    until(lambda: is_gone(first))


def test_a_system_that_was_corrected_answers_at_once(asked: Asked) -> None:
    code = "import words\ndef answer(query):\n    return {'response': words.TEXT, 'results': []}\n"
    words = project(asked.folder, code) / "docs/words.py"
    words.write_text("TEXT = 'wrong'\n")
    assert asked.ask()["response"] == "wrong"
    words.write_text("TEXT = 'correct'\n")
    assert asked.ask()["response"] == "correct"


WAITS = """
import pathlib, time
HERE = pathlib.Path(__file__).parent
def answer(query):
    (HERE / f"asked-{query}").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return {"response": query, "results": []}
"""


def test_a_second_question_is_refused_while_the_first_is_answered(asked: Asked) -> None:
    home = project(asked.folder, WAITS) / "docs"
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(asked.post({"query": "1"})))
    thread.start()
    until((home / "asked-1").exists)
    busy = asked.post({"query": "2"})
    page = asked.page(query="2")
    (home / "go").touch()
    thread.join()
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "5")
    assert page.status_code == 503
    assert "one at a time" in page.text
    assert answers[0].json()["response"] == "1"
    assert asked.ask(query="3")["response"] == "3"
    assert not (home / "asked-2").exists()


def test_a_few_processes_at_most_live_and_idle_ones_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PLAYGROUND_PROCESSES", 2)
    code = "import os\ndef answer(query):\n    return {'response': str(os.getpid()), 'results': []}\n"
    for slug in ("a", "b", "c"):
        project(tmp_path, code, slug=slug)
    playground = Playground()

    def asked_of(slug: str) -> int:
        row = playground.ask(mounted(tmp_path, slug), free_question("x")).row
        assert row
        return int(row["response"])

    first, second = asked_of("a"), asked_of("b")
    assert asked_of("a") == first
    third = asked_of("c")  # in place of b, which was asked before a
    assert is_gone(second)
    assert not is_gone(first)
    playground.end_idle()
    assert not is_gone(first)
    monkeypatch.setattr(bounds, "PLAYGROUND_IDLE", 0)
    playground.end_idle()
    assert is_gone(first)
    assert is_gone(third)
    playground.close()
    with pytest.raises(TargetBusyError):
        playground.ask(mounted(tmp_path, "a"), free_question("x"))


EVIL = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\ndef run(query):\n    return []\n"


FIELDS = ("module", "class", "command", "path", "url", "python", "object", "adapter_module")


def test_nothing_of_a_request_is_code(asked: Asked) -> None:
    home = asked.folder / "docs"
    (home / "evil.py").write_text(EVIL)
    values = [
        "evil:run",
        "evil.py:run",
        str(home / "evil.py"),
        f"file://{home}/evil.py",
        "http://127.0.0.1:9/",
        "../docs",
    ]
    for value, field in itertools.product(values, FIELDS):
        assert asked.post({"query": "x", field: value}).status_code == 422
        message = {"role": "user", "content": "x", field: value}
        assert asked.post({"query": "x", "messages": [message]}).status_code == 422
        assert asked.post({"query": "x", "messages": [{"role": value, "content": "x"}]}).status_code == 422
        assert asked.post({"golden_id": value}).status_code == 422
        assert asked.page(**{"query": "", field: value}).status_code == 422
    for value in values:
        assert asked.ask(query=value, messages=[{"role": "user", "content": value}])["response"].endswith(value)
        assert asked.page(query="x", golden_id=value).status_code == 422
        message = {"role": "user", "content": "x", "module": value}
        assert asked.page(query="x", messages=json.dumps([message])).status_code == 422
        assert asked.post(slug=value.replace("/", "%2f")).status_code in {404, 405}
    assert not (home / "ran").exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "  "},
        {"query": 1},
        {"query": "x" * 20_001},
        {"query": "x", "messages": [{"role": "user", "content": "x"}] * 101},
        {"query": "x", "messages": [{"role": "tool", "content": "x"}]},
        {"query": "x", "messages": [{"role": "user", "content": "x" * 20_001}]},
        {"query": "x", "messages": "x"},
        {"golden_id": "unknown"},
        {"golden_id": 1},
        [],
    ],
)
def test_a_body_that_is_no_question_is_422(body: Any, asked: Asked) -> None:
    assert asked.post(body).status_code == 422
    assert asked.stored() == []


def test_the_environment_of_the_service_is_hidden_from_a_system(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "RAG_CONTRACT_ALERT_WEBHOOK", "RAG_CONTRACT_DB", "AWS_SECRET_ACCESS_KEY", "SOMETHING"):
        monkeypatch.setenv(name, OURS)
    monkeypatch.setenv("SEARCH_TOKEN", SECRET)
    code = "import os\ndef answer(query):\n    return {'response': repr(dict(os.environ)), 'results': []}\n"
    asked = Asked(database, project(tmp_path / "projects", code, file="secrets: [SEARCH_TOKEN, PGPASSWORD]\n"))
    with asked.served:
        assert "PGPASSWORD: there is no environment variable" in asked.ask()["error"]
        project(tmp_path / "projects", code, file="secrets: [SEARCH_TOKEN]\n")
        response = asked.ask()["response"]
    assert "'PATH'" in response
    assert "'SEARCH_TOKEN': '***'" in response
    for hidden in (OURS, SECRET):
        assert hidden not in response
        assert hidden not in asked.all_that_is_stored()


LEAKS = {
    "response": "return {'response': f'it is {TOKEN}', 'results': [{'doc_id': TOKEN, 'text': TOKEN}]}",
    "tool": "return {'response': '', 'results': [], 'tool_calls': [{'name': 'x', 'arguments': {'key': TOKEN}}]}",
    "exception": "raise ValueError(TOKEN)",
    "last words": "print(TOKEN, flush=True); os._exit(1)",
    "nonsense": "return {TOKEN: 1}",
    "version": "return {'response': '', 'results': [], 'llm_model': TOKEN}",
}


@pytest.mark.parametrize("place", LEAKS)
def test_a_secret_of_a_system_is_in_no_answer_page_or_row(
    place: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_TOKEN", SECRET)
    code = f"import os\nTOKEN = os.environ['SEARCH_TOKEN']\ndef answer(query):\n    {LEAKS[place]}\n"
    asked = Asked(database, project(tmp_path / "projects", code, file="secrets: [SEARCH_TOKEN]\n"))
    with asked.served:
        shown = [asked.post().text, asked.post({"golden_id": "q1"}).text, asked.page(query="x").text]
    assert all(SECRET not in text for text in shown)
    assert "***" in "".join(shown)
    assert SECRET not in asked.all_that_is_stored()


def test_what_is_stored_is_redacted_as_the_project_says(asked: Asked) -> None:
    text = "My card 4111 1111 1111 1111, mail ana@example.com"
    answer = asked.ask(query=text)
    assert answer["query"] == text
    project(asked.folder, file="redact: []\n")
    asked.ask(query=text)
    first, second = asked.stored()
    assert (first["query"], first["source"]) == ("My card [card], mail [email]", "playground")
    assert first["response"] == "You said: My card [card], mail [email]"
    assert json.loads(first["results"]) == [{"doc_id": "d1", "score": 0.5}, {"doc_id": "d2"}]
    assert second["query"] == text
    assert first["external_id"] != second["external_id"]
    assert first["latency_ms"] >= 0


def test_long_answers_are_cut(asked: Asked) -> None:
    code = "def answer(query):\n    return {'response': 'x' * 200_000, 'results': [f'd{n}' for n in range(300)]}\n"
    project(asked.folder, code)
    answer = asked.ask()
    assert len(answer["response"]) == bounds.PLAYGROUND_TEXT
    assert (len(answer["results"]), answer["more_results"]) == (100, 200)


@pytest.mark.parametrize("text", ["\0", "\x1b[31m", "\u202e", "{{ 7*7 }}", "' OR 1=1 --", "\U0001f600" * 100, "ק"])
def test_any_text_can_be_asked(text: str, asked: Asked) -> None:
    answer = asked.ask(query=f"x{text}")
    assert answer["response"] == f"You said: {answer['query']}"
    assert asked.page(query=f"x{text}").status_code == 200


class TestOnBothDatabases:
    """What the databases have a part in."""

    @pytest.fixture(params=["sqlite", "postgres"])
    def kind(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def test_a_question_becomes_a_candidate_once(self, asked: Asked) -> None:
        numbers = [asked.ask(query=query)["id"] for query in ("What is new?", "what is NEW", "Where is the first text")]
        golden_digests = {question_digest("Where is the first text?")}

        def made(number: int, author: Author) -> str:
            def job(connection: Any) -> str:
                row = interaction_numbered(connection, 1, number)
                assert row
                return add_candidate(connection, 1, row, golden_digests, author)

            return asked.database.write(job)

        author = Author(actor="user:ed", at=now_ms())
        assert [made(number, author) for number in numbers] == ["made", "known", "golden"]
        with asked.database.read() as connection:
            (row,) = connection.execute(select(candidates)).mappings()
            assert interaction_numbered(connection, 2, numbers[0]) is None
        assert (row["query"], row["reason"], row["state"]) == ("What is new?", "playground", "new")


def test_the_process_needs_nothing_of_the_services_extra(tmp_path: Path) -> None:
    code = "import sys\ndef answer(query):\n    return {'response': ' '.join(sys.modules), 'results': []}\n"
    home = project(tmp_path, code) / "docs"
    line = b'{"id": 1, "query": "x", "query_id": "x", "top": 1}\n'
    command = [sys.executable, "-m", "ragcontract.service.playground.target_process", str(home / "record.yml")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(line)
        process.stdin.flush()
        ready, answer = (json.loads(process.stdout.readline()) for _ in range(2))
        process.stdin.close()
    assert ready["ready"] is True
    loaded = {name.partition(".")[0] for name in answer["response"].split()}
    assert loaded.isdisjoint({"litestar", "sqlalchemy", "alembic", "uvicorn", "jinja2", "prometheus_client", "psycopg"})
    assert "ragcontract" in loaded


LEAVES = """
import pathlib, subprocess, time
def answer(query):
    if query != "hang":
        return []
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    pathlib.Path(PATH).write_text(str(child.pid))
    time.sleep(600)
"""


def test_what_left_the_group_of_its_process_is_killed_as_well(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    project(asked.folder, LEAVES.replace("PATH", repr(str(started))))
    assert asked.ask()["error"] is None  # so that it has started, however long that takes
    monkeypatch.setattr(bounds, "PLAYGROUND_SECONDS", 4)
    assert asked.post({"query": "hang"}).status_code == 504
    until(lambda: is_gone(int(started.read_text())))


FORGES = """
from ragcontract.record.adapters.isolated_child import IsolatedChild
say = IsolatedChild._say
def forged(self, line):
    FORGED
    self._answers.write(json.dumps(line).encode() + b"\\n")
    self._answers.flush()
IsolatedChild._say = forged
import json
def answer(query):
    return "said"
"""


@pytest.mark.parametrize(
    ("forged", "error"),
    {
        "line['sources'] = 5": "sources: Expected `array`, got `int`",
        "line['sources'] = [{'file': 5}]": "sources: ",
        "line['versions'] = ['a']": None,
        "line['versions'] = 'text'": None,
        "line['versions'] = {'a': {'b': 5}}": None,
    }.items(),
)
def test_lines_that_code_has_forged_are_no_fault_of_the_service(asked: Asked, forged: str, error: str | None) -> None:
    project(asked.folder, FORGES.replace("FORGED", forged))
    answer = asked.ask()
    if error:
        assert error in answer["error"]
    else:
        assert (answer["error"], answer["response"]) == (None, "said")


def test_of_a_huge_answer_the_beginning_is_stored(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PLAYGROUND_TEXT", 100)
    card = "4111 1111 1111 1111"
    project(asked.folder, f"def answer(query):\n    return {{'response': 'x' * 85 + {card!r} + 'y' * 1000000}}\n")
    asked.ask()
    (stored,) = asked.stored()
    assert len(stored["response"]) <= 100
    assert "4111" not in stored["response"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_card_at_the_end_of_a_long_error_is_not_stored(database: Database) -> None:
    error = f"{'x' * (bounds.FAILURE - 5)} 4111 1111 1111 1111"
    asked = Interaction(query="Where is it?", error=error)

    def store(connection: Connection) -> int:
        add_project(connection, "docs", "Docs", 0)
        return add_interaction(connection, 1, asked, source="playground", redactor=redactor(), now=1)

    database.write(store)
    with database.read() as connection:
        (stored,) = connection.execute(select(interactions.c.error)).scalars()
    assert stored
    assert "411" not in stored
