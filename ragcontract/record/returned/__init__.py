"""Turn what a system returns into a response with results."""
