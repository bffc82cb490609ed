"""The tables of the service, in the terms of SQLAlchemy Core: one definition for SQLite and Postgres.

Times are milliseconds since 1970, UTC. Digests are SHA-256 in hexadecimal digits. What belongs to a project goes with
it. The migrations make triggers that keep what was recorded from being changed.

A test holds these definitions against what the migrations make.
"""

from collections.abc import Mapping

from sqlalchemy import (
    CHAR,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)

metadata = MetaData()
# SQLite numbers rows by itself only if the key is called INTEGER, which has 64 bits there as well.
NUMBER = BigInteger().with_variant(Integer, "sqlite")
DIGEST = CHAR(64)


def _id() -> "Column[int]":
    return Column("id", NUMBER, primary_key=True)


def _project(*, primary_key: bool = False, nullable: bool = False) -> "Column[int]":
    to = ForeignKey("projects.id", ondelete="CASCADE")
    return Column("project_id", NUMBER, to, primary_key=primary_key, nullable=nullable)


def _run(*, primary_key: bool = False) -> "Column[int]":
    return Column("run_id", NUMBER, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=primary_key, nullable=False)


def _number(name: str, *, nullable: bool = False) -> "Column[int]":
    return Column(name, BigInteger, nullable=nullable)


def _day() -> "Column[int]":
    return Column("day", BigInteger, primary_key=True, autoincrement=False)


def _text(name: str, *, nullable: bool = False) -> "Column[str]":
    return Column(name, Text, nullable=nullable)


projects = Table(
    "projects",
    metadata,
    _id(),
    Column("slug", Text, unique=True, nullable=False),  # the contract's folder in other stores
    _text("name"),  # the contract; empty for the one without a name
    _text("repository", nullable=True),
    _text("branch", nullable=True),  # whose runs are the project's state
    _text("secret"),  # for digests of this project's users and drawings
    _number("created_at"),
    _number("keep_runs", nullable=True),  # what project.yml says; 0 for all
    _number("keep_days", nullable=True),  # what project.yml says, of interactions
    _number("unmeasured_from", nullable=True),  # the first day whose monitors have to be computed, again
)
blobs = Table(
    "blobs",
    metadata,
    Column("sha256", DIGEST, primary_key=True),
    Column("kind", Text, CheckConstraint("kind IN ('report', 'results', 'golden')"), nullable=False),
    _number("bytes"),  # before it was compressed
    Column("body", LargeBinary, nullable=False),  # zlib
    _number("created_at"),
)
# Who has sent a blob may name it in an entry: a digest alone must not give access to what another project sent.
uploads = Table(
    "uploads",
    metadata,
    Column("sha256", DIGEST, ForeignKey("blobs.sha256", ondelete="CASCADE"), primary_key=True),
    Column("sender", Text, primary_key=True),
    _number("at"),
)
runs = Table(
    "runs",
    metadata,
    _id(),
    _project(),
    Column("key", Text().with_variant(Text(collation="C"), "postgresql"), nullable=False),  # of the entry
    Column("origin", Text, CheckConstraint("origin IN ('ci', 'service')"), nullable=False),
    Column(
        "state",
        Text,
        CheckConstraint("state IN ('queued', 'running', 'completed', 'blocked', 'failed', 'cancelled')"),
        nullable=False,
    ),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    _text("lease_owner", nullable=True),
    _number("lease_until", nullable=True),
    _number("cancel", nullable=True),  # when somebody asked for it
    _text("created_by", nullable=True),
    _number("created_at"),  # of a run of CI, when it was checked
    _number("started_at", nullable=True),
    _number("finished_at", nullable=True),
    _text("commit_sha", nullable=True),
    _text("branch", nullable=True),
    _text("event", nullable=True),
    _number("pull_request", nullable=True),
    _number("ci_run", nullable=True),
    _number("ci_attempt", nullable=True),
    _text("verdict", nullable=True),
    _text("summary", nullable=True),
    _text("entry", nullable=True),  # as it was sent, byte by byte
    Column("report", DIGEST, ForeignKey("blobs.sha256"), nullable=True),
    Column("results", DIGEST, ForeignKey("blobs.sha256"), nullable=True),
    Column("golden", DIGEST, ForeignKey("blobs.sha256"), nullable=True),
    _text("problem", nullable=True),
    _text("log", nullable=True),
    _text("note", nullable=True),  # why somebody started it
    UniqueConstraint("project_id", "key"),
)
Index("runs_newest", runs.c.project_id, runs.c.created_at.desc(), runs.c.id.desc())
Index("runs_at_commit", runs.c.project_id, runs.c.commit_sha)
Index("runs_of_verdict", runs.c.project_id, runs.c.branch, runs.c.verdict, runs.c.created_at, runs.c.id)
_BLOCKED = text("state = 'blocked'")
Index("runs_blocked", runs.c.project_id, runs.c.created_at, sqlite_where=_BLOCKED, postgresql_where=_BLOCKED)
_WAITING = text("state IN ('queued', 'running')")
Index("runs_waiting", runs.c.created_at, runs.c.id, sqlite_where=_WAITING, postgresql_where=_WAITING)
Index("runs_of_report", runs.c.report, runs.c.project_id)
Index("runs_of_results", runs.c.results, runs.c.project_id)
Index("runs_of_golden", runs.c.golden, runs.c.project_id)
points = Table(
    "points",
    metadata,
    _project(primary_key=True),
    Column("metric", Text, primary_key=True),
    Column("tag", Text, primary_key=True, server_default=text("''")),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    _run(primary_key=True),
    Column("value", Double, nullable=True),
    _text("status", nullable=True),
    Index("points_of_run", "run_id"),
)
broken = Table(
    "broken",
    metadata,
    _project(primary_key=True),
    Column("query_id", Text, primary_key=True),  # long ones are digests: see ragcontract.service.database
    _run(primary_key=True),
    _text("rules"),  # JSON: a list of the names of the rules
    Index("broken_of_run", "run_id"),
)
trends = Table(
    "trends",
    metadata,
    _project(primary_key=True),
    _run(),
    Column("golden", DIGEST, nullable=True),
    _number("computed_at"),
    _text("body"),  # JSON: series computed again, levels, change points
    Column("ranks", LargeBinary, nullable=True),  # JSON, zlib: see ragcontract.service.query_record
)
interactions = Table(
    "interactions",
    metadata,
    _id(),
    _project(),
    _text("external_id"),
    _text("source"),
    _number("asked_at"),
    _number("received_at"),
    _text("query"),
    Column("query_sha", DIGEST, nullable=False),
    _text("response", nullable=True),
    _text("error", nullable=True),
    _text("results", nullable=True),
    Column("latency_ms", Double, nullable=True),
    Column("confidence", Double, nullable=True),
    Column("feedback", SmallInteger, nullable=True),
    Column("user_sha", DIGEST, nullable=True),
    Column("flags", Integer, nullable=False, server_default=text("0")),
    _text("tags", nullable=True),
    UniqueConstraint("project_id", "external_id"),
)
NEWEST_ASKED = (interactions.c.asked_at.desc(), interactions.c.id.desc())
Index("interactions_newest", interactions.c.project_id, *NEWEST_ASKED)
Index("interactions_of_source", interactions.c.project_id, interactions.c.source, *NEWEST_ASKED)
# An index for each flag, because a rare flag is not found among many interactions with another one. Only flagged
# interactions are in them, so that they cost little.
FLAGGED: Mapping[str, TextClause] = {
    "flagged": text("flags > 0"),
    "error": text("(flags & 1) > 0"),
    "empty": text("(flags & 2) > 0"),
    "slow": text("(flags & 4) > 0"),
    "low_confidence": text("(flags & 8) > 0"),
    "negative_feedback": text("(flags & 16) > 0"),
}
for _name, _is_flagged in FLAGGED.items():
    Index(
        f"interactions_{_name}",
        *(interactions.c.project_id, *NEWEST_ASKED),
        sqlite_where=_is_flagged,
        postgresql_where=_is_flagged,
    )
Index(
    "interactions_of_user",
    interactions.c.project_id,
    interactions.c.user_sha,
    sqlite_where=text("user_sha IS NOT NULL"),
    postgresql_where=text("user_sha IS NOT NULL"),
)
# A day is the time at which it begins.
daily = Table(
    "daily",
    metadata,
    _project(primary_key=True),
    _day(),
    Column("monitor", Text, primary_key=True),
    _number("n"),
    Column("value", Double, nullable=True),
    Column("z", Double, nullable=True),
    Column("alarm", SmallInteger, nullable=False, server_default=text("0")),
)
IS_ALARM = text("alarm <> 0")
Index("daily_alarms", daily.c.project_id, daily.c.day, sqlite_where=IS_ALARM, postgresql_where=IS_ALARM)
tallies = Table(
    "tallies",
    metadata,
    _project(primary_key=True),
    _day(),
    Column("name", Text, primary_key=True),  # of what is counted
    _number("number"),
)
sketches = Table(
    "sketches",
    metadata,
    _project(primary_key=True),
    _day(),
    Column("kind", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # what later days are compared with
)
# From this day on, a monitor learns anew, because somebody has said that its new level is right.
accepted_levels = Table(
    "accepted_levels",
    metadata,
    _project(primary_key=True),
    Column("monitor", Text, primary_key=True),
    _number("day"),
    _text("accepted_by"),
    _number("accepted_at"),
)
candidates = Table(
    "candidates",
    metadata,
    _id(),
    _project(),
    Column("query_sha", DIGEST, nullable=False),
    _text("query"),
    Column("interaction_id", NUMBER, ForeignKey("interactions.id", ondelete="SET NULL"), nullable=True),
    _text("reason"),
    Column("state", Text, CheckConstraint("state IN ('new', 'accepted', 'rejected')"), nullable=False),
    _text("row", nullable=True),
    _text("decided_by", nullable=True),
    _number("decided_at", nullable=True),
    _number("created_at"),
    Column("asked", BigInteger, nullable=False, server_default=text("1")),  # how often, of what was sampled
    _text("golden_id", nullable=True),  # of the golden row of an accepted one; long ones are digests
    UniqueConstraint("project_id", "query_sha"),
    Index("candidates_of_interaction", "interaction_id"),
    Index("candidates_of_golden_id", "project_id", "golden_id", unique=True),
)
Index(
    "candidates_by_asked",
    *(candidates.c.project_id, candidates.c.state, candidates.c.asked.desc(), candidates.c.id.desc()),
)
_DECIDED = text("decided_at IS NOT NULL")
Index(
    "candidates_decided",
    *(candidates.c.project_id, candidates.c.state, candidates.c.decided_at.desc(), candidates.c.id.desc()),
    sqlite_where=_DECIDED,
    postgresql_where=_DECIDED,
)
alerts = Table(
    "alerts",
    metadata,
    _id(),
    _project(nullable=True),
    Column("dedupe", Text, unique=True, nullable=False),
    _text("kind"),
    _text("payload"),
    _number("created_at"),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    _number("next_try_at"),
    _number("delivered_at", nullable=True),
)
_WAITS = text("delivered_at IS NULL")
Index("alerts_waiting", alerts.c.next_try_at, sqlite_where=_WAITS, postgresql_where=_WAITS)
users = Table(
    "users",
    metadata,
    _id(),
    Column("name", Text, unique=True, nullable=False),
    Column("role", Text, CheckConstraint("role IN ('viewer', 'editor', 'admin')"), nullable=False),
    _number("created_at"),
    _number("disabled_at", nullable=True),
)
# The keys of users, whose role counts; of machines, which have scopes and no user; and links that log in once.
tokens = Table(
    "tokens",
    metadata,
    _id(),
    Column("user_id", NUMBER, ForeignKey("users.id", ondelete="CASCADE"), nullable=True),
    _text("name"),
    Column("prefix", Text, unique=True, nullable=False),
    Column("sha256", DIGEST, nullable=False),
    _text("scopes"),  # with blanks between them; empty for the key of a user, `link` for a link that logs in
    _project(nullable=True),
    _number("created_at"),
    _number("expires_at", nullable=True),
    _number("last_used_at", nullable=True),
    _number("revoked_at", nullable=True),
    Index("tokens_of_user", "user_id"),
)
sessions = Table(
    "sessions",
    metadata,
    Column("sha256", DIGEST, primary_key=True),
    Column("user_id", NUMBER, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    _number("created_at"),
    _number("seen_at"),
    Index("sessions_of_user", "user_id"),
)
tasks = Table(
    "tasks",
    metadata,
    Column("name", Text, primary_key=True),
    _number("next_at"),
    _text("lease_owner", nullable=True),
    _number("lease_until", nullable=True),
    _text("last_error", nullable=True),
)
audit = Table(
    "audit",
    metadata,
    _id(),
    _number("at"),
    _text("actor"),
    _text("action"),
    _text("subject"),
    _text("detail", nullable=True),
    _text("ip", nullable=True),
    Index("audit_newest", "at"),
)
# A row is here while a transaction deletes what is frozen, because of its age: triggers look for it. It is deleted
# before the transaction ends, so that no other one sees it.
deletions = Table("deletions", metadata, Column("reason", Text, primary_key=True))
