"""Limits of the team service's first page."""

from sqlalchemy import Connection

from ragcontract.service.accounts import Principal
from ragcontract.service.database import now_ms
from ragcontract.service.project_states import States, states_of
from ragcontract.service.tables import projects, runs
from ragcontract.service.web.pages.page_frame import environment
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service_accounts import database_in

READER = Principal(actor="user:ana", role="viewer")


def page_of(lab: Lab, number: int, *, of_projects: bool) -> tuple[States, str]:
    """Return the first page with as many broken projects, or with as many runs of one."""

    def fill(connection: Connection) -> None:
        for count in range(number):
            project = count + 1 if of_projects else 1
            if of_projects or count == 0:
                row = {"slug": f"p{count}", "name": f"name {count}.", "secret": "", "branch": "main", "created_at": 0}
                connection.execute(projects.insert().values(row))
            run = {"project_id": project, "key": f"{count}", "origin": "ci", "state": "blocked", "verdict": "fail"}
            connection.execute(runs.insert().values(**run, branch="main", created_at=count, summary=f"run {count}."))

    with database_in(lab) as database:
        database.write(fill)
        with database.read() as connection:
            states = states_of(connection, READER, now_ms())
    template = environment().get_template("overview.html")
    return states, template.render(asker=READER, project=None, here="", states=states, service="")


def cards(lab: Lab, number: int) -> bool:
    states, html = page_of(lab, number, of_projects=True)
    assert states.total == number
    assert html.count("<article") == len(states.shown)
    assert ("projects are shown" in html) == (len(states.shown) < number)
    return len(states.shown) == number


def newest_runs(lab: Lab, number: int) -> bool:
    states, html = page_of(lab, number, of_projects=False)
    newest = html.partition("<tbody>")[2]
    assert newest.count("<tr>") == len(states.newest)
    return "run 0." in newest


CASES: Cases = {
    "OVERVIEW_PROJECTS": Case(cards, small=4),
    "OVERVIEW_RUNS": Case(newest_runs),
}
