"""The kinds of systems that can be recorded. Each is a module with a line in ``record/target_registry.py``."""
