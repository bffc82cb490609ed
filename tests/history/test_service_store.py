"""The store in a team service, against a stand-in for it that answers, or fails to, as a script says."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.history.entry import NewEntry
from ragcontract.history.interface import ConflictError
from ragcontract.history.service_store import ServiceStore
from ragcontract.net.pacing import Timing
from tests.history.entries import digest, id_of, new_entry, results_of
from tests.net.service import Reply, Service, refused

KEY = f"rc_1a2b3c4d_{'Zq9' * 14}x"
NOW = 1_800_000_000.0


class Client:
    """The store as a job has it. Its waits take no time but count."""

    def __init__(self, url: str, *, seconds: float = 150) -> None:
        self.waits: list[float] = []
        timing = Timing(monotonic=lambda: sum(self.waits), now=lambda: NOW + sum(self.waits), sleep=self.waits.append)
        self.store = ServiceStore(url, KEY, seconds=seconds, timing=timing)


def problem(status: int, *problems: str, detail: str = "", **headers: str) -> Reply:
    content = {"title": "x", "status": status, "detail": detail, "problems": problems}
    return Reply(
        status=status, content=content, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


Read = Callable[[ServiceStore], object]
ENTRY = new_entry(results=results_of("d1"))
SHA = digest(ENTRY.results)
ADDED, EXISTS = (Reply(status=status, content={"id": 1, "key": ENTRY.entry.id}) for status in (201, 200))
READS: dict[str, Read] = {
    "contracts": lambda store: store.contracts(),
    "months": lambda store: store.months("docs"),
    "ids": lambda store: store.ids("docs", ["2026-11"]),
    "contents": lambda store: store.read("docs", [id_of(ENTRY)]),
    "result sets": lambda store: store.result_sets(),
    "results": lambda store: store.results(SHA),
}


def add(store: ServiceStore) -> object:
    return store.add(ENTRY)


def raised(client: Client, call: Read) -> str:
    with pytest.raises(InputError) as error:
        call(client.store)
    assert KEY[:11] not in str(error.value)
    assert KEY[12:20] not in str(error.value)
    return str(error.value)


# What is sent


def test_an_entry_is_sent_after_all_that_it_names() -> None:
    entry = NewEntry(
        entry=ENTRY.entry, content=ENTRY.content, results=ENTRY.results, report=b"r", golden=b"g", default_branch=True
    )
    with Service(ADDED) as service:
        assert Client(f"{service.url}/base/").store.add(entry) == "added"
    sent = [(request.method, request.path, dict(request.query), request.body) for request in service.requests]
    blobs = {kind: hashlib.sha256(data).hexdigest() for kind, data in (("report", b"r"), ("golden", b"g"))}
    assert sent == [
        ("PUT", f"/base/api/v1/blobs/{SHA}", {"kind": "results"}, ENTRY.results),
        ("PUT", f"/base/api/v1/blobs/{blobs['report']}", {"kind": "report"}, b"r"),
        ("PUT", f"/base/api/v1/blobs/{blobs['golden']}", {"kind": "golden"}, b"g"),
        ("POST", "/base/api/v1/projects/docs/entries", blobs | {"default_branch": "true"}, ENTRY.content),
    ]
    assert {request.headers["authorization"] for request in service.requests} == {f"Bearer {KEY}"}


def test_an_entry_that_the_service_has_is_not_added() -> None:
    with Service(EXISTS) as service:
        assert Client(service.url).store.add(new_entry()) == "exists"
    assert [(request.method, request.query) for request in service.requests] == [("POST", [])]


def test_an_entry_whose_results_are_gone_says_so() -> None:
    with Service(ADDED) as service:
        Client(service.url).store.add(NewEntry(entry=ENTRY.entry, content=ENTRY.content))
    assert [(request.method, request.query) for request in service.requests] == [
        ("POST", [("without_results", "true")])
    ]


def test_result_sets_are_not_deleted() -> None:
    with Service() as service:
        error = raised(Client(service.url), lambda store: store.delete_results([SHA]))
    assert error == f"{service.url}: the service keeps result sets as long as their runs"
    assert service.requests == []


@pytest.mark.parametrize("name", ["..", "../x", "", "docs/2026-11", "DOCS", "a" * 61, "x\n"])
def test_names_that_no_contract_has_are_not_asked_for(name: str) -> None:
    with Service() as service:
        store = Client(service.url).store
        assert (store.months(name), store.ids(name, ["2026-11"]), store.read(name, [id_of(ENTRY)])) == ([], [], {})
        assert (store.results(name), store.ids("docs", ["2026-1", "x"])) == (None, [])
    assert service.requests == []


# What is read


def pages(name: str, *parts: list[Any]) -> list[Reply]:
    return [
        Reply(content={name: part, "next": f"c{number}" if number < len(parts) else None})
        for number, part in enumerate(parts, 1)
    ]


def test_all_pages_of_a_list_are_read() -> None:
    with Service(*pages("items", [{"slug": "docs"}], [{"slug": "a"}, {"slug": "docs", "name": "Docs"}])) as service:
        assert Client(service.url).store.contracts() == ["a", "docs"]
    assert [request.query for request in service.requests] == [[("limit", "100")], [("limit", "100"), ("cursor", "c1")]]
    with Service(*pages("items", ["a" * 64], [], ["b" * 64])) as service:
        assert Client(service.url).store.result_sets() == {"a" * 64, "b" * 64}
    with Service(*pages("ids", [ENTRY.entry.id], [new_entry(run=7).entry.id])) as service:
        assert len(Client(service.url).store.ids("docs", ["2026-11", "2026-10"])) == 2
    assert service.requests[1].query == [("month", "2026-11"), ("month", "2026-10"), ("cursor", "c1")]


def test_entries_that_did_not_fit_into_an_answer_are_asked_for_again() -> None:
    other = new_entry(run=7)
    replies = [
        Reply(content={"items": [{"id": new.entry.id, "content": new.content.decode()}], "rest": rest})
        for new, rest in ((ENTRY, [other.entry.id]), (other, []))
    ]
    with Service(*replies) as service:
        assert Client(service.url).store.read("docs", [id_of(ENTRY), id_of(other)]) == {
            ENTRY.entry.id: ENTRY.content,
            other.entry.id: other.content,
        }
    assert [len(request.query) for request in service.requests] == [2, 1]


def test_a_project_that_the_key_does_not_show_is_empty() -> None:
    with Service(problem(404, detail="no such project")) as service:
        store = Client(service.url).store
        assert (store.months("docs"), store.ids("docs", ["2026-11"]), store.read("docs", [id_of(ENTRY)])) == (
            [],
            [],
            {},
        )
        assert store.results(SHA) is None


# Hostile answers


def test_names_of_another_form_in_answers_are_left_out() -> None:
    with Service(
        *pages("items", [{"slug": name} for name in ("../x", "docs", "", "A", "a/b", "..", "x\0")])
    ) as service:
        assert Client(service.url).store.contracts() == ["docs"]
    with Service(
        Reply(content={"months": ["2026-11", "../..", "2026-1", "２０２６-11", "2026-12", "2026-12"]})
    ) as service:
        assert Client(service.url).store.months("docs") == ["2026-12", "2026-11"]
    of_another_month = ENTRY.entry.id.replace("202611", "202610")
    with Service(*pages("ids", [ENTRY.entry.id, "../../x", "", of_another_month, ENTRY.entry.id])) as service:
        assert Client(service.url).store.ids("docs", ["2026-11"]) == [id_of(ENTRY)]
    with Service(*pages("items", ["../x", "F" * 64, "a" * 64, f"{'b' * 64}\n"])) as service:
        assert Client(service.url).store.result_sets() == {"a" * 64}


def test_contents_that_were_not_asked_for_are_left_out_and_large_ones_are_cut() -> None:
    wanted, other = ENTRY.entry.id, new_entry(run=7).entry.id
    items = [{"id": other, "content": "x"}, {"id": wanted, "content": "x" * (1 << 19)}, {"id": "../x", "content": ""}]
    with Service(Reply(content={"items": items, "rest": [other, "../x"]})) as service:
        contents = Client(service.url).store.read("docs", [id_of(ENTRY)])
    assert {key: len(content) for key, content in contents.items()} == {wanted: (1 << 18) + 1}
    assert len(service.requests) == 1


def test_a_service_that_puts_off_every_entry_is_an_error() -> None:
    with Service(Reply(content={"items": [], "rest": [ENTRY.entry.id]})) as service:
        error = raised(Client(service.url), READS["contents"])
    assert error == f"{service.url}: sends none of the entries that it has"


NOT_OURS: dict[str, Any] = {
    "a page of HTML": b"<html>Sign in</html>",
    "nothing": b"",
    "another type": [],
    "null": None,
    "a text for a list": {"items": "x", "months": "x", "ids": "x"},
    "numbers for texts": {"items": [1], "months": [1], "ids": [1]},
    "a cursor that is a number": {"items": [], "months": 7, "ids": [], "next": 7, "rest": 7},
    "cut off": b'{"items": [',
    "not UTF-8": b'{"items": ["\xff"], "months": ["\xff"], "ids": ["\xff"]}',
    "half of a character": b'{"items": ["\\ud800"], "months": ["\\ud800"], "ids": ["\\ud800"]}',
    "deep": b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "too many": {"items": ["a" * 64] * 10_001, "months": ["2026-11"] * 10_001, "ids": ["x"] * 10_001},
}


@pytest.mark.parametrize("content", NOT_OURS.values(), ids=NOT_OURS.keys())
@pytest.mark.parametrize("read", [READS[name] for name in READS if name != "results"], ids=list(READS)[:-1])
def test_an_answer_of_another_form_is_an_error(read: Read, content: Any) -> None:
    with Service(Reply(content=content)) as service:
        error = raised(Client(service.url), read)
    assert error.startswith(f"{service.url}: its answer is not that of a team service (")
    assert len(service.requests) == 1


@pytest.mark.parametrize("content", [b"<html>Sign in</html>", b"", {}, {"id": 1, "key": 7}, [], None])
@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_an_entry_that_nobody_says_is_stored_is_not_recorded(status: int, content: Any) -> None:
    with Service(Reply(status=status, content=b"" if status == 204 else content)) as service:
        error = raised(Client(service.url), add)
    assert error.startswith(f"{service.url}: its answer is not that of a team service (")


def test_an_answer_about_another_entry_is_an_error() -> None:
    with Service(ADDED) as service:
        error = raised(Client(service.url), lambda store: store.add(new_entry(run=7)))
    assert error == f"{service.url}: says that it has stored another entry"


def test_an_answer_that_is_too_large_is_an_error() -> None:
    with Service(Reply(content=bytes((16 << 20) + 1))) as service:
        assert raised(Client(service.url), READS["results"]) == f"{service.url}: the answer is larger than 16 MiB"
    assert len(service.requests) == 1


@pytest.mark.parametrize("path", ["http://127.0.0.2:1/x", "https://evil.example/", "/elsewhere"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int, path: str) -> None:
    with Service(Reply(status=status, headers={"Location": path}, content=b"")) as service:
        for call in (READS["months"], lambda store: store.add(new_entry())):
            error = raised(Client(service.url), call)
            assert f"{service.url}: answered {status}: " in error
            assert error.endswith("it leads elsewhere, which is not followed: name the address of the service itself")
    assert len(service.requests) == 2


def test_the_key_is_in_no_message_even_if_the_service_echoes_it() -> None:
    echoes = [f"key {KEY}", f"key {KEY[:30]}", json.dumps({"authorization": f"Bearer {KEY}"})]
    for text in echoes:
        replies = [problem(status, text, detail=text) for status in (401, 403, 409, 413, 422, 400)]
        for reply in (*replies, Reply(status=400, content=text.encode()), Reply(content={"months": text})):
            with Service(reply) as service:
                raised(Client(service.url), READS["months"])


def test_control_characters_in_a_reason_are_made_visible() -> None:
    with Service(problem(422, "a\n::error::b\x1b[31m\ud800")) as service:
        assert "refused what was sent: a\\n::error::b\\x1b[31m\\ud800" in raised(Client(service.url), READS["months"])


# Refusals


MAKE_KEY = "`rag-contract service token add NAME --scope read --scope record` makes one"
IN_VARIABLE = "was the key in RAG_CONTRACT_TOKEN revoked, has it expired, or is it of another service?"
REFUSALS: dict[str, tuple[Reply, Read, str]] = {
    "a key that is not valid": (
        problem(401, detail="the key is not valid"),
        READS["months"],
        f"answered 401: the key is not valid; {IN_VARIABLE} {MAKE_KEY}",
    ),
    "a key that may not read": (
        problem(403, detail="no"),
        READS["months"],
        f"answered 403: no; the key in RAG_CONTRACT_TOKEN needs the scope read; {MAKE_KEY}",
    ),
    "a key that may not record": (
        problem(403, detail="no"),
        add,
        f"answered 403: no; the key in RAG_CONTRACT_TOKEN needs the scope record; {MAKE_KEY}",
    ),
    "a key of another project": (
        problem(404, detail="no such project"),
        add,
        "answered 404: no such project; is the address right, and is the key in RAG_CONTRACT_TOKEN for this project?",
    ),
    "no service at all": (
        Reply(status=404, content=b"<html>"),
        READS["months"],
        "answered 404: Not Found; is a team service at this address?",
    ),
    "no service that takes files": (
        Reply(status=405, content=b""),
        add,
        "answered 405: Method Not Allowed; is a team service at this address?",
    ),
    "a proxy with a limit": (
        Reply(status=413, content=b"<html>"),
        add,
        "answered 413: Request Entity Too Large; the service, or a proxy before it, takes no content of this size",
    ),
    "an entry that is wrong": (problem(422, "entry: is wrong"), add, "refused what was sent: entry: is wrong"),
    "another refusal": (Reply(status=418, content=b""), add, "answered 418: I'm a Teapot"),
}


@pytest.mark.parametrize(("reply", "call", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_says_why_and_what_to_do(reply: Reply, call: Read, message: str) -> None:
    with Service(reply) as service:
        error = raised(Client(service.url), call)
    assert error.replace("Content Too Large", "Request Entity Too Large") == f"{service.url}: {message}"
    assert len(service.requests) == 1


def test_all_problems_with_what_was_sent_are_listed() -> None:
    problems = [f"p{number}" for number in range(60)]
    with Service(problem(422, *problems)) as service, pytest.raises(InputError) as error:
        Client(service.url).store.add(ENTRY)
    assert error.value.problems == [f"{service.url}: refused what was sent: {each}" for each in problems[:50]]


def test_an_entry_that_differs_is_a_conflict_in_the_words_of_the_service() -> None:
    reply = problem(409, "docs: already exists with different content")
    with Service(reply) as service, pytest.raises(ConflictError) as error:
        Client(service.url).store.add(new_entry())
    assert str(error.value) == "docs: already exists with different content"


# Retries and time

PASSING = {
    "429": problem(429),
    "503": problem(503),
    "500": Reply(status=500, content=b"<html>"),
    "502 of a proxy": Reply(status=502, content=b"<html>"),
    "408": Reply(status=408, content=b""),
    "a lost connection": Reply(kind="drop"),
    "a reset": Reply(kind="reset"),
    "half an answer": Reply(kind="half"),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING.keys())
@pytest.mark.parametrize(
    ("call", "answer"),
    [(READS["months"], Reply(content={"months": []})), (add, ADDED)],
    ids=["reading", "adding"],
)
def test_what_may_pass_is_tried_again(reply: Reply, call: Read, answer: Reply) -> None:
    with Service(reply, reply, answer) as service:
        client = Client(service.url)
        call(client.store)
    assert len(client.waits) == 2
    assert len({(request.method, request.path, request.body) for request in service.requests[:3]}) == 1


def test_an_entry_is_added_though_the_answer_to_it_was_lost() -> None:
    with Service(Reply(kind="drop"), EXISTS) as service:
        assert Client(service.url).store.add(new_entry()) == "exists"
    assert len(service.requests) == 2


def test_the_service_says_when_to_come_back() -> None:
    with Service(problem(503, Retry_After="40"), Reply(content={"months": []})) as service:
        client = Client(service.url)
        assert client.store.months("docs") == []
    assert 40 < client.waits[0] <= 41


def test_a_time_that_is_too_late_is_not_waited_for() -> None:
    with Service(problem(429, detail="slow down", Retry_After="400")) as service:
        client = Client(service.url, seconds=20)
        error = raised(client, READS["months"])
    late = "the next try would come after the 20 seconds that there are"
    assert error == f"{service.url}: answered 429: slow down; {late}"
    assert client.waits == []


def test_a_service_that_never_recovers_is_given_up() -> None:
    with Service(problem(503, detail="busy")) as service:
        assert raised(Client(service.url), READS["months"]) == f"{service.url}: answered 503: busy, 6 times"
    assert len(service.requests) == 6


def test_where_nothing_listens_the_error_says_so() -> None:
    url = refused()
    client = Client(url)
    problem = "the connection was refused, or there is no such host"
    advice = "check the address, and that the service runs"
    assert raised(client, READS["months"]) == f"{url}: {problem}, 6 times; {advice}"
    assert len(client.waits) == 5


def test_a_service_without_tls_says_where_certificates_are_named() -> None:
    with Service() as service:
        error = raised(Client(service.url.replace("http:", "https:")), READS["months"])
    assert "the connection could not be encrypted" in error
    assert "REQUESTS_CA_BUNDLE names a file with the certificates of your own authority" in error


@pytest.mark.parametrize("kind", ["hang", "drip headers", "drip body"])
def test_an_answer_that_does_not_end_is_given_up_in_time(kind: Any) -> None:
    with Service(Reply(kind=kind)) as service:
        client = Client(service.url, seconds=0.3)
        error = raised(client, READS["months"])
    late = "the next try would come after the 0.3 seconds that there are"
    assert error == f"{service.url}: the answer was not complete in time; {late}"


def test_all_calls_share_their_time_until_more_is_allowed() -> None:
    with Service(Reply(content={"months": []})) as service:
        client = Client(service.url, seconds=30)
        client.store.months("docs")
        client.waits.append(30)
        assert raised(client, READS["months"]) == f"{service.url}: did not answer within 30 seconds"
        client.store.allow(5)
        assert client.store.months("docs") == []
    assert len(service.requests) == 2
