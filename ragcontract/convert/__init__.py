"""Conversion of golden queries and runs from and to the formats of other tools."""
