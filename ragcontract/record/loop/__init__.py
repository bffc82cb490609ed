"""Asking every golden query: several at a time, within limits, again after failures, into a journal."""
