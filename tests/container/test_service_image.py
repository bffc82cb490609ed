"""The team service's image and compose.yml, with the real engine: nothing of them is simulated but the network.

Containers share the network of the first one, which has none, so that they need no port of this machine.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import scenarios
from tests.container.base import base
from tests.needs import program, require
from tests.runner import ROOT
from tests.service.test_backup import RESTORE

pytestmark = pytest.mark.container
IMAGE, POSTGRES = "rag-contract-test-service", "rag-contract-test-postgres"
NAME = f"rag-contract-service-{os.getpid()}"
MOST_BYTES, OWNER = 260_000_000, "10001:10001"
HARDENED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true")
# Asks for a path with headers, and prints the status, the headers and the body: there is no curl in the image.
ASK = """
import json, sys
from http.client import HTTPConnection
method, path, headers, body = json.loads(sys.argv[1])
connection = HTTPConnection("127.0.0.1", 8000)
connection.request(method, path, body, headers)
answer = connection.getresponse()
print(json.dumps([answer.status, dict(answer.getheaders()), answer.read().decode()]))
"""


def docker(*argv: str, check: bool = True, stdin: Path = Path(os.devnull)) -> str:
    """Run docker and return what it prints; an error of it is the test's."""
    with stdin.open("rb") as file:
        done = subprocess.run(["docker", *argv], stdin=file, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def until(*argv: str, prints: str) -> None:
    """Wait until a command of docker prints something."""
    end = time.monotonic() + 60
    while (shown := docker(*argv, check=False)) != prints:
        assert time.monotonic() < end, shown
        time.sleep(0.2)


class Service:
    """A container that serves."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ready(self) -> "Service":
        """Wait until the engine calls it healthy."""
        until("inspect", "--format", "{{.State.Health.Status}}", self.name, prints="healthy")
        return self

    def ask(
        self, path: str, method: str = "GET", *, headers: Mapping[str, str] = {}, body: str | None = None
    ) -> tuple[int, Mapping[str, str], str]:
        """Return the status, the headers and the body of an answer."""
        sent = json.dumps([method, path, {"Host": "localhost", **headers}, body])
        status, named, content = json.loads(docker("exec", self.name, "python", "-c", ASK, sent))
        return status, named, content

    def command(self, *argv: str) -> str:
        """Run a command of rag-contract in the container."""
        return docker("exec", self.name, "rag-contract", *argv)

    def logged_in(self) -> str:
        """Return the key that a new user is shown, whom the command has made."""
        link = self.command("service", "user", "add", "ana", "--role", "admin").partition("?link=")[2]
        form = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
        status, headers, page = self.ask("/login", "POST", headers=form, body=f"link={link}")
        assert status == 200, page
        assert "HttpOnly" in headers["set-cookie"]
        return f"rc_{page.partition('rc_')[2][:52]}"

    def runs(self, key: str) -> list[Any]:
        """Return the runs of the project docs."""
        status, _, body = self.ask("/api/v1/projects/docs/runs", headers={"Authorization": f"Bearer {key}"})
        assert status == 200, body
        items: list[Any] = json.loads(body)["items"]
        return items

    def verdict_of_run(self, project: str, key: str) -> tuple[str, str | None]:
        """Have the service run a project, and return the state and the verdict of the run."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        status, _, body = self.ask(f"/api/v1/projects/{project}/runs", "POST", headers=headers, body="{}")
        assert status == 202, body
        end = time.monotonic() + 120
        while True:
            run = json.loads(self.ask(f"/api/v1/runs/{json.loads(body)['id']}", headers=headers)[2])
            if run["state"] not in {"queued", "running"}:
                return run["state"], run["verdict"]
            assert time.monotonic() < end, run
            time.sleep(0.5)

    def record(self, folder: Path, key: str) -> None:
        """Check a contract in a container of its own, and send the entry."""
        scenarios.passing(folder)
        os.chown(folder, *map(int, OWNER.split(":")))
        environ = ("--env", "RAG_CONTRACT_HISTORY=http://127.0.0.1:8000", "--env", f"RAG_CONTRACT_TOKEN={key}")
        within = ("--rm", "--network", f"container:{self.name}", "--volume", f"{folder}:/work", "--workdir", "/work")
        for argv in (("check", "--name", "docs"), ("history", "add")):
            docker("run", *within, *environ, *HARDENED, IMAGE, *argv)


@pytest.fixture(scope="session")
def image() -> str:
    """Build the image once."""
    require("docker")
    argument = f"BASE={base()}"
    file = str(ROOT / "Dockerfile.service")
    docker("build", "--network", "host", "--build-arg", argument, "--file", file, "--tag", IMAGE, str(ROOT))
    return IMAGE


@pytest.fixture
def volume() -> Iterator[str]:
    name = f"{NAME}-data"
    docker("volume", "create", name)
    yield name
    docker("volume", "rm", "--force", name, check=False)


@pytest.fixture
def service(image: str, volume: str) -> Iterator[Service]:
    """The service as `docker run` starts it, after its first user was made."""
    options = ("--network", "none", "--volume", f"{volume}:/data", *HARDENED)
    for argv in (("migrate",), ("user", "add", "first", "--role", "admin")):
        docker("run", "--rm", *options, image, "service", *argv)
    docker("run", "--detach", "--name", NAME, *options, image)
    yield Service(NAME).ready()
    docker("rm", "--force", "--volumes", NAME)


def test_the_image_is_small_and_runs_as_nobody_in_particular(image: str) -> None:
    (about,) = json.loads(docker("image", "inspect", image))
    assert about["Size"] < MOST_BYTES
    assert about["Config"]["User"] == OWNER
    assert [*about["Config"]["Volumes"]] == ["/data"]


def test_others_cannot_reach_a_service_without_a_user(image: str) -> None:
    done = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", *HARDENED, image], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "others could reach a service that has no user yet" in done.stderr


def test_no_start_has_to_compile_a_module(image: str) -> None:
    """A user who may write would leave the bytecode that the image lacks."""
    name = f"{NAME}-bytecode"
    as_root = ("--name", name, "--network", "none", "--user", "0", "--env", "RAG_CONTRACT_DB=/tmp/service.db")
    try:
        docker("run", "--detach", *as_root, image, "serve")
        service = Service(name).ready()
        service.command("serve", "--help")
        service.logged_in()
        assert ".pyc" not in docker("diff", name)
    finally:
        docker("rm", "--force", "--volumes", name)


def test_it_answers_keeps_what_it_was_sent_and_ends_in_time(service: Service, volume: str, tmp_path: Path) -> None:
    assert docker("exec", NAME, "sh", "-c", "id -u; touch /x 2>/dev/null || echo read-only") == "10001\nread-only"
    assert service.ask("/readyz")[0] == 200
    key = service.logged_in()
    service.record(tmp_path, service.command("service", "token", "add", "ci", "--scope", "read", "--scope", "record"))
    (run,) = service.runs(key)
    started = time.monotonic()
    docker("stop", "--time", "30", NAME)
    assert time.monotonic() - started < 25  # the engine would kill it after 30
    assert docker("inspect", "--format", "{{.State.ExitCode}}", NAME) == "0"
    docker("start", NAME)
    assert service.ready().runs(key) == [run]
    log = docker("logs", NAME).splitlines()
    assert log[0] == "The team service answers at http://0.0.0.0:8000"
    errors = subprocess.run(["docker", "logs", NAME], capture_output=True, text=True, check=True).stderr.splitlines()
    assert errors
    assert all(json.loads(line)["level"] == "info" for line in errors)

    # A backup is made in the volume, and restored into another one, as the guide says.
    service.command("service", "backup", "/data/backup.db")
    docker("cp", f"{NAME}:/data/backup.db", str(tmp_path / "backup.db"))
    restored = f"{volume}-restored"
    options = ("--network", "none", "--volume", f"{restored}:/data", *HARDENED)
    try:
        shell = ("run", "--rm", "--interactive", *options, "--entrypoint", "sh", IMAGE, "-c", RESTORE)
        assert docker(*shell, stdin=tmp_path / "backup.db") == "the database is whole"
        docker("rm", "--force", NAME)
        docker("run", "--detach", "--name", NAME, *options, IMAGE)
        assert service.ready().runs(key) == [run]
    finally:
        docker("rm", "--force", NAME)
        docker("volume", "rm", "--force", restored)


class Composed:
    """compose.yml, in a project of its own."""

    def __init__(self, program: str, folder: Path, environ: Mapping[str, str]) -> None:
        self.program = program
        self.folder = folder
        self.environ = os.environ | environ
        self.name = folder.name.replace("_", "-").lower()

    def run(self, *argv: str) -> str:
        command = [self.program, "--project-name", self.name, "--file", str(self.folder / "compose.yml"), *argv]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environ, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def service(self) -> Service:
        """Return the container that serves."""
        return Service(self.run("ps", "--quiet", "serve"))


@pytest.fixture(scope="session")
def postgres_image() -> str:
    require("docker")
    folder = str(ROOT / "tests/container/postgres")
    docker("build", "--network", "host", "--build-arg", f"BASE={base()}", "--tag", POSTGRES, folder)
    return POSTGRES


@pytest.fixture(scope="session")
def compose() -> str:
    require("docker-compose")
    return str(program("docker-compose"))


@pytest.fixture(params=["sqlite", "postgres"])
def composed(request: pytest.FixtureRequest, compose: str, image: str, tmp_path: Path) -> Iterator[Composed]:
    """compose.yml with each of its databases, without a network: engines in CI may have no bridge."""
    document = yaml.safe_load((ROOT / "compose.yml").read_text())
    services = document["services"]
    assert document.pop("networks")
    for key in ("ports", "build"):
        assert services["serve"].pop(key)
    environ = {"RAG_CONTRACT_IMAGE": image, "COMPOSE_PROFILES": ""}
    services["serve"]["network_mode"] = "none"
    if request.param == "postgres":
        environ |= {
            "POSTGRES_IMAGE": request.getfixturevalue("postgres_image"),
            "COMPOSE_PROFILES": "postgres",
            "RAG_CONTRACT_DB": "postgresql://rag@postgres/rag",
            "POSTGRES_PASSWORD": "a secret",
        }
        services["postgres"] |= {"network_mode": "none", "extra_hosts": ["postgres:127.0.0.1"]}
        for name in ("serve", "migrate", "work"):
            services[name]["network_mode"] = "service:postgres"
    else:
        environ["RAG_CONTRACT_WORKERS"] = "1"
    mount(tmp_path / "projects" / "search")
    (tmp_path / "compose.yml").write_text(yaml.safe_dump(document))
    made = Composed(compose, tmp_path, environ)
    yield made
    made.run("down", "--volumes", "--timeout", "20")


def mount(folder: Path) -> None:
    """Write a project whose system the image's own Python can ask; others may read it, as in a checkout."""
    folder.mkdir(parents=True)
    scenarios.passing(folder)
    (folder / "current_run.jsonl").unlink()
    (folder / "project.yml").write_text("name: search\n")
    (folder / "record.yml").write_text("python:\n  object: search.py:retrieve\n")
    golden = [json.loads(line) for line in (folder / "golden.jsonl").read_text().splitlines()]
    documents = {row["query"]: row["relevant_doc_ids"] for row in golden}
    (folder / "search.py").write_text(
        f"DOCUMENTS = {documents!r}\n\n\ndef retrieve(query):\n"
        "    return [{'doc_id': each} for each in DOCUMENTS[query]]\n"
    )
    for path in (folder.parent, folder, *folder.iterdir()):
        path.chmod(0o755)


def test_compose_serves_from_either_database(composed: Composed, tmp_path: Path) -> None:
    if composed.environ["COMPOSE_PROFILES"]:
        composed.run("run", "--rm", "-T", "migrate")
    composed.run("run", "--rm", "-T", "serve", "service", "migrate")
    composed.run("run", "--rm", "-T", "serve", "service", "user", "add", "first", "--role", "admin")
    composed.run("up", "--detach")
    service = composed.service().ready()
    key = service.logged_in()
    work = tmp_path / "work"
    work.mkdir()
    service.record(work, service.command("service", "token", "add", "ci", "--scope", "read", "--scope", "record"))
    (run,) = service.runs(key)
    assert service.verdict_of_run("search", key) == ("completed", "pass")
    composed.run("restart", "--timeout", "20", "serve")
    assert service.ready().runs(key) == [run]
    (about,) = json.loads(docker("inspect", service.name))
    host = about["HostConfig"]
    assert (host["ReadonlyRootfs"], host["CapDrop"]) == (True, ["ALL"])
    assert host["SecurityOpt"] == ["no-new-privileges:true"]


def test_compose_lets_only_this_machine_in() -> None:
    document = yaml.safe_load((ROOT / "compose.yml").read_text())
    assert {name: each["ports"] for name, each in document["services"].items() if "ports" in each} == {
        "serve": ["127.0.0.1:${RAG_CONTRACT_PORT:-8000}:8000"]
    }
    for each in document["services"].values():
        assert each["read_only"]
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]
