"""The command line: commands, shared options and terminal output."""
