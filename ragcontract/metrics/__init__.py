"""Metrics of a query, with one module per family."""
