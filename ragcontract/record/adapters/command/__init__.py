"""Commands as targets: a process for each question, or one that serves all of them."""
