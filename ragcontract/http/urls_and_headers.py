"""What a call is made of, checked before the first one: addresses, and names and values of headers."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def header(text: Any) -> bytes:
    """Return the value of a header; characters that would end it become blanks."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", str(text)).strip().encode()


def header_problems(at: str, headers: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the names of headers."""
    wrong = [name for name in headers if not HEADER_NAME.fullmatch(name)]
    return [f"{at}: {shorten(name, bounds.NAME)!r} is not the name of a header" for name in wrong]


def url_problems(at: str, url: str) -> list[str]:
    """Return what is wrong with an address. It is shown in messages, and a question must not lead to another host."""
    if not is_url(url):
        found = re.sub("//[^/]*@", "//", url).partition("?")[0]
        return [f"{at}: expected an address such as https://search.example/api, found {shorten(found, bounds.VALUE)!r}"]
    if has_credentials(url):
        return [f"{at}: has a user name or a password in it; give them as a header with ${{secret:NAME}}"]
    if "{" in url:
        return [f"{at}: has no placeholders; write them under `query`, `json`, `form` or `headers`"]
    return []


def is_url(url: str) -> bool:
    """Return whether a text is an address that can be called."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    return usable and not re.search(r"[\x00-\x20\x7f]", url)


def has_credentials(url: str) -> bool:
    """Return whether an address has a user name or a password in it."""
    parts = urlsplit(url)
    return parts.username is not None or parts.password is not None


def shown(url: str) -> str:
    """Return an address for messages: without credentials and without what follows a question mark."""
    parts = urlsplit(url)
    return visible(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
