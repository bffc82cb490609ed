"""Sessions of requests whose calls have deadlines, and that take no credentials or cookies from the machine.

The timeouts of sockets apply between two bytes, so a server that sends a byte now and then, in the headers of an answer
or in its body, could keep a call waiting forever. Here, a connection is shut down when the time of its call is over.
"""

import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from ipaddress import IPv6Address, ip_address
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ragcontract.core.version import __version__

STACK = 256 << 10  # bytes; more than enough for a thread that only waits and shuts sockets down

_thread = threading.local()


class Deadline:
    """Context manager that ends a call after ``seconds``, which begin with the ``with`` block.

    ``over`` says whether the call was ended.
    """

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._seconds = seconds
        self._connections: set[Any] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        _thread.deadline = self
        if self._seconds < math.inf:
            _WATCH.add(self, time.monotonic() + self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _thread.deadline = None
        _WATCH.remove(self)
        with self._lock:
            self._connections.clear()

    def take(self, connection: Any) -> None:
        """Add a connection that this thread uses; raises TimeoutError if the time is over."""
        with self._lock:
            if self.over:
                raise TimeoutError("the time of this call is over")
            connection.deadline = self
            self._connections.add(connection)

    def end(self) -> None:
        """Shut the connections down, so that reading from them fails."""
        with self._lock:
            self.over = True
            for connection in self._connections:
                # Another call may have taken the connection from the pool already.
                if connection.deadline is self and connection.sock is not None:
                    with contextlib.suppress(OSError):
                        # Not the method of a TLS socket, which would drop the object that another thread reads from.
                        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


class _Watch:
    """One thread for all deadlines, started with the first. A thread for each would cost more than a call."""

    def __init__(self) -> None:
        self._ends: dict[Deadline, float] = {}
        self._changed = threading.Condition()
        self._wakes = math.inf
        self._started = False

    def add(self, deadline: Deadline, end: float) -> None:
        """End a call at this time of the monotonic clock, unless it is removed before."""
        with self._changed:
            self._ends[deadline] = end
            if not self._started:
                self._start()
            elif end < self._wakes:
                self._changed.notify()

    def remove(self, deadline: Deadline) -> None:
        with self._changed:
            self._ends.pop(deadline, None)

    def _start(self) -> None:
        # A thread's stack of the usual 8 MB may be all that is left where memory is limited.
        usual = threading.stack_size(STACK)
        try:
            threading.Thread(target=self._run, name="deadlines", daemon=True).start()
        finally:
            threading.stack_size(usual)
        self._started = True

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                over = [deadline for deadline, end in self._ends.items() if end <= now]
                for deadline in over:
                    del self._ends[deadline]
                if not over:
                    # A deadline that is added later usually ends later. Then the thread sleeps on.
                    self._wakes = min(self._ends.values(), default=math.inf)
                    self._changed.wait(min(self._wakes - now, threading.TIMEOUT_MAX))
            for deadline in over:
                deadline.end()


_WATCH = _Watch()


class _Watched:
    """Mixin for plain and encrypted connections, which adds them to the deadline of the thread."""

    def connect(self) -> None:
        self._take()
        super().connect()  # type: ignore[misc]

    def putrequest(self, *args: Any, **kwargs: Any) -> None:
        self._take()
        super().putrequest(*args, **kwargs)  # type: ignore[misc]

    def getresponse(self) -> Any:
        self._take()
        return super().getresponse()  # type: ignore[misc]

    def _take(self) -> None:
        deadline: Deadline | None = getattr(_thread, "deadline", None)
        if deadline is not None:
            deadline.take(self)


class _Plain(_Watched, HTTPConnection):
    pass


class _Encrypted(_Watched, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _Encrypted


class Connections(HTTPAdapter):
    """Makes the connections of a session, directly or through a proxy, so that a deadline can end them."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Use these pools for connections through a proxy, except a SOCKS proxy, which has its own."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        if not proxy.lower().startswith("socks"):
            _watch(manager)
        return manager


def _watch(manager: Any) -> None:
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _EncryptedPool}


TrustEnv = bool | Literal["auto"]
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class NoAuth(AuthBase):
    """Adds no credentials. Without such an object, requests would use those in a .netrc file."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


def prepare(session: requests.Session, *, auth: AuthBase | None = None, at_once: int = 10) -> None:
    """Make a session ready for :func:`ragcontract.net.sending.send`; up to ``at_once`` connections are kept open.

    Cookies are neither kept nor sent, so that no call depends on an earlier one.
    """
    session.auth = auth or NoAuth()
    session.headers["User-Agent"] = f"rag-contract/{__version__}"
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # Redirects are hidden from requests, which would read the whole body of one even if it does not follow it.
    session.get_redirect_target = lambda _: None  # type: ignore[method-assign, assignment]
    for scheme in ("http://", "https://"):
        session.mount(scheme, Connections(pool_maxsize=at_once))


def open_session(
    url: str, *, trust_env: TrustEnv = "auto", at_once: int = 10, environ: Mapping[str, str] = os.environ
) -> requests.Session:
    """Return a session for one host, whose proxies are found once and not for every call.

    With ``trust_env: auto``, the proxies that the environment names are used unless the host is this machine. Many
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
    """Return whether a host is this machine, by name or by loopback address."""
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
