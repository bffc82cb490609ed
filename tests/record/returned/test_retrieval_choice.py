"""Which retrieval counts."""

import pytest

from ragcontract.record.returned.result_forms import Retrieved, that_counts


@pytest.mark.parametrize(
    ("retrieved", "counts"), [("first", ["a", "b"]), ("last", ["c"]), ("concat", ["a", "b", "c"]), (None, ["a", "b"])]
)
def test_the_first_the_last_or_all_of_them(retrieved: Retrieved | None, counts: list[str]) -> None:
    assert that_counts([["a", "b"], ["c"]], retrieved) == counts
