"""Kinds of systems that can be recorded: a module each, and its line in :mod:`ragcontract.record.target_registry`."""
