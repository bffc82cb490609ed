"""Make what production traffic needs: days that are measured, what they are compared with, and what is counted.

A project says how long its interactions are kept, and since which day its monitors have to be computed again.
"""

from alembic import op

from ragcontract.service.migrations.v0001_tables import TYPES

revision, down_revision = "0004", "0003"
STATEMENTS = """
ALTER TABLE projects ADD COLUMN keep_days BIGINT;
ALTER TABLE projects ADD COLUMN unmeasured_from BIGINT;
ALTER TABLE candidates ADD COLUMN asked BIGINT DEFAULT 1 NOT NULL;
CREATE INDEX interactions_of_source ON interactions (project_id, source, asked_at DESC);
CREATE TABLE tallies (
    project_id {number} NOT NULL,
    day BIGINT NOT NULL,
    name TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (project_id, day, name),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE TABLE sketches (
    project_id {number} NOT NULL,
    day BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (project_id, day, kind),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE TABLE accepted_levels (
    project_id {number} NOT NULL,
    monitor TEXT NOT NULL,
    day BIGINT NOT NULL,
    accepted_by TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, monitor),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
"""


def upgrade() -> None:
    """Make the columns, the index and the tables."""
    for statement in STATEMENTS.format(**TYPES[op.get_bind().dialect.name]).split(";"):
        if statement.strip():
            op.execute(statement)
