"""Core types used by all other packages: records, protocols, errors, ids, numbers and text."""
