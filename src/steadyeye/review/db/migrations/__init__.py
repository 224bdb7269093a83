"""The history of the review's tables, as Alembic keeps it."""
