"""Scoring: ranks, metrics of a query, means over queries. Pure."""
