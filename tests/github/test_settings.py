"""The inputs of the action, as the runner's environment gives them."""

import pytest

from ragcontract.evaluation.source import Inputs
from ragcontract.github.settings import ActionSettings
from tests.runner import declared_inputs


def settings(**inputs: str) -> ActionSettings:
    return ActionSettings.from_environ(
        declared_inputs({name.replace("_", "-"): value for name, value in inputs.items()})
    )


def test_the_defaults_of_action_yml_are_the_defaults_of_the_record() -> None:
    assert settings() == ActionSettings() == ActionSettings.from_environ({})


def test_each_line_is_a_path_and_empty_lines_are_none() -> None:
    found = settings(golden=" a.jsonl \n\n b c.jsonl\r\n", run="x", baseline="\n")
    assert (found.inputs.golden, found.inputs.run, found.inputs.baseline) == (("a.jsonl", "b c.jsonl"), ("x",), None)


def test_every_input_is_read() -> None:
    found = settings(
        mode="check",
        golden="g",
        run="r",
        baseline="b",
        config="c.yml",
        k="7",
        repeats="true",
        report_md="r.md",
        report_json="r.json",
        report_json_detail="changed",
        junit="j.xml",
        report_html="r.html",
        no_answers="true",
        comment="on-change",
        comment_required="true",
        comment_body_file="body.md",
        pull_request="12",
        github_timeout="9",
        name=" docs ",
        job_index="3",
        enforce="false",
        accept_label="retrieval: accepted",
        history="branch",
        history_branch="past",
        history_record="any-branch",
        working_directory="sub",
    )
    assert found == ActionSettings(
        mode="check",
        inputs=Inputs.named(
            golden=("g",),
            run=("r",),
            baseline=("b",),
            config="c.yml",
            judgments=(),
            calibration=None,
            k=7,
            repeats=True,
            no_answers=True,
        ),
        report_md="r.md",
        report_json="r.json",
        report_json_detail="changed",
        junit="j.xml",
        report_html="r.html",
        comment="on-change",
        comment_required=True,
        comment_body_file="body.md",
        pull_request=12,
        github_timeout=9,
        name="docs",
        job_index="3",
        enforce=False,
        accept_label="retrieval: accepted",
        history="branch",
        history_branch="past",
        history_record="any-branch",
        working_directory="sub",
    )


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "1e3", "٣", "1000000001", "9" * 5000])
def test_what_is_no_whole_number_in_range_is_a_problem_and_counts_as_not_given(value: str) -> None:
    found = settings(k=value)
    assert found.inputs.k is None
    assert len(found.problems) == 1
    assert found.problems[0].startswith("input k: expected a whole number from 1 to 1,000,000,000, found ")


def test_the_timeout_ends_within_an_hour() -> None:
    assert settings(github_timeout="3600").github_timeout == 3600
    wrong = settings(github_timeout="3601")
    assert wrong.github_timeout == 150
    assert "from 1 to 3,600" in wrong.problems[0]


@pytest.mark.parametrize("value", ["always", "on-change", "on-failure", "never"])
def test_the_four_ways_to_comment(value: str) -> None:
    found = settings(comment=value)
    assert (found.comment, found.problems) == (value, ())


@pytest.mark.parametrize("value", ["default-branch", "any-branch", "never"])
def test_the_three_ways_to_record(value: str) -> None:
    found = settings(history_record=value)
    assert (found.history_record, found.problems) == (value, ())


WRONG_HISTORY = {
    "history": ("a\nb", "input history: expected one folder, one address, or branch, found 'a\\nb'"),
    "history_branch": ("a\nb", "input history-branch: expected the name of one branch, found 'a\\nb'"),
    "history_record": (
        "alway",
        "input history-record: expected default-branch or any-branch or never, found 'alway'",
    ),
}


@pytest.mark.parametrize(("name", "wrong"), WRONG_HISTORY.items())
def test_an_input_about_the_history_that_is_wrong_counts_as_not_given(name: str, wrong: tuple[str, str]) -> None:
    value, problem = wrong
    found = settings(**{name: value})
    assert found.problems == (problem,)
    assert (found.history, found.history_branch, found.history_record) == ("", "rag-contract-history", "default-branch")


def test_a_choice_that_is_not_there_names_those_that_are_and_the_nearest() -> None:
    found = settings(mode="post_comment")
    assert found.mode == "check"
    assert found.problems == (
        "input mode: expected check or post-comment, found 'post_comment'; did you mean 'post-comment'?",
    )


def test_a_comment_cannot_be_required_where_there_is_never_one() -> None:
    assert "comment-required" in settings(comment="never", comment_required="true").problems[0]


def test_posting_reads_report_json_by_default_or_the_one_that_is_named() -> None:
    assert settings(mode="post-comment") == ActionSettings(mode="post-comment", report_json="report.json")
    assert settings(mode="post-comment", report_json="artifact/r.json").report_json == "artifact/r.json"


def test_posting_takes_no_body_file_and_the_message_names_the_input_that_replaces_it() -> None:
    (problem,) = settings(mode="post-comment", comment_body_file="comment.md").problems
    assert problem == (
        "input comment-body-file: mode post-comment renders the check's report.json instead; upload that file in the "
        "first workflow, name it here with the input report-json, and remove comment-body-file"
    )
    assert settings(mode="check", comment_body_file="comment.md").problems == ()


def test_posting_is_not_never() -> None:
    (problem,) = settings(mode="post-comment", comment="never").problems
    assert problem.startswith("input comment: ")


def test_the_token_is_not_among_the_settings() -> None:
    assert "ghs_secret" not in repr(settings(github_token="ghs_secret"))
