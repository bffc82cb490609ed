"""The service behind nginx, as docs/guides/run-the-service.md configures it: TLS, cookies, hosts and bodies."""

import getpass
import hashlib
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.needs import program, require
from tests.process import rag_contract
from tests.runner import ROOT
from tests.service.askers import FROM_OWN_PAGE, by_key
from tests.service.listening import until
from tests.service.running import serving

HOST = "rag.example.com"
PAGE = ROOT / "docs/guides/run-the-service.md"
AROUND = """
daemon off; pid nginx.pid; error_log stderr; {user}
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    {server}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def certificate(folder: Path) -> None:
    """Make the certificate that the guide's configuration names."""
    names = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}")
    files = ("-keyout", f"{folder}/{HOST}.key", "-out", f"{folder}/{HOST}.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names, *files]
    subprocess.run(command, check=True, capture_output=True)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@contextmanager
def nginx(folder: Path, upstream: int) -> Iterator[int]:
    """Run nginx with the block of the guide, and return its port."""
    (server,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    port = free_port()
    for old, new in (("443", str(port)), ("127.0.0.1:8000", f"127.0.0.1:{upstream}"), ("/etc/ssl", str(folder))):
        assert old in server
        server = server.replace(old, new)
    user = f"user {getpass.getuser()};" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(AROUND.format(server=server, user=user))
    certificate(folder)
    command = [str(program("nginx")), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: process.poll() is not None or answers(port))
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield port
        finally:
            process.terminate()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of the proxy, which trusts its certificate."""
    require("nginx")
    monkeypatch.chdir(tmp_path)
    with serving("--allowed-host", HOST, cwd=tmp_path) as served, nginx(tmp_path, served.address[1]) as port:
        context = ssl.create_default_context(cafile=tmp_path / f"{HOST}.pem")
        transport = httpx.HTTPTransport(verify=context)
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", transport=transport, headers={"Host": HOST}) as client:
            client.event_hooks = {"request": [lambda request: request.extensions.update(sni_hostname=HOST)]}
            yield client


def test_a_browser_logs_in_over_tls(client: httpx.Client) -> None:
    added = rag_contract("service", "user", "add", "ana", "--role", "admin", "--url", f"https://{HOST}")
    before, _, link = added.out.strip().partition("?link=")
    assert before == f"https://{HOST}/login"
    answer = client.post("/login", data={"link": link}, headers=FROM_OWN_PAGE)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-session=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    client.cookies.clear()
    session = {"Cookie": cookie.partition(";")[0]}
    assert client.get("/", headers=session).status_code == 200
    assert client.get("/").headers["location"].startswith("/login")
    own_origin = {"Origin": f"https://{HOST}"}
    assert client.post("/logout", headers={**session, "Origin": "https://evil.example"}).status_code == 403
    assert client.post("/logout", headers={**session, **own_origin}).status_code in {200, 303}


def test_ci_sends_large_bodies_and_other_hosts_are_refused(client: httpx.Client) -> None:
    key = rag_contract("service", "token", "add", "ci", "--scope", "record").out.strip()
    data = os.urandom(4 << 20)
    path = f"/api/v1/blobs/{hashlib.sha256(data).hexdigest()}?kind=results"
    assert client.put(path, content=data, headers=by_key(key)).status_code == 201
    answer = client.get("/login", headers={"Host": "other.example.com"})
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "this host name is not allowed; name it to `serve` with --allowed-host",
    )
