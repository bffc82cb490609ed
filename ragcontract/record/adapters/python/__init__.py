"""Python code as a target: in this process, or in one of its own."""
