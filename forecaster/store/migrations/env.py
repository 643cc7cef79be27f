"""Entry point of Alembic: runs the revisions on the given connection and in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
