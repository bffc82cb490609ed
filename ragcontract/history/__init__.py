"""Runs over time: an entry for each recorded check, in a branch of the repository or in a folder."""
