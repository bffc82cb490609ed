"""The report and its formats. Pure: nothing here reads or writes files."""
