"""Make the indexes with which the first page counts runs, and finds the first of those with one verdict."""

from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Make the indexes."""
    op.execute("CREATE INDEX runs_of_verdict ON runs (project_id, branch, verdict, created_at, id)")
    op.execute("CREATE INDEX runs_blocked ON runs (project_id, created_at) WHERE state = 'blocked'")
