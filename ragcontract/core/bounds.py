"""All numeric limits, so that every size, length, count and time is bounded: one per line.

The comment on each line says, separated by semicolons: the unit; what is limited; what happens beyond the limit. The
table in docs/limits.md is generated from these comments.
"""

# Text in input files
ID = 2_000  # characters; an id of a query, document or chunk; exit code 2
TAG = 200  # characters; a tag; exit code 2
KEY = 300  # characters; a key of the configuration; exit code 2
CONFIG_DEPTH = 20  # levels; nesting of the configuration; exit code 2

# Sizes of input files
LINE = 64 << 20  # bytes; a line of JSON lines; exit code 2
CONFIG = 1 << 20  # bytes; the configuration; exit code 2
UNPACKED = 16 << 20  # bytes; a line or a baseline in a gzip file that is smaller than 1/24 of that; exit code 2
UNPACKED_RATIO = 24  # times the gzip file's size; a line or a baseline in a larger gzip file; exit code 2
UNPACKED_TOTAL = 64 << 20  # bytes; all lines of a gzip file that is smaller than 1/100 of that; exit code 2
UNPACKED_TOTAL_RATIO = 100  # times the gzip file's size; all lines of a larger gzip file; exit code 2
EXPLAINED = 4 << 20  # bytes; a row whose errors are all reported; of a larger one, only the first is

FAULTY_ROWS = 10_000  # rows; faulty rows of JSON lines that are counted; the rest of the file is not read

# Reports
CELL = 200  # characters; a cell of a table in the terminal; cut, with an ellipsis
