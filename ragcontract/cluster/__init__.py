"""Evaluation on Spark: runs are read and scored on a cluster, and the driver collects the counts."""
