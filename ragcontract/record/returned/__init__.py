"""What a system may return, and how it becomes a response with results."""
