"""The endpoint of the judge and its key, and what identifies a judge in keys and fingerprints.

Address and key come from the command line and the environment, never from a file. A pull request can change any file of
the workspace, and a file with the address could have the key sent elsewhere.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Literal, get_args
from urllib.parse import urlsplit

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.judge.calls import AGAIN_TEMPERATURE
from ragcontract.judge.interface import Model, VoteSettings
from ragcontract.judge.tasks import PROTOCOL, AskedTask, instructions_of
from ragcontract.judgments.items import WITHOUT, AskedJudge, JudgeCase, asked_how, keys_of
from ragcontract.judgments.judgments_file import QueryKey
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.net.sending import DEFAULT_PORTS, has_credentials, is_url
from ragcontract.net.sessions import is_this_machine

Api = Literal["openai", "ollama"]
URL, KEY, OPENAI_KEY = "RAG_CONTRACT_JUDGE_URL", "RAG_CONTRACT_JUDGE_KEY", "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
OLLAMA_PORT = 11434
# Paths that people copy with an address from documentation and from other tools.
PASTED: Mapping[Api, tuple[str, ...]] = {
    "openai": ("/chat/completions",),
    "ollama": ("/v1/chat/completions", "/v1", "/api/chat", "/api/generate", "/api"),
}
DIGITS = 16  # of a digest of instructions, which nobody has a reason to forge


class Endpoint(Struct, frozen=True, kw_only=True):
    """The address of a judge, its API and its key."""

    url: str  # without a slash at its end
    api: Api
    authorization: str = ""  # the value of the header, with a placeholder for the key
    secrets: Secrets = NO_SECRETS
    warnings: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The host, with the port if it is not the usual one."""
        return _host(self.url)

    @property
    def lacks_key(self) -> bool:
        """Whether the host is known to refuse every call without a key."""
        return not self.authorization and self.host == _host(OPENAI)


def find_endpoint(url: str | None, api: str | None, environ: Mapping[str, str]) -> Endpoint:
    """Return the endpoint; raise InputError with everything that is wrong.

    ``url`` and ``api`` are the options of the command line. A server at Ollama's port is Ollama, unless ``api`` says
    otherwise. OpenAI's own key is only for OpenAI's own host.
    """
    source, address = ("--judge-url", url) if url is not None else (URL, environ.get(URL) or OPENAI)
    problems = url_problems(source, address)
    if api is not None and api not in get_args(Api):
        problems.append(f"--judge-api: expected {' or '.join(get_args(Api))}, found {shorten(api, bounds.NAME)!r}")
    if problems:
        raise InputError(problems)
    parts = urlsplit(address)
    spoken: Api = "ollama" if api == "ollama" or (api is None and parts.port == OLLAMA_PORT) else "openai"
    base = address.rstrip("/")
    base = base.removesuffix(next((pasted for pasted in PASTED[spoken] if base.endswith(pasted)), ""))
    name, key = _key(base, environ)
    if not key:
        return Endpoint(url=base, api=spoken)
    if problems := _key_problems(name, key):
        raise InputError(problems)
    unencrypted = parts.scheme == "http" and not is_this_machine(parts.hostname or "")
    warnings = (f"the key in {name} is sent to {visible(_host(base))} without encryption",) if unencrypted else ()
    return Endpoint(
        url=base,
        api=spoken,
        authorization=f"Bearer ${{secret:{name}}}",
        secrets=Secrets({name: key}),
        warnings=warnings,
    )


def url_problems(at: str, url: str) -> list[str]:
    """Return what is wrong with an address, as messages without secrets."""
    if not is_url(url):
        shown = shorten(url.rpartition("@")[2].partition("?")[0], bounds.VALUE)
        return [f"{at}: expected an address such as {OPENAI} or http://localhost:{OLLAMA_PORT}, found {shown!r}"]
    if has_credentials(url):
        return [f"{at}: has a user name or a password in it; give the key in the environment variable {KEY}"]
    if "?" in url or "#" in url:
        return [f"{at}: ends before the path of a call is added; leave out what begins with ? or #"]
    return []


def asked_judge(task: AskedTask, settings: VoteSettings, model: Model) -> AskedJudge:
    """Return which judge is asked, and how, as far as that is known before the first reply."""
    return AskedJudge(
        protocol=PROTOCOL,
        instructions=instructions_digest(task),
        model=shorten(model.name, bounds.JUDGE_NAME),
        host=shorten(model.host, bounds.JUDGE_NAME),
        votes=settings.votes,
        confirm=settings.confirm,
    )


def query_keys(case: JudgeCase, settings: VoteSettings, model: Model) -> tuple[QueryKey, ...]:
    """Return the keys of the judgments on a case's items, in their order, before anything is asked."""
    (keys,) = keys_of(case, [asked_judge(case.task, settings, model)])
    return tuple([(case.query_id, key) for key in keys])


def fingerprint(judge: AskedJudge, models: Collection[str] = (), dropped: Collection[str] = ()) -> str:
    """Return what identifies a judge by its replies. A judge with another fingerprint needs its own calibration.

    ``models`` are those that replied. If no reply names its model, it is the one that was asked for.
    """
    names = " + ".join(sorted(models)) or judge.model
    how = asked_how(judge) + (WITHOUT + ", ".join(sorted(dropped)) if dropped else "")
    return shorten(names, bounds.JUDGE_NAME) + shorten(how, bounds.FINGERPRINT - bounds.JUDGE_NAME)


def instructions_digest(task: AskedTask) -> str:
    """Return a digest of all that a task has beside its data. Seeds are always 0 for the first vote, then 1, 2, …."""
    instructions = instructions_of(task)
    parts = {"system": instructions.system, "schema": instructions.schema, "temperatures": [0.0, AGAIN_TEMPERATURE]}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:DIGITS]


def _key(url: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the variable with the key, and the key; both are empty if there is none."""
    parts = urlsplit(url)
    is_openai = parts.scheme == "https" and _host(url) == _host(OPENAI)
    names = (KEY, OPENAI_KEY) if is_openai else (KEY,)
    return next(((name, environ[name].strip()) for name in names if environ.get(name, "").strip()), ("", ""))


def _key_problems(name: str, key: str) -> list[str]:
    if not key.isascii() or not key.isprintable():
        return [f"{name}: has characters that no key has; is it the content of a file?"]
    if len(key) < bounds.SECRET_LEAST:
        why = f"has fewer than {bounds.SECRET_LEAST} characters, too few to keep it out of what is written"
        return [f"{name}: {why}; leave it unset if the server wants no key"]
    return []


def _host(url: str) -> str:
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in {None, DEFAULT_PORTS[parts.scheme]} else f"{host}:{parts.port}"
