"""Points in time: what is no time is refused with what was expected, and so is one without an offset."""

import msgspec
import pytest
from msgspec import Struct

from ragcontract.core.run import Moment
from ragcontract.files.schema import mismatches


class Dated(Struct):
    at: Moment


@pytest.mark.parametrize("at", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.25+01:00", "2026-12-01 23:59:59-08:00"])
def test_a_time_with_its_offset_is_read(at: str) -> None:
    assert msgspec.convert({"at": at}, Dated).at.tzinfo is not None
    assert mismatches({"at": at}, Dated) == []


@pytest.mark.parametrize("at", ["2026-01-31T12:00:00", "2026-13-01T12:00:00Z", "yesterday", "2026-01-31", "", 5])
def test_anything_else_is_refused_with_an_example(at: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"at": at}, Dated)
    (found,) = mismatches({"at": at}, Dated)
    assert "expected a time as 2026-01-31T12:00:00Z" in found.message
