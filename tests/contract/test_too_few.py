"""Limits that their queries cannot carry are one sentence for each size of limit."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import golden
from tests.contract.linting import findings

END = "which needs 100; add queries, or allow more"  # fewer where less is tested: without tags, 80
Limit = float | str


def noted(
    folder: Path, tags: Mapping[str, tuple[int, Limit]], untagged: int = 0, overall: Limit | None = None
) -> list[tuple[str, str]]:
    """Return line and message of each note on limits on a drop, with a limit for the queries of each tag."""
    of_queries = [tag for tag, (queries, _) in tags.items() for _ in range(queries)] + [""] * untagged
    rows = [golden(f"q{at}", query=f"{at}?", tags=[tag] if tag else []) for at, tag in enumerate(of_queries)]
    limits = {tag: {"fail_on": {"mrr_drop_gt": limit}} for tag, (_, limit) in tags.items()}
    overall_limit = {} if overall is None else {"mrr_drop_gt": overall}
    config = {"fail_on": {"mode": "significant", **overall_limit}, "tags": limits}
    return [(finding.line, finding.message) for finding in findings(folder, rows, config=config, of_limits=True)]


def test_all_tags_with_one_limit_are_one_sentence_at_the_line_of_the_first(tmp_path: Path) -> None:
    which = "2 tags of 10 to 12 queries ('billing' and 'refunds')"
    assert noted(tmp_path, {"billing": (10, 0.05), "refunds": (12, 0.05)}) == [
        ("8", f"{which} cannot carry an allowed drop of 0.05, {END}")
    ]


def test_of_many_tags_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    ((_, message),) = noted(tmp_path, {f"tag{number}": (5, 0.05) for number in range(12)})
    which = "12 tags of 5 queries ('tag0', 'tag1', 'tag2', 'tag3', 'tag4' and 7 more)"
    assert message == f"{which} cannot carry an allowed drop of 0.05, {END.replace('100', '140')}"


def test_limits_of_another_size_and_those_over_all_queries_are_sentences_of_their_own(tmp_path: Path) -> None:
    found = noted(tmp_path, {"one": (1, 0.05), "two": (10, "10%")}, untagged=29, overall=0.05)
    assert [message for _, message in found] == [
        f"40 queries cannot carry an allowed drop of 0.05, {END}",
        f"a tag of 1 query ('one') cannot carry an allowed drop of 0.05, {END}",
        f"a tag of 10 queries ('two') cannot carry an allowed drop of 10%, {END.replace('100', '50')}",
    ]


@pytest.mark.parametrize("queries", [79, 80])
def test_nothing_is_said_where_every_limit_has_enough(queries: int, tmp_path: Path) -> None:
    assert len(noted(tmp_path, {}, untagged=queries, overall=0.05)) == (queries < 80)
