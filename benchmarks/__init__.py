"""Measurements whose results stand in the documentation; each is a command."""
