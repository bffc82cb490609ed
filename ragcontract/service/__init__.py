"""The team service: the history of all projects behind an API. It is an extra, which no other command imports."""
