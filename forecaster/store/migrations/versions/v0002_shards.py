"""State learned from the workloads of each shard."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """One table more; the forecaster before it looks at none that it does not know."""
    op.create_table(
        "shards",
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("of", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("observed", sa.LargeBinary, nullable=False),
        sa.Column("origins", sa.LargeBinary, nullable=False),
    )
