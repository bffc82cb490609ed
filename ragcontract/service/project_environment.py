"""The environment of a project's processes: what programs need to run, and the project's own secrets, nothing else.

The service's own variables, such as the password of its database, are in none of it: a project runs code of others.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ragcontract.service.mounted import ProjectFile

# Patterns of names; those of proxies are written in either case.
NEEDED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("LD_LIBRARY_PATH", "CUDA_*", "NVIDIA_*"),
)
OF_OUR_PYTHON = ("PYTHONPATH",)  # where this Python imports from; another one has its own
OF_THE_SERVICE = ("RAG_CONTRACT_*", "PG*")  # which no project.yml gets by naming them
WRITES_NO_CACHE = {"PYTHONDONTWRITEBYTECODE": "1"}  # mounted folders are read-only


def project_environ(file: ProjectFile, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the only variables that the processes of a project get, of those of the service."""
    needed = NEEDED if file.python else NEEDED + OF_OUR_PYTHON
    passed = {name: value for name, value in environ.items() if _fits(name, needed)}
    return passed | secrets_of(file, environ) | WRITES_NO_CACHE


def secrets_of(file: ProjectFile, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of a project that are set."""
    return {name: environ[name] for name in file.secrets if name in environ and not _fits(name, OF_THE_SERVICE)}


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
