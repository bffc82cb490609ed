"""Rules of one query, a module for each family."""
