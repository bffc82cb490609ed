"""Let the service run checks itself: a run waits under a key of its own until it is recorded.

Who starts a run may say why, and its key becomes the id of its entry.
"""

from alembic import op

from ragcontract.service.migrations.v0001_tables import FIXED, refusing

revision, down_revision = "0003", "0002"
CHANGED = " OR ".join(
    f"OLD.{name} IS NOT NULL AND (NEW.{name} IS NULL OR NEW.{name} <> OLD.{name})" for name in FIXED if name != "key"
)
CONDITION = f"OLD.entry IS NOT NULL AND NEW.key <> OLD.key OR {CHANGED}"


def upgrade() -> None:
    """Make a column, and the trigger anew."""
    op.execute("ALTER TABLE runs ADD COLUMN note TEXT")
    dialect = op.get_bind().dialect.name
    op.execute("DROP TRIGGER runs_update" + ("" if dialect == "sqlite" else " ON runs"))
    if dialect != "sqlite":
        op.execute("DROP FUNCTION runs_update()")
    for statement in refusing(dialect, "runs", "UPDATE", CONDITION, "what a run has recorded never changes"):
        op.execute(statement)
