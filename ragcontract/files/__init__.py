"""Reading, validating, hashing and atomically writing files."""
