"""What a call is made of, checked before the first one: addresses, and names and values of headers."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ragcontract.core import bounds
from ragcontract.core.text import shorten

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
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[\x00-\x20\x7f]", url):
        found = re.sub("//[^/]*@", "//", url).partition("?")[0]
        return [f"{at}: expected an address such as https://search.example/api, found {shorten(found, bounds.VALUE)!r}"]
    if parts.username is not None or parts.password is not None:
        return [f"{at}: has a user name or a password in it; give them as a header with ${{secret:NAME}}"]
    if "{" in url:
        return [f"{at}: has no placeholders; write them under `query`, `json`, `form` or `headers`"]
    return []
