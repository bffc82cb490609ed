"""Where the judge is, and which key goes there."""

import pytest

from ragcontract.core.errors import InputError
from ragcontract.judge.endpoint import Endpoint, find_endpoint

OURS, OPENAIS = "sk-ours-0123456789", "sk-openai-0123456789"


def found(url: str | None = None, api: str | None = None, **environ: str) -> Endpoint:
    return find_endpoint(url, api, environ)


def key_of(endpoint: Endpoint) -> str:
    return endpoint.secrets.filled(endpoint.authorization).removeprefix("Bearer ")


def wrong(url: str | None = None, api: str | None = None, **environ: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        found(url, api, **environ)
    return raised.value.problems


def test_it_is_openai_unless_the_environment_or_the_command_line_says_otherwise() -> None:
    assert found().url == "https://api.openai.com/v1"
    assert found(RAG_CONTRACT_JUDGE_URL="http://a:1/v1").url == "http://a:1/v1"
    assert found("http://b:1/v1", RAG_CONTRACT_JUDGE_URL="http://a:1/v1").url == "http://b:1/v1"
    assert found(RAG_CONTRACT_JUDGE_URL="").url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("http://localhost:11434", "ollama"),
        ("http://localhost:11434/", "ollama"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://localhost:11434/api/chat", "ollama"),
        ("http://localhost:8080/v1", "openai"),
        ("https://openrouter.ai/api/v1", "openai"),
    ],
)
def test_what_listens_at_ollamas_port_is_asked_over_ollamas_own_api(url: str, api: str) -> None:
    assert found(url).api == api
    assert found(url, "openai").api == "openai"
    assert found(url, "ollama").api == "ollama"


@pytest.mark.parametrize(
    ("pasted", "url"),
    [
        ("http://localhost:11434/v1", "http://localhost:11434"),
        ("http://localhost:11434/api", "http://localhost:11434"),
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("https://host/v1/", "https://host/v1"),
    ],
)
def test_addresses_are_understood_as_people_paste_them(pasted: str, url: str) -> None:
    assert found(pasted).url == url


def test_openais_own_key_is_for_openais_own_host_alone() -> None:
    assert key_of(found(OPENAI_API_KEY=OPENAIS)) == OPENAIS
    for url in (
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "http://localhost:11434",
    ):
        assert key_of(found(url, OPENAI_API_KEY=OPENAIS)) == ""


def test_our_key_goes_to_the_endpoint_that_is_named() -> None:
    assert key_of(found("https://host/v1", RAG_CONTRACT_JUDGE_KEY=OURS, OPENAI_API_KEY=OPENAIS)) == OURS
    assert key_of(found(RAG_CONTRACT_JUDGE_KEY=OURS, OPENAI_API_KEY=OPENAIS)) == OURS
    assert key_of(found("https://host/v1", RAG_CONTRACT_JUDGE_KEY=f" {OURS}\n")) == OURS


def test_a_key_that_is_sent_without_encryption_is_a_warning_unless_it_stays_on_this_machine() -> None:
    there = found("http://gpu:8000/v1", RAG_CONTRACT_JUDGE_KEY=OURS)
    assert there.warnings == ("the key in RAG_CONTRACT_JUDGE_KEY is sent to gpu:8000 without encryption",)
    assert found("http://localhost:8000/v1", RAG_CONTRACT_JUDGE_KEY=OURS).warnings == ()


def test_only_openai_is_known_to_want_a_key() -> None:
    assert found().lacks_key
    assert not found(OPENAI_API_KEY=OPENAIS).lacks_key
    assert not found("http://localhost:8000/v1").lacks_key


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://API.OpenAI.com/v1", "api.openai.com"),
        ("https://api.openai.com:443/v1", "api.openai.com"),
        ("https://api.openai.com./v1", "api.openai.com"),
        ("http://[::1]:8000/v1", "[::1]:8000"),
        ("http://gpu:80", "gpu"),
    ],
)
def test_a_host_has_one_form(url: str, host: str) -> None:
    assert found(url).host == host


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("localhost:11434", "expected an address such as"),
        ("file:///etc/passwd", "expected an address such as"),
        ("https://me:secret-word@host/v1", "has a user name or a password in it"),
        ("https://host/v1?key=secret-word", "leave out what begins with ? or #"),
        ("https://host/v1#x", "leave out what begins with ? or #"),
        ("https://ho st/secret-word?secret-word", "expected an address such as"),
    ],
)
def test_what_is_no_address_is_refused_without_its_secrets(url: str, problem: str) -> None:
    (said,) = wrong(url)
    assert said.startswith("--judge-url: ")
    assert problem in said
    assert "?secret-word" not in said
    assert "me:" not in said


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert len(wrong("x", "azure")) == 2
    assert wrong(RAG_CONTRACT_JUDGE_URL="x")[0].startswith("RAG_CONTRACT_JUDGE_URL: ")


@pytest.mark.parametrize(("key", "problem"), [("short", "fewer than 8"), ("ключ-ключ-ключ", "no key has")])
def test_a_key_that_could_not_be_kept_secret_is_refused_and_not_shown(key: str, problem: str) -> None:
    (said,) = wrong("https://host/v1", RAG_CONTRACT_JUDGE_KEY=key)
    assert problem in said
    assert key not in said
