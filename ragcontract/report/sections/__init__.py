"""The sections of reports for people, as blocks that each format renders."""
