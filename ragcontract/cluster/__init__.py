"""Spark as a source: runs are read and scored on a cluster, whose counts come here."""
