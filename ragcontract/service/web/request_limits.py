"""Limits on what a client may send: requests in a second, failed logins in a minute, and the sizes of bodies.

Each process counts for itself, up to a limit: what it has not seen for longest is forgotten, and starts again.
"""

import asyncio
import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from threading import BoundedSemaphore
from typing import Any, ParamSpec, TypeVar

from litestar import Request
from litestar.enums import RequestEncodingType
from litestar.handlers import BaseRouteHandler
from litestar.params import BodyKwarg
from litestar.types import HTTPScope, Receive, ReceiveMessage, Scope
from msgspec import Struct, field

from ragcontract.core import bounds
from ragcontract.core.numbers import mebibytes
from ragcontract.files.json_text import NestingError, check_nesting
from ragcontract.service.accounts import Principal
from ragcontract.service.database import LookedUp, seconds
from ragcontract.service.web.problem_details import ProblemError

P = ParamSpec("P")
T = TypeVar("T")
BLOBS = "/api/v1/blobs/"
BODY = "ragcontract.body"  # where the scope of a request has its Body
_NEW_NETWORK = 64  # bits of an IPv6 address: one customer has all that begin with them


_computing = BoundedSemaphore(bounds.SERVICE_COMPUTING)


def expensive(compute: Callable[P, T]) -> Callable[P, T]:
    """Keep the newest results of a function that takes long, and run only a few of all such functions at once.

    Otherwise a flood of requests for them would leave nothing of the processor to others, health checks included.
    """
    kept = lru_cache(bounds.REPORT_PAGES)(compute)

    @wraps(compute)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        if not _computing.acquire(timeout=bounds.SERVICE_DATABASE_WAIT):
            raise ProblemError(503, "too much is computed at once", retry_after=1)
        try:
            return kept(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            _computing.release()

    return limited


class Bucket(Struct):
    """How many requests may still come now; time adds more."""

    level: float
    at: float
    rate: float  # a second
    burst: float
    noted_at: float = -math.inf  # when the use of the key or of the session was noted
    ingesting: Principal | None = None  # who has the key, if it sends many requests
    looked_up: LookedUp = field(default_factory=LookedUp)

    def principal(self) -> Principal | None:
        """Return who has the key, if it sends many requests and was looked up a moment ago."""
        return self.ingesting if self.looked_up.is_known(seconds(), bounds.KEY_SECONDS) else None

    def belongs_to(self, principal: Principal) -> None:
        """Remember for a moment who has a key that sends many requests."""
        if "ingest" in principal.scopes:
            self.ingesting, self.looked_up.at = principal, seconds()


class Buckets:
    """Token buckets by name."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def get(self, name: str) -> Bucket | None:
        """Return a bucket that is there."""
        return self._buckets.get(name)

    def take(self, name: str, rate: float, burst: float) -> Bucket:
        """Take one request from a bucket; raise the problem 429 if none is left."""
        now = seconds()
        bucket = self._buckets.setdefault(name, Bucket(level=burst, at=now, rate=rate, burst=burst))
        self._buckets.move_to_end(name)
        while len(self._buckets) > bounds.RATE_BUCKETS:
            self._buckets.popitem(last=False)
        bucket.level = min(bucket.burst, bucket.level + (now - bucket.at) * bucket.rate)
        bucket.at = now
        if bucket.level < 1:
            wait = max(1, math.ceil((1 - bucket.level) / bucket.rate))
            raise ProblemError(429, "too many requests", retry_after=wait)
        bucket.level -= 1
        return bucket

    def forget(self, name: str) -> None:
        """Remove a bucket whose key or session is no longer valid."""
        self._buckets.pop(name, None)


class RequestRates:
    """How many requests a key, a session or an address sends, and how many logins of an address fail.

    Behind a proxy, or an office's network, one address is that of many. So an address that sends wrong keys, or too
    much without one, does not slow down a key or a session that was seen to be valid.
    """

    def __init__(self) -> None:
        self._valid = Buckets()
        self._addresses = Buckets()
        self._failures = Buckets()

    def admit(self, credential: str | None, address: str) -> Bucket | None:
        """Count a request before anything is looked up; return the bucket of what was seen to be valid before."""
        if credential is not None and (bucket := self._valid.get(credential)):
            return self._valid.take(credential, bucket.rate, bucket.burst)
        rate = bounds.REQUESTS_A_SECOND
        self._addresses.take(address, rate, rate * bounds.BURST_SECONDS)
        return None

    def valid(self, credential: str, principal: Principal) -> Bucket:
        """Count a request with a key or a session that was not seen before, and is valid."""
        rate = bounds.INGESTED_A_SECOND if "ingest" in principal.scopes else bounds.REQUESTS_A_SECOND
        return self._valid.take(credential, rate, rate * bounds.BURST_SECONDS)

    def invalid(self, credential: str) -> None:
        """Forget a key or a session."""
        self._valid.forget(credential)

    def login_failed(self, address: str) -> None:
        """Count a wrong key; raise the problem 429 if there were too many."""
        self._failures.take(address, bounds.FAILED_LOGINS / 60, bounds.FAILED_LOGINS)


def address_of(scope: Scope) -> str | None:
    """Return the address of a client: the proxy's if the server trusts no proxy."""
    client = scope.get("client")
    return client[0] if client else None


@lru_cache(maxsize=10_000)
def network_of(address: str | None) -> str:
    """Return what stands for a client's address where requests are counted."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed), _NEW_NETWORK), strict=False))


def check_size_of_headers(scope: HTTPScope) -> None:
    """Raise the problem 431 if the path and the headers are too long; the server refuses some of these, but not all."""
    sizes = [len(name) + len(value) for name, value in scope["headers"]]
    if sum(sizes) + len(scope["raw_path"]) + len(scope["query_string"]) > bounds.SERVICE_HEADERS:
        raise ProblemError(431)


class Bodies:
    """The bodies of all requests that are being read: each has a limit and a time, and all together have a limit."""

    def __init__(self) -> None:
        self._held = 0
        self._of_strangers = 0

    def of(self, scope: HTTPScope, receive: Receive, *, is_known: bool) -> "Body":
        """Return the body of a request; who is not known may send a form."""
        most = bounds.SERVICE_BODY if is_known else bounds.SERVICE_FORM
        if is_known and scope["method"] == "PUT" and scope["path"].startswith(BLOBS):
            most = bounds.BLOB
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(not value.isdigit() for value in lengths) or len({*lengths}) > 1:
            raise ProblemError(400, "the header Content-Length is not a number of bytes")
        # The server has refused a length of more digits than Python turns into a number.
        if lengths and (len(lengths[0]) > len(str(most)) or int(lengths[0]) > most):
            raise too_large(most)
        return Body(self, receive, most, is_known=is_known)

    def hold(self, size: int, *, is_known: bool) -> None:
        """Count bytes that are in memory; strangers leave room for the others."""
        of_strangers = self._of_strangers + (0 if is_known else size)
        if size and (self._held + size > bounds.SERVICE_BODIES or of_strangers > bounds.STRANGERS_BODIES):
            raise ProblemError(503, "too many large requests at once", retry_after=1)
        self._held += size
        self._of_strangers = of_strangers

    def release(self, size: int, *, is_known: bool) -> None:
        """Count bytes that are no longer in memory."""
        self._held -= size
        self._of_strangers -= 0 if is_known else size


class Body:
    """The body of a request. :meth:`receive` takes the place of the server's."""

    def __init__(self, bodies: Bodies, receive: Receive, most: int, *, is_known: bool) -> None:
        self._bodies = bodies
        self._receive = receive
        self._most = most
        self._is_known = is_known
        self._size = self._unpacked = 0
        self._is_whole = False
        self._deadline: float | None = None

    async def receive(self) -> ReceiveMessage:
        """Return the next part."""
        if self._is_whole:
            return await self._receive()
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + bounds.BODY_SECONDS
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise ProblemError(408, f"the body was not there within {bounds.BODY_SECONDS} s") from None
        if message["type"] == "http.request":  # else the client has gone
            size = len(message.get("body", b""))
            if self._size + size > self._most:
                raise too_large(self._most)
            self._bodies.hold(size, is_known=self._is_known)
            self._size += size
            self._is_whole = not message.get("more_body", False)
        return message

    def unpacked(self, size: int) -> None:
        """Count further bytes of what the body becomes when it is unpacked."""
        self._bodies.hold(size, is_known=self._is_known)
        self._unpacked += size

    def release(self) -> None:
        """Give back the memory of the body, because its request was answered."""
        self._bodies.release(self._size + self._unpacked, is_known=self._is_known)


class CheckedRequest(Request[Any, Any, Any]):
    """A request whose JSON is not nested too deeply for what reads it."""

    async def json(self) -> Any:
        """Return what the body is as JSON."""
        try:
            check_nesting(await self.body())
        except NestingError as error:
            raise ProblemError(400, f"the body is {error}") from None
        return await super().json()


def check_content_type(scope: Scope, route_handler: BaseRouteHandler) -> None:
    """Raise the problem 415 if a route reads bodies of another type."""
    data = route_handler.parsed_fn_signature.parameters.get("data")
    if data is None:
        return
    expected = RequestEncodingType.JSON.value
    if isinstance(data.kwarg_definition, BodyKwarg):
        expected = RequestEncodingType(data.kwarg_definition.media_type).value
    sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"content-type"), "")
    if sent.partition(";")[0].strip().lower() != expected:
        raise ProblemError(415, f"expected the header Content-Type: {expected}")


def too_large(most: int) -> ProblemError:
    """Return the problem of a body that is too large."""
    return ProblemError(413, f"the body is larger than {mebibytes(most)}")
