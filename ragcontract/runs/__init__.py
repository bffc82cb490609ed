"""Run files and stored baselines: records, readers and writers."""
