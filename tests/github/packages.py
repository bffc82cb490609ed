"""Files of npm's packages, which are fetched once into ``build/``."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent.parent


def unpacked(package: str, name: str, files: Sequence[str]) -> Path:
    """Return the folder with these files of a package such as ``@owner/name@1.0.0``, which is ``build/NAME``."""
    folder = ROOT / "build" / name
    if not all((folder / "package" / file).exists() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as fetched:  # several test processes may want it at once
            subprocess.run(["npm", "pack", "--silent", package], cwd=fetched, check=True, capture_output=True)
            archive = next(Path(fetched).glob("*.tgz"))
            wanted = [f"package/{file}" for file in files]
            subprocess.run(["tar", "xzf", archive.name, *wanted], cwd=fetched, check=True)
            with suppress(OSError):  # another one was quicker
                (Path(fetched) / "package").rename(folder / "package")
    return folder / "package"
