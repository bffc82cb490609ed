"""Ask a system every golden query and write its answers as a run; only `rag-contract record` imports this."""
