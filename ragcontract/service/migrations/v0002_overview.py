"""Make what the pages and the retention of runs need.

The first page counts runs, and finds the first of those with one verdict. A project may say how many runs it keeps.
"""

from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Make two indexes and a column."""
    op.execute("CREATE INDEX runs_of_verdict ON runs (project_id, branch, verdict, created_at, id)")
    op.execute("CREATE INDEX runs_blocked ON runs (project_id, created_at) WHERE state = 'blocked'")
    op.execute("ALTER TABLE projects ADD COLUMN keep_runs BIGINT")
