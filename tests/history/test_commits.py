"""The commits that a commit reaches, as GitHub lists them, and the way from a branch to one of them."""

from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.commits import Commits, reachable_by_api
from tests.github.standin import Fault, GitHub
from tests.github.test_client import client_of


def pushed(github: GitHub, number: int) -> list[str]:
    """Push commits to main; returns them, the newest first."""
    return [github.repository.commit("main", {"a": b"%d" % index}) for index in range(number)][::-1]


def reached(github: GitHub, sha: str) -> Commits:
    return reachable_by_api(client_of(github), sha)


def test_a_commit_comes_before_those_that_it_reaches(github: GitHub) -> None:
    shas = pushed(github, 5)
    commits = reached(github, shas[1])
    assert list(commits.order) == shas[1:]
    assert commits.parents == {shas[1]: (shas[2],), shas[2]: (shas[3],), shas[3]: (shas[4],), shas[4]: ()}
    assert len(github.requests) == 1


def test_the_last_300_are_listed_with_3_calls(github: GitHub) -> None:
    shas = pushed(github, 310)
    assert list(reached(github, shas[0]).order) == shas[:300]
    assert len(github.requests) == 3


def test_pages_that_are_not_full_end_after_3_calls_too(github: GitHub) -> None:
    [sha] = pushed(github, 1)
    link = {"Link": f'<{github.url}/repos/octo/app/commits?sha={sha}&per_page=100&page=2>; rel="next"'}
    rows = [{"sha": sha, "parents": []}]
    github.faults = [Fault(path=r"/commits\?", times=1, status=200, answer=rows, headers=link)]
    link = {"Link": link["Link"].replace("page=2", "page=3")}
    github.faults += [Fault(path=r"page=2", status=200, answer=[], headers=link)]
    link = {"Link": link["Link"].replace("page=3", "page=4")}
    github.faults += [Fault(path=r"page=3", status=200, answer=[], headers=link)]
    assert reached(github, sha).order == (sha,)
    assert len(github.requests) == 3


# On main: 5 merges 4 into 3, which follows 2 and 1; 4 follows 1.
NAMES = {name: name * 40 for name in "12345"}
PARENTS = {"5": "34", "4": "1", "3": "2", "2": "1", "1": "0"}
MERGED = Commits.of((name * 40, [parent * 40 for parent in parents]) for name, parents in PARENTS.items())


@pytest.mark.parametrize(
    ("tip", "ancestor", "steps"),
    [("5", "5", 0), ("5", "3", 1), ("5", "1", 3), ("5", "0", 4), ("5", "4", None), ("4", "1", 1), ("1", "5", None)],
)
def test_steps_are_counted_along_the_first_parents(tip: str, ancestor: str, steps: int | None) -> None:
    assert MERGED.first_parents_since(tip * 40, ancestor * 40) == steps


def test_a_circle_leads_nowhere() -> None:
    circle = Commits.of([("a" * 40, ["b" * 40]), ("b" * 40, ["a" * 40])])
    assert circle.first_parents_since("a" * 40, "c" * 40) is None


@pytest.mark.parametrize("rows", [[{"sha": "../x", "parents": []}], [{"parents": 7}], [{}], [1, None], []])
def test_an_answer_without_the_commit_is_an_error(github: GitHub, rows: list[Any]) -> None:
    github.faults = [Fault(status=200, answer=rows)]
    with pytest.raises(InputError, match=r"^the commits that aaaaaaaaaaaa reaches are not known: GitHub lists others$"):
        reached(github, "a" * 40)


def test_parents_in_a_wrong_shape_are_none(github: GitHub) -> None:
    rows = [{"sha": "a" * 40, "parents": [1, {"sha": 2}, {"sha": "b"}, {"sha": "b" * 40}]}, {"sha": "b" * 40}]
    github.faults = [Fault(status=200, answer=rows)]
    assert reached(github, "a" * 40).parents == {"a" * 40: ("b" * 40,), "b" * 40: ()}


def test_a_token_that_may_not_read_is_told_what_it_needs(github: GitHub) -> None:
    github.repository.access = "none"
    with pytest.raises(InputError, match=r"integration; reading them needs `permissions: contents: read`$"):
        reached(github, "a" * 40)


def test_no_more_than_the_limit_are_kept() -> None:
    assert bounds.REACHABLE == 3 * bounds.PAGE
