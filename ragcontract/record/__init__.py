"""Asks a system every golden query and writes what it did as a run; only `rag-contract record` imports this."""
