"""Kinds of systems that can be recorded: a module each, with a line in :mod:`ragcontract.record.target_registry`."""
