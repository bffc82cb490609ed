"""The versions of the packages that are imported, for the details of a recording."""

import sys
from importlib.metadata import packages_distributions, version


def packages() -> dict[str, str]:
    """Return the versions of all distributions of which this process has imported a module."""
    known = packages_distributions()
    loaded = {name.partition(".")[0] for name in list(sys.modules)}
    names = sorted({distribution for name in loaded for distribution in known.get(name, ())}, key=str.lower)
    return {name: version(name) for name in names}
