"""The command line: its commands, the options they share, what it prints."""
