"""The report as a self-contained HTML page."""
