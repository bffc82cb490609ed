"""What the action's image weighs, and what a step takes from start to exit, beside a bare start of its base."""

import gzip
import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks import data, tools
from benchmarks.environments import ROOT, sources
from benchmarks.rounds import Command, Samples, interleaved, measure
from tests.container.base import base
from tests.runner import FOLDERS, declared_inputs

IMAGE = "rag-contract:benchmark"
ACTION, BARE, STARTED = "the action", "the base image", "the action's image"
SHAPE = data.Shape(queries=100)
MEGABYTE = 1_000_000


class Container(Struct, frozen=True, kw_only=True):
    """The image's size in bytes, and how long it takes to run."""

    base_size: int
    size: int
    added_layers: int
    added_compressed: int
    samples: Samples


def run(folder: Path, bin_folder: Path, rounds: int) -> Container | None:
    """Build the image and measure it; None where no Docker engine answers."""
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return None
    arguments = ["--network", "host", "--build-arg", f"BASE={base()}", "--tag", IMAGE]
    subprocess.run([docker, "build", "--quiet", *arguments, str(ROOT)], stdout=subprocess.DEVNULL, check=True)
    bare, image = _inspect(docker, base()), _inspect(docker, IMAGE)
    added = len(image["RootFS"]["Layers"]) - len(bare["RootFS"]["Layers"])
    commands = _commands(docker, folder, bin_folder)
    for command in commands.values():
        measure(command)
    return Container(
        base_size=bare["Size"],
        size=image["Size"],
        added_layers=added,
        added_compressed=_compressed(docker, added),
        samples=interleaved(commands, rounds),
    )


def _inspect(docker: str, image: str) -> dict[str, Any]:
    done = subprocess.run([docker, "image", "inspect", image], capture_output=True, check=True)
    found: dict[str, Any] = msgspec.json.decode(done.stdout)[0]
    return found


def _compressed(docker: str, layers: int) -> int:
    """Return the size of the image's last ``layers`` as gzip makes them: what has to be pulled beside the base."""
    saved = subprocess.run([docker, "save", IMAGE], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(saved)) as archive:
        manifest = archive.extractfile("manifest.json")
        names = msgspec.json.decode(manifest.read() if manifest else b"")[0]["Layers"]
        files = [archive.extractfile(name) for name in names[-layers:]]
        return sum(len(gzip.compress(file.read(), 6)) for file in files if file)


def _commands(docker: str, folder: Path, bin_folder: Path) -> dict[str, Command]:
    """Return the action as a runner starts it after a push, with 100 queries in the workspace, and bare starts."""
    made = data.make(SHAPE, folder)
    job = folder / "job"
    workspace = job / "workspace"
    for name in FOLDERS:
        (job / name).mkdir(parents=True, exist_ok=True)
    for name in (data.GOLDEN, data.RUN, data.CONFIG_FILE):
        shutil.copy(made / name, workspace / name)
    (job / "workflow" / "event.json").write_text("{}")
    baseline = tools.stored_baseline(tools.OURS, made, bin_folder, sources())
    shutil.copy(baseline, workspace / "baseline.json")
    variables = declared_inputs({"comment": "never"}) | {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": "/github/workflow/event.json",
        "GITHUB_OUTPUT": "/github/file_commands/set_output",
        "GITHUB_REPOSITORY": "octo/app",
        "GITHUB_SHA": "5ca1ab1e" * 5,
        "GITHUB_STEP_SUMMARY": "/github/file_commands/step_summary",
        "GITHUB_WORKSPACE": "/github/workspace",
        "HOME": "/github/home",
    }
    step = [docker, "run", "--rm", "--network", "host"]
    mounts = [flag for name in FOLDERS for flag in ("--volume", f"{job / name}:/github/{name}")]
    given = [flag for name, value in variables.items() for flag in ("--env", f"{name}={value}")]
    arguments = {
        ACTION: [*step, "--workdir", "/github/workspace", *mounts, *given, IMAGE],
        BARE: [*step, base(), "python", "-c", "pass"],
        STARTED: [*step, "--entrypoint", "/opt/venv/bin/python", IMAGE, "-c", "pass"],
    }
    good = tools.FAILED_OR_NOT
    return {
        name: Command(arguments=line, folder=str(job), log=str(job / "log"), good=good if name == ACTION else (0,))
        for name, line in arguments.items()
    }
