"""The only code that knows GitHub: what the runner says, its log commands and files, its API."""
