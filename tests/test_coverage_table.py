"""The table of how often bounds hold is made by ``python -m benchmarks.coverage``."""

import re

from benchmarks import coverage, tables

TABLE = tables.table(tables.PAGE.read_text(encoding="utf-8"), coverage.PART)


def test_the_table_has_every_number_of_queries_and_kind_of_weights() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", TABLE, re.MULTILINE)
    assert rows == [(str(queries), weights) for queries in coverage.QUERIES for weights in coverage.WEIGHTS]


def test_the_command_makes_a_table_of_this_form() -> None:
    found = [
        coverage.Held(case=case, lower=0.95, upper=0.96, changed=case.queries * case.churn) for case in coverage.cases()
    ]
    head, rule, *_ = coverage.table(found)
    assert TABLE.startswith(f"{head}\n{rule}\n")


def test_where_ten_queries_change_the_means_are_within_two_points_of_what_is_promised() -> None:
    dense = [row.split("|")[7:9] for row in TABLE.splitlines() if re.match(r"\| \d+", row)]
    means = [float(cell.split("%")[0]) for cells in dense for cell in cells if cell.strip()]
    assert means
    assert all(93 <= mean <= 97 for mean in means)
