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


def test_an_enterprise_servers_addresses_are_taken_as_they_are() -> None:
    context = Context.from_environ(
        {"GITHUB_API_URL": "https://ghe.example/api/v3/", "GITHUB_GRAPHQL_URL": "https://ghe.example/api/graphql"}
    )
    assert context.api_url == "https://ghe.example/api/v3"
    assert context.graphql_url == "https://ghe.example/api/graphql"


def test_the_token_does_not_show_itself() -> None:
    context = Context.from_environ({"INPUT_GITHUB-TOKEN": " ghs_secret\n"})
    assert context.token == Token("ghs_secret")
    assert "secret" not in f"{context} {context!r} {context.token} {[context.token]}"
