"""The base that images are built on here: the one that the Dockerfile names, or the same tag of this machine."""

import subprocess
from functools import cache

from scripts import requirements


@cache
def base() -> str:
    """Return the base by its digest; where no registry can be reached, by its tag, which this machine may have."""
    pinned = requirements.base(requirements.ROOT)
    for command in (["image", "inspect", pinned], ["pull", "--quiet", pinned]):
        if not subprocess.run(["docker", *command], capture_output=True, check=False).returncode:
            return pinned
    return pinned.partition("@")[0]
