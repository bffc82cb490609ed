import json
from pathlib import Path

import pytest

from ragcontract.github.context import Context, Token


def test_an_empty_environment_is_a_context_without_anything() -> None:
    context = Context.from_environ({})
    assert context.event == {}
    assert context.run == (0, 0)
    assert context.run_url == ""
    assert context.api_url == "https://api.github.com"
    assert context.graphql_url == "https://api.github.com/graphql"
    assert (context.output_file, context.summary_file) == (None, None)
    assert not context.token


def test_the_runs_page_is_known_by_its_number_whichever_attempt() -> None:
    environ = {"GITHUB_REPOSITORY": "octo/app", "GITHUB_RUN_ID": "55"}
    for attempt in ("", "1", "3"):
        context = Context.from_environ(environ | {"GITHUB_RUN_ATTEMPT": attempt})
        assert context.run_url == "https://github.com/octo/app/actions/runs/55"
    assert Context.from_environ(environ | {"GITHUB_RUN_ID": "", "GITHUB_RUN_ATTEMPT": "1"}).run_url == ""


def test_an_enterprise_servers_addresses_are_taken_as_they_are() -> None:
    context = Context.from_environ(
        {"GITHUB_API_URL": "https://ghe.example/api/v3/", "GITHUB_GRAPHQL_URL": "https://ghe.example/api/graphql"}
    )
    assert context.api_url == "https://ghe.example/api/v3"
    assert context.graphql_url == "https://ghe.example/api/graphql"


@pytest.mark.parametrize(
    ("api", "graphql"),
    [
        ("https://ghe.example/api/v3", "https://ghe.example/api/graphql"),
        ("https://ghe.example:8443/api/v3/", "https://ghe.example:8443/api/graphql"),
        ("https://api.octo.ghe.com", "https://api.octo.ghe.com/graphql"),
    ],
)
@pytest.mark.parametrize(
    "named",
    [
        "",
        "https://api.github.com/graphql",
        "http://ghe.example/api/graphql",
        "https://ghe.example:444/api/graphql",
        "https://ghe.example.net/api/graphql",
        "https://ghe.example@other.example/api/graphql",
        "https://[",
        "graphql",
    ],
)
def test_the_token_goes_to_no_other_host_than_the_apis(api: str, graphql: str, named: str) -> None:
    context = Context.from_environ({"GITHUB_API_URL": api, "GITHUB_GRAPHQL_URL": named})
    assert context.graphql_url == graphql


@pytest.mark.parametrize(
    ("event", "commit"),
    [
        ({"pull_request": {"head": {"sha": "b"}}, "workflow_run": {"head_sha": "c"}}, "b"),
        ({"workflow_run": {"head_sha": "c"}}, "c"),
        ({"workflow_run": {"head_sha": None}}, "a"),
        ({"after": "d"}, "a"),
    ],
)
def test_the_commit_is_the_one_that_people_know(tmp_path: Path, event: dict[str, object], commit: str) -> None:
    (tmp_path / "event.json").write_text(json.dumps(event))
    context = Context.from_environ({"GITHUB_SHA": "a", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})
    assert context.commit == commit


def test_the_token_does_not_show_itself() -> None:
    context = Context.from_environ({"INPUT_GITHUB-TOKEN": " ghs_secret\n"})
    assert context.token == Token("ghs_secret")
    assert "secret" not in f"{context} {context!r} {context.token} {[context.token]}"
