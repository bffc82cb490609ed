"""Make all tables, their indexes, and the triggers that keep what was recorded.

A migration never changes, so it uses nothing that may change.
"""

from alembic import op

revision, down_revision = "0001", None

TYPES = {
    "sqlite": {"serial": "INTEGER", "number": "INTEGER", "double": "DOUBLE", "bytes": "BLOB", "by_bytes": ""},
    "postgresql": {
        "serial": "BIGSERIAL",
        "number": "BIGINT",
        "double": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "by_bytes": ' COLLATE "C"',
    },
}
TABLES = """
CREATE TABLE projects (
    id {serial} NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    repository TEXT,
    branch TEXT,
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE TABLE blobs (
    sha256 CHAR(64) NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('report', 'results', 'golden')),
    bytes BIGINT NOT NULL,
    body {bytes} NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE TABLE uploads (
    sha256 CHAR(64) NOT NULL,
    sender TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (sha256, sender),
    FOREIGN KEY(sha256) REFERENCES blobs (sha256) ON DELETE CASCADE
);
CREATE TABLE runs (
    id {serial} NOT NULL PRIMARY KEY,
    project_id {number} NOT NULL,
    key TEXT{by_bytes} NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('ci', 'service')),
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'blocked', 'failed', 'cancelled')),
    attempt INTEGER DEFAULT 0 NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    cancel BIGINT,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    commit_sha TEXT,
    branch TEXT,
    event TEXT,
    pull_request BIGINT,
    ci_run BIGINT,
    ci_attempt BIGINT,
    verdict TEXT,
    summary TEXT,
    entry TEXT,
    report CHAR(64),
    results CHAR(64),
    golden CHAR(64),
    problem TEXT,
    log TEXT,
    UNIQUE (project_id, key),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    FOREIGN KEY(report) REFERENCES blobs (sha256),
    FOREIGN KEY(results) REFERENCES blobs (sha256),
    FOREIGN KEY(golden) REFERENCES blobs (sha256)
);
CREATE INDEX runs_at_commit ON runs (project_id, commit_sha);
CREATE INDEX runs_newest ON runs (project_id, created_at DESC, id DESC);
CREATE INDEX runs_of_golden ON runs (golden, project_id);
CREATE INDEX runs_of_report ON runs (report, project_id);
CREATE INDEX runs_of_results ON runs (results, project_id);
CREATE INDEX runs_waiting ON runs (created_at, id) WHERE state IN ('queued', 'running');
CREATE TABLE points (
    project_id {number} NOT NULL,
    metric TEXT NOT NULL,
    tag TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    run_id {number} NOT NULL,
    value {double},
    status TEXT,
    PRIMARY KEY (project_id, metric, tag, at, run_id),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE INDEX points_of_run ON points (run_id);
CREATE TABLE broken (
    project_id {number} NOT NULL,
    query_id TEXT NOT NULL,
    run_id {number} NOT NULL,
    rules TEXT NOT NULL,
    PRIMARY KEY (project_id, query_id, run_id),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE INDEX broken_of_run ON broken (run_id);
CREATE TABLE trends (
    project_id {number} NOT NULL PRIMARY KEY,
    run_id {number} NOT NULL,
    golden CHAR(64),
    computed_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    ranks {bytes},
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE interactions (
    id {serial} NOT NULL PRIMARY KEY,
    project_id {number} NOT NULL,
    external_id TEXT NOT NULL,
    source TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    query TEXT NOT NULL,
    query_sha CHAR(64) NOT NULL,
    response TEXT,
    error TEXT,
    results TEXT,
    latency_ms {double},
    confidence {double},
    feedback SMALLINT,
    user_sha CHAR(64),
    flags INTEGER DEFAULT 0 NOT NULL,
    tags TEXT,
    UNIQUE (project_id, external_id),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE INDEX interactions_flagged ON interactions (project_id, asked_at DESC) WHERE flags > 0;
CREATE INDEX interactions_newest ON interactions (project_id, asked_at DESC);
CREATE INDEX interactions_of_user ON interactions (project_id, user_sha) WHERE user_sha IS NOT NULL;
CREATE TABLE daily (
    project_id {number} NOT NULL,
    day BIGINT NOT NULL,
    monitor TEXT NOT NULL,
    n BIGINT NOT NULL,
    value {double},
    z {double},
    alarm SMALLINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (project_id, day, monitor),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE TABLE candidates (
    id {serial} NOT NULL PRIMARY KEY,
    project_id {number} NOT NULL,
    query_sha CHAR(64) NOT NULL,
    query TEXT NOT NULL,
    interaction_id {number},
    reason TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('new', 'accepted', 'rejected')),
    row TEXT,
    decided_by TEXT,
    decided_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (project_id, query_sha),
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    FOREIGN KEY(interaction_id) REFERENCES interactions (id) ON DELETE SET NULL
);
CREATE INDEX candidates_of_interaction ON candidates (interaction_id);
CREATE INDEX candidates_waiting ON candidates (project_id, state, created_at);
CREATE TABLE alerts (
    id {serial} NOT NULL PRIMARY KEY,
    project_id {number},
    dedupe TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    tries INTEGER DEFAULT 0 NOT NULL,
    next_try_at BIGINT NOT NULL,
    delivered_at BIGINT,
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE INDEX alerts_waiting ON alerts (next_try_at) WHERE delivered_at IS NULL;
CREATE TABLE users (
    id {serial} NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);
CREATE TABLE tokens (
    id {serial} NOT NULL PRIMARY KEY,
    user_id {number},
    name TEXT NOT NULL,
    prefix TEXT NOT NULL UNIQUE,
    sha256 CHAR(64) NOT NULL,
    scopes TEXT NOT NULL,
    project_id {number},
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT,
    FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
    FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE INDEX tokens_of_user ON tokens (user_id);
CREATE TABLE sessions (
    sha256 CHAR(64) NOT NULL PRIMARY KEY,
    user_id {number} NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE TABLE tasks (
    name TEXT NOT NULL PRIMARY KEY,
    next_at BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    last_error TEXT
);
CREATE TABLE audit (
    id {serial} NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT,
    ip TEXT
);
CREATE INDEX audit_newest ON audit (at);
CREATE TABLE deletions (
    reason TEXT NOT NULL PRIMARY KEY
)
"""
KEPT = "NOT EXISTS (SELECT 1 FROM deletions)"  # nothing is deleted because of its age
IN_A_PROJECT = "EXISTS (SELECT 1 FROM projects WHERE id = OLD.project_id)"  # which is not being deleted
NAMED = "EXISTS (SELECT 1 FROM runs WHERE report = OLD.sha256 OR results = OLD.sha256 OR golden = OLD.sha256)"
FIXED = ("id", "project_id", "key", "entry", "verdict", "report", "results", "golden")
CHANGED = " OR ".join(f"OLD.{name} IS NOT NULL AND (NEW.{name} IS NULL OR NEW.{name} <> OLD.{name})" for name in FIXED)
TRIGGERS = (
    ("points", "UPDATE", "TRUE", "points never change"),
    ("points", "DELETE", f"{KEPT} AND {IN_A_PROJECT}", "points go with their project, or by age"),
    ("runs", "UPDATE", CHANGED, "what a run has recorded never changes"),
    (
        "runs",
        "DELETE",
        f"OLD.entry IS NOT NULL AND {KEPT} AND {IN_A_PROJECT}",
        "runs with an entry go with their project, or by age",
    ),
    ("blobs", "UPDATE", "TRUE", "blobs never change"),
    ("blobs", "DELETE", NAMED, "a run names this blob"),
    ("audit", "UPDATE", "TRUE", "the audit log never changes"),
    ("audit", "DELETE", KEPT, "rows of the audit log go by age"),
)


def refusing(dialect: str, table: str, event: str, condition: str, reason: str) -> list[str]:
    """Return the statements that make a trigger: it refuses an event for each row that meets a condition.

    The condition names the columns of the row ``OLD.column`` and ``NEW.column``. On both databases the error is that
    of a violated constraint.
    """
    name = f"{table}_{event.lower()}"
    when = f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW"
    if dialect == "sqlite":
        return [f"{when} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{reason}'); END"]
    raising = f"RAISE EXCEPTION '{reason}' USING ERRCODE = 'integrity_constraint_violation'"
    row = "NEW" if event == "UPDATE" else "OLD"
    body = f"BEGIN IF {condition} THEN {raising}; END IF; RETURN {row}; END"
    return [
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        f"{when} EXECUTE FUNCTION {name}()",
    ]


def upgrade() -> None:
    """Make the tables and triggers."""
    dialect = op.get_bind().dialect.name
    for statement in TABLES.format_map(TYPES[dialect]).split(";\n"):
        op.execute(statement)
    for trigger in TRIGGERS:
        for statement in refusing(dialect, *trigger):
            op.execute(statement)
