"""Run files and stored baselines: their records, readers and writers."""
