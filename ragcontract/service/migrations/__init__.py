"""What each version of the tables adds to the one before: a module is a migration of Alembic."""
