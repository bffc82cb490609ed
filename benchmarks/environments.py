"""The environments that tools are measured in: one a tool, of its pinned requirements, made once."""

import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
OURS = "rag-contract"


class UnavailableError(Exception):
    """A tool that cannot be installed; says why."""


def peer(name: str, folder: Path) -> Path:
    """Return the ``bin`` folder of the environment of a tool, by the name of its requirements file."""
    requirements = Path(__file__).parent / f"requirements-{name}.txt"
    return _environment(folder / name, requirements.read_bytes(), ["--requirement", str(requirements)])


def ours(folder: Path) -> Path:
    """Return the ``bin`` folder of an environment with this checkout's package, as it would come from PyPI."""
    requirements = ROOT / "requirements" / "runtime.txt"
    made_of = requirements.read_bytes() + sources().encode()
    target = folder / OURS
    return _environment(target, made_of, ["--requirement", str(requirements)], ["--no-deps", str(ROOT)])


def sources() -> str:
    """Return a digest of the package's code."""
    files = [ROOT / "pyproject.toml", *sorted((ROOT / "ragcontract").rglob("*.py"))]
    return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _environment(target: Path, made_of: bytes, *installs: list[str]) -> Path:
    stamp = target / "made-of"
    wanted = sha256(sys.version.encode() + made_of).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"installing {target.name}", flush=True)
        venv.create(target, clear=True, with_pip=True)
        for arguments in installs:
            command = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip() or f"pip exits {done.returncode}").splitlines()[-1]
                raise UnavailableError(f"{target.name} cannot be installed: {last}")
        stamp.write_text(wanted)
    return target / "bin"
