"""Sessions of requests, without what requests takes from the machine on its own: credentials, cookies, proxies."""

import os
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from ipaddress import IPv6Address, ip_address
from typing import Literal
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase
from requests.utils import get_environ_proxies

from ragcontract.core.version import __version__
from ragcontract.http.connections import Connections

TrustEnv = bool | Literal["auto"]
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class NoAuth(AuthBase):
    """Adds no credentials; without an object in its place, requests would use those in a .netrc file."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Return the request as it is."""
        return request


def prepare(session: requests.Session, *, auth: AuthBase | None = None, at_once: int = 10) -> None:
    """Make a session ready for :func:`ragcontract.http.sending.send`; up to ``at_once`` connections are kept open.

    Cookies are neither kept nor sent, so that no call depends on an earlier one.
    """
    session.auth = auth or NoAuth()
    session.headers["User-Agent"] = f"rag-contract/{__version__}"
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # Redirects are not looked at: requests would read the whole body of one, even where it does not follow it.
    session.get_redirect_target = _nowhere  # type: ignore[method-assign, assignment]
    for scheme in ("http://", "https://"):
        session.mount(scheme, Connections(pool_maxsize=at_once))


def _nowhere(_response: requests.Response) -> None:
    return None


def open_session(
    url: str, *, trust_env: TrustEnv = "auto", at_once: int = 10, environ: Mapping[str, str] = os.environ
) -> requests.Session:
    """Return a session for one host, whose proxies are found once and not for every call.

    With ``trust_env: auto``, the proxies that the environment names are used unless the host is this machine: many
    environments name a proxy that cannot reach it, and leave 127.0.0.1 out of ``NO_PROXY``.
    """
    session = requests.Session()
    session.trust_env = False
    prepare(session, at_once=at_once)
    session.headers["Accept"] = "application/json"
    if trust_env is True or (trust_env == "auto" and not is_this_machine(urlsplit(url).hostname or "")):
        session.proxies.update(get_environ_proxies(url))
    session.verify = next((environ[name] for name in CERTIFICATES if environ.get(name)), True)
    return session


def is_this_machine(host: str) -> bool:
    """Return whether a host is the one that the program runs on, by its name or its loopback address."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified
