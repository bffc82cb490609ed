"""The report as GitHub Flavored Markdown."""
