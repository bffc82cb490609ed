"""Make what production traffic needs: days that are measured, what they are compared with, and what is counted.

A project says how long its interactions are kept, and since which day its monitors have to be computed again. Lists of
interactions and candidates have indexes in their order, so that no page reads more than it shows.
"""

from alembic import op

from ragcontract.service.migrations.v0001_tables import TYPES

revision, down_revision = "0004", "0003"
STATEMENTS = """
ALTER TABLE projects ADD COLUMN keep_days BIGINT;
ALTER TABLE projects ADD COLUMN unmeasured_from BIGINT;
ALTER TABLE candidates ADD COLUMN asked BIGINT DEFAULT 1 NOT NULL;
ALTER TABLE candidates ADD COLUMN golden_id TEXT;
DROP INDEX candidates_waiting;
CREATE INDEX candidates_by_asked ON candidates (project_id, state, asked DESC, id DESC);
CREATE UNIQUE INDEX candidates_of_golden_id ON candidates (project_id, golden_id);
CREATE INDEX daily_alarms ON daily (project_id, day) WHERE alarm <> 0;
DROP INDEX interactions_newest;
DROP INDEX interactions_flagged;
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

DECIDED = "ON candidates (project_id, state, decided_at DESC, id DESC) WHERE decided_at IS NOT NULL"
ASKED = "ON interactions (project_id, {}asked_at DESC, id DESC)"
FLAGGED = {
    "flagged": "flags > 0",
    "error": "(flags & 1) > 0",
    "empty": "(flags & 2) > 0",
    "slow": "(flags & 4) > 0",
    "low_confidence": "(flags & 8) > 0",
    "negative_feedback": "(flags & 16) > 0",
}
INDEXES = (
    f"CREATE INDEX interactions_newest {ASKED.format('')}",
    f"CREATE INDEX interactions_of_source {ASKED.format('source, ')}",
    *(f"CREATE INDEX interactions_{name} {ASKED.format('')} WHERE {flagged}" for name, flagged in FLAGGED.items()),
    f"CREATE INDEX candidates_decided {DECIDED}",
)


def upgrade() -> None:
    """Make the columns, the tables and the indexes."""
    for statement in STATEMENTS.format(**TYPES[op.get_bind().dialect.name]).split(";"):
        if statement.strip():
            op.execute(statement)
    for statement in INDEXES:
        op.execute(statement)
