"""All GitHub-specific code: the runner's environment, workflow commands and files, and the API."""
