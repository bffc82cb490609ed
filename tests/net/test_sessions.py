"""What a session takes from the machine: a proxy where one helps, certificates, and nothing else."""

from pathlib import Path

import pytest

from ragcontract.net.sending import HttpCall, send
from ragcontract.net.sessions import TrustEnv, is_this_machine, open_session
from tests.net.service import Service


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "0.0.0.0",
        "::ffff:127.0.0.1",
    ],
)
def test_this_machine_has_several_names(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ["", "example.com", "128.0.0.1", "notlocalhost", "localhost.example", "10.0.0.1"])
def test_other_machines_are_others(host: str) -> None:
    assert not is_this_machine(host)


def asked(url: str, trust_env: TrustEnv) -> None:
    with open_session(url, trust_env=trust_env) as session:
        send(session, HttpCall(method="GET", url=url), seconds=20, connect_seconds=5)


@pytest.mark.parametrize(
    ("host", "trust_env", "by_proxy"),
    [
        ("127.0.0.1", "auto", False),
        ("127.0.0.1", False, False),
        ("127.0.0.1", True, True),
        ("search.invalid", "auto", True),
        ("search.invalid", True, True),
    ],
)
def test_a_proxy_of_the_environment_is_used_for_other_machines(
    host: str, trust_env: TrustEnv, *, by_proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service() as proxy, Service() as service:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        asked(service.url.replace("127.0.0.1", host), trust_env)
    assert (len(proxy.requests), len(service.requests)) == ((1, 0) if by_proxy else (0, 1))


def test_a_host_in_no_proxy_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with Service() as proxy, Service() as service:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        asked(service.url, trust_env=True)
    assert (len(proxy.requests), len(service.requests)) == (0, 1)


@pytest.mark.parametrize("trust_env", [True, False, "auto"])
def test_credentials_of_netrc_are_never_sent(
    trust_env: TrustEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password hunter2hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with Service() as service:
        asked(service.url, trust_env)
    assert "authorization" not in service.requests[0].headers


def test_certificates_are_those_that_the_environment_names() -> None:
    assert open_session("https://h", environ={}).verify is True
    assert open_session("https://h", environ={"CURL_CA_BUNDLE": "c.pem"}).verify == "c.pem"
    environ = {"REQUESTS_CA_BUNDLE": "r.pem", "CURL_CA_BUNDLE": "c.pem"}
    assert open_session("https://127.0.0.1", environ=environ).verify == "r.pem"
