"""The migrations of the database: what each version of the tables adds to the one before."""
