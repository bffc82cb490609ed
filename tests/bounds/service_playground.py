"""Limits on the playground of the team service: what is asked, and what a system returns."""

from typing import Any

from sqlalchemy import Connection, select

from ragcontract.service.audit import Author
from ragcontract.service.database import Database
from ragcontract.service.playground import playground
from ragcontract.service.playground.playground import Playground, SlowAnswerError, free_question
from ragcontract.service.production.interactions import add_candidate
from ragcontract.service.production.question_similarity import grams_of
from ragcontract.service.tables import candidates, metadata, projects
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service import a_database
from tests.builders import golden
from tests.service.askers import new_user
from tests.service.served import Served
from tests.service.targets import mounted, project

ECHO = "def answer(query, messages=()):\n    return {'response': query, 'results': []}\n"


def filled(lab: Lab) -> Database:
    database = a_database(lab)
    database.write(metadata.create_all)
    return database


def asked(lab: Lab, code: str, body: dict[str, Any]) -> Any:
    """Return the answer of a service to a question."""
    database = filled(lab)
    with Served(database, projects=project(lab.folder / "projects", code)) as served:
        key = database.write(lambda connection: new_user(connection, "ed", "editor"))
        answer = served.request("POST", "/projects/docs/playground", key=key, json=body)
    database.close()
    return answer


def a_question(lab: Lab, size: int) -> bool:
    return bool(asked(lab, ECHO, {"query": "x" * size}).status_code == 200)


def earlier_messages(lab: Lab, number: int) -> bool:
    messages = [{"role": "user", "content": "x"}] * number
    return bool(asked(lab, ECHO, {"query": "x", "messages": messages}).status_code == 200)


def a_text(lab: Lab, size: int) -> bool:
    code = f"def answer(query):\n    return {{'response': 'x' * {size}, 'results': []}}\n"
    return bool(asked(lab, code, {"query": "x"}).json()["response"] == "x" * size)


def items(lab: Lab, number: int) -> bool:
    code = f"def answer(query):\n    return [f'd{{n}}' for n in range({number})]\n"
    answer = asked(lab, code, {"query": "x"}).json()
    assert len(answer["results"]) + answer["more_results"] == number
    return not answer["more_results"]


def golden_on_the_page(lab: Lab, number: int) -> bool:
    database = filled(lab)
    folder = project(lab.folder / "projects", queries=[golden(f"q{each}") for each in range(number)])
    with Served(database, projects=folder) as served:
        key = database.write(lambda connection: new_user(connection, "ed", "editor"))
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/html"}
        page = served.client.get("/p/docs/playground", headers=headers).text
    database.close()
    return page.count("<option") == number


def processes(lab: Lab, number: int) -> bool:
    """Return whether so many systems have a process each."""
    code = "import os\ndef answer(query):\n    return {'response': str(os.getpid()), 'results': []}\n"
    for each in range(number):
        project(lab.folder / "projects", code, slug=f"p{each}")
    made, folder = Playground(), lab.folder / "projects"

    def numbers() -> list[Any]:
        return [
            (made.ask(mounted(folder, f"p{each}"), free_question("x")).row or {})["response"] for each in range(number)
        ]

    before = numbers()
    is_whole = numbers() == before
    made.close()
    return is_whole


def watched(lab: Lab, number: int) -> bool:
    """Return whether the last of so many files of a project starts its process again."""
    code = "import os\ndef answer(query):\n    return {'response': str(os.getpid()), 'results': []}\n"
    folder = project(lab.folder / "projects", code)
    home = folder / "docs"
    last = ""
    for each in range(number - len([*home.iterdir()])):
        last = f"z{each:06}"
        (home / last).touch()
    made, asked = Playground(), mounted(folder)
    before = made.ask(asked, free_question("x")).row
    (home / last).write_text("changed")
    after = made.ask(asked, free_question("x")).row
    made.close()
    assert before
    assert after
    return bool(before["response"] != after["response"])


def idle(lab: Lab, seconds: int) -> bool:
    """Return whether a process lives on that nobody has asked for so long."""
    clock = [0.0]
    lab.patch.setattr(playground, "seconds", lambda: clock[0])
    code = "import os\ndef answer(query):\n    return {'response': str(os.getpid()), 'results': []}\n"
    made, asked = Playground(), mounted(project(lab.folder / "projects", code))
    before = made.ask(asked, free_question("x")).row
    clock[0] = float(seconds)
    made.end_idle()
    after = made.ask(asked, free_question("x")).row
    made.close()
    assert before
    assert after
    return bool(before["response"] == after["response"])


def an_answer(lab: Lab, seconds: int) -> bool:
    """Return whether a system gets so many seconds, of which it says how many it has."""
    code = "def answer(query, context):\n    return {'response': str(round(context.seconds)), 'results': []}\n"
    made, asked = Playground(), mounted(project(lab.folder / "projects", code))
    try:
        row = made.ask(asked, free_question("x")).row
    except SlowAnswerError:
        return False
    finally:
        made.close()
    assert row
    return int(row["response"]) >= seconds


def waiting(lab: Lab, number: int) -> bool:
    """Return whether a candidate is added while one fewer than this number wait."""
    database = filled(lab)

    def job(connection: Connection) -> str:
        connection.execute(projects.insert().values(slug="docs", name="docs", secret="x", created_at=0))
        common = {"project_id": 1, "reason": "playground", "state": "new", "created_at": 0}
        rows = [{**common, "query_sha": f"{each:064}", "query": f"{each}"} for each in range(number - 1)]
        if rows:
            connection.execute(candidates.insert(), rows)
        asked_row: Any = {"id": None, "query_sha": "x" * 64, "query": "x", "source": "playground"}
        return add_candidate(connection, 1, asked_row, (), Author(actor="x", at=0))

    made = database.write(job)
    with database.read() as connection:
        assert len(connection.execute(select(candidates)).all()) == number - (made == "full")
    database.close()
    return made == "made"


CASES: Cases = {
    "PLAYGROUND_QUERY": Case(a_question),
    "PLAYGROUND_MESSAGES": Case(earlier_messages),
    "PLAYGROUND_TEXT": Case(a_text, small=100),
    "PLAYGROUND_ITEMS": Case(items, small=3),
    "PLAYGROUND_GOLDEN": Case(golden_on_the_page, small=3),
    "PLAYGROUND_PROCESSES": Case(processes, small=2),
    "PLAYGROUND_FILES": Case(watched, small=10),
    "PLAYGROUND_IDLE": Case(idle),
    "PLAYGROUND_SECONDS": Case(an_answer),
    "CANDIDATES_WAITING": Case(waiting, small=3),
    "COMPARED_QUESTION": Case(lambda _lab, size: grams_of("x" * size) != grams_of("x" * (size - 1)), small=50),
}
