"""Reads what was recorded of a metric: its means over all queries, or those with a tag, in the runs of a branch."""

from collections.abc import Sequence

from sqlalchemy import Connection, Row, exists, select

from ragcontract.service.database import index_key
from ragcontract.service.known_contract import newest_run, project_branch
from ragcontract.service.tables import points, runs

ALL = ""  # the tag of means over all queries


def recorded_points(
    connection: Connection, project_id: int, metric: str, tag: str, since: int
) -> "Sequence[Row[int, str, int, str | None, float | None, str | None]]":
    """Return the means in the runs of the project's branch since a time, the oldest first."""
    columns = runs.c.id, runs.c.key, points.c.at, runs.c.commit_sha, points.c.value, points.c.status
    wanted = (
        points.c.project_id == project_id,
        points.c.metric == index_key(metric),
        points.c.tag == index_key(tag),
        points.c.at >= since,
        runs.c.branch.is_not_distinct_from(project_branch(connection, project_id)),
    )
    query = select(*columns).join(runs, runs.c.id == points.c.run_id).where(*wanted)
    return connection.execute(query.order_by(points.c.at, points.c.run_id)).all()


def is_recorded(connection: Connection, project_id: int, metric: str, tag: str = ALL) -> bool:
    """Return whether any run of a project, of any branch and time, has a metric."""
    of_metric = points.c.project_id == project_id, points.c.metric == index_key(metric)
    return bool(connection.execute(select(exists().where(*of_metric, points.c.tag == index_key(tag)))).scalar())


def newest_names(connection: Connection, project_id: int) -> tuple[list[str], list[str]]:
    """Return the metrics and the tags of the newest run of the project's branch, sorted."""
    run = newest_run(connection, project_id)
    named = select(points.c.metric, points.c.tag).where(points.c.run_id == (run.id if run else None))
    rows = connection.execute(named).all()
    return sorted({row.metric for row in rows}), sorted({row.tag for row in rows} - {ALL})
