"""Judging: rules of single queries and gates on the means. Pure."""
