"""The spare pods of each decision."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    """One column more, empty for what was decided before; the forecaster before it writes none."""
    for table in ("workloads", "decisions"):
        op.add_column(table, sa.Column("spare", sa.Integer))
