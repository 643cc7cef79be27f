"""The ledger: workloads with the latest decision about each, changes of decisions, sums of scores."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    """Create the tables as they were before there were revisions."""
    version = op.create_table("schema", sa.Column("version", sa.Integer, primary_key=True, autoincrement=False))
    op.bulk_insert(version, [{"version": 1}])
    op.create_table(
        "workloads",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("namespace", sa.String(253), nullable=False),
        sa.Column("kind", sa.String(253), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        *_decision(),
        sa.UniqueConstraint("namespace", "name", "kind"),
    )
    op.create_table(
        "decisions",
        sa.Column("workload", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        *_decision(),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("resources_message", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("decisions_at", "decisions", ["at"])
    op.create_table(
        "scores",
        sa.Column("workload", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("signal", sa.String(16), primary_key=True),
        sa.Column("model", sa.String(64), primary_key=True),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("covered", sa.Integer, nullable=False),
        sa.Column("quantiles", sa.Double, nullable=False),
        sa.Column("absolute_error", sa.Double, nullable=False),
        sa.Column("pinball_loss", sa.Double, nullable=False),
        sa.Column("actual", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("scores_at", "scores", ["at"])


def _decision() -> list[sa.Column[object]]:
    return [
        sa.Column("replicas_now", sa.Integer, nullable=False),
        sa.Column("replicas", sa.Integer),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("cpu_request", sa.Double),
        sa.Column("cpu_limit", sa.Double),
        sa.Column("memory_request", sa.Double),
        sa.Column("memory_limit", sa.Double),
        sa.Column("resources_verdict", sa.String(16), nullable=False),
        sa.Column("resources_reason", sa.String(32), nullable=False),
    ]
