"""The spare pods of each decision."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    """Add one column, empty for earlier decisions; the version before it writes none."""
    for table in ("workloads", "decisions"):
        op.add_column(table, sa.Column("spare", sa.Integer))
