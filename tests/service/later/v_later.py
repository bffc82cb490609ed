"""A revision that only the tests have, after the newest one: it makes a table again that others refer to."""

import sqlalchemy as sa
from alembic import op

from ragcontract.service.migrate import newest

revision, down_revision = "later", newest()


def upgrade() -> None:
    with op.batch_alter_table(
        "projects", recreate="always" if op.get_bind().dialect.name == "sqlite" else "auto"
    ) as projects:
        projects.add_column(sa.Column("colour", sa.Text(), nullable=False, server_default="blue"))
        projects.alter_column("name", type_=sa.String(200))
    op.create_table("notes", sa.Column("id", sa.Integer, primary_key=True))
