"""A database of the service: what it keeps, and what it says if it cannot."""

import pytest
from sqlalchemy.exc import IntegrityError

from ragcontract.service.database import Database
from ragcontract.service.tables import projects


def test_what_was_written_is_read(database: Database) -> None:
    row = {"slug": "docs", "name": "docs", "secret": "s", "created_at": 1}
    number = database.write(lambda connection: connection.execute(projects.insert().values(row)).inserted_primary_key)
    assert number == (1,)
    with database.read() as connection:
        assert [dict(each._mapping) | row for each in connection.execute(projects.select())] == [
            {**dict.fromkeys(projects.columns.keys()), "id": 1} | row
        ]


def test_the_message_of_a_write_that_fails_has_nothing_of_what_was_written(database: Database) -> None:
    row = {"slug": "docs", "name": "docs", "secret": "very-private", "created_at": 1}
    database.write(lambda connection: connection.execute(projects.insert().values(row)))
    with pytest.raises(IntegrityError) as failure:
        database.write(lambda connection: connection.execute(projects.insert().values(row)))
    assert "very-private" not in str(failure.value)
