# ruff: noqa: E501 (a line for each form)
"""What is taken out of texts before they are stored, on labelled lines of many forms and countries."""

import uuid
from collections.abc import Callable, Iterator
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

import pytest

from ragcontract.answers.regexes import PatternError
from ragcontract.service.redaction import Redactor, redactor
from tests.answers.work import grows_linearly

LINES = 500
LONG = 100_000
CLEAN_TOUCHED = 0.02
COUNTRIES = {"DE": 22, "NO": 15, "GB": 22, "FR": 27, "NL": 18, "MT": 31, "SE": 24, "PL": 28, "CH": 21, "IE": 22}
LETTERED = {"GB", "NL", "MT", "IE", "FR"}
CARDS = ((("4",), 16), (("51", "55", "2221"), 16), (("34", "37"), 15), (("36", "30"), 14), (("35", "6011", "62"), 16),
         (("4",), 19), (("4",), 13), (("50", "67"), 16))  # fmt: skip
AROUND = (
    "{}", "Please check {} for me.", "mine is {}, thanks", "({})", "Zahlung von {} kam nicht an", "it says: \"{}\"",
    "Kontoen min er {}.", "{}\nwas refused", "old={};new=none", "see <{}>", "tried 3 times with {}!",
)  # fmt: skip
HOSTILE = (
    "a", "@", "a@", "a.", "a@a.", "1", "1 ", "4 ", "+1", "(0", "00 1", "0171 ", "4111 1111 1111 111", "DE12", "IBAN",
    "eyJ", "sk-", "rc_", "bearer ", "token=", "token=a", "://a:", "aa://aa:b", "-----BEGIN PRIVATE KEY-----",
    '"', '"a', "tel: 1", "tel ", "\u0661", "\uff11", "%40", "-", ".", "\0", "\ud800",
)  # fmt: skip


class Labelled(NamedTuple):
    """A line, and what must not be left of it."""

    text: str
    secret: str


def picked(random: Random, alphabet: str, number: int) -> str:
    return "".join(random.choices(alphabet, k=number))


def iban(random: Random) -> str:
    country = random.choice([*COUNTRIES])
    head = picked(random, ascii_uppercase, 4) if country in LETTERED else ""
    account = head + picked(random, digits, COUNTRIES[country] - 4 - len(head))
    number = int("".join(str(int(each, 36)) for each in f"{account}{country}00"))
    whole = f"{country}{98 - number % 97:02}{account}"
    fours = [whole[at : at + 4] for at in range(0, len(whole), 4)]
    forms = whole, " ".join(fours), "-".join(fours), whole.lower(), "\u00a0".join(fours), f"IBAN{whole}"
    return random.choice(forms)


def card(random: Random) -> str:
    beginnings, length = random.choice(CARDS)
    number = random.choice(beginnings)
    number += picked(random, digits, length - 1 - len(number))
    doubled = [2 * int(each) - 9 * (int(each) > 4) for each in number[::-2]]
    number += str(-(sum(doubled) + sum(map(int, number[-2::-2]))) % 10)
    sizes = {15: (4, 6, 5), 14: (4, 6, 4), 13: (4, 3, 3, 3), 19: (4, 4, 4, 4, 3)}.get(length, (4, 4, 4, 4))
    groups = [number[sum(sizes[:place]) : sum(sizes[: place + 1])] for place in range(len(sizes))]
    return random.choice([number, " ".join(groups), "-".join(groups), "\u00a0".join(groups), ".".join(groups)])


def key(random: Random) -> str:
    some = ascii_letters + digits
    keys = (
        f"sk-{picked(random, some, 40)}1",
        f"sk-proj-{picked(random, some, 20)}-{picked(random, some, 20)}7",
        f"sk-ant-api03-{picked(random, some, 60)}",
        f"ghp_{picked(random, some, 35)}4",
        f"github_pat_{picked(random, some, 22)}_{picked(random, some, 59)}3",
        f"AKIA{picked(random, ascii_uppercase, 12)}{picked(random, digits, 4)}",
        f"eyJ{picked(random, some, 30)}.eyJ{picked(random, some, 60)}.{picked(random, some, 43)}2",
        f"rc_{picked(random, some, 8)}_{picked(random, some, 42)}9",
        f"xoxb-{picked(random, digits, 12)}-{picked(random, some, 24)}",
        f"AIza{picked(random, some, 34)}5",
        f"sk_live_{picked(random, some, 24)}8",
        f"hf_{picked(random, some, 34)}6",
    )
    labelled = ("Authorization: Bearer {}", "password: {}", "api_key={}", '"token": "{}"', "SECRET_KEY = {}")
    if random.random() < 0.35:
        return random.choice(labelled).format(f"{picked(random, some, 24)}{random.randint(0, 9)}")
    return random.choice(keys)


def email(random: Random) -> str:
    name = random.choice(
        ["ana", "ana.berg", "a_b-c", "kari+shop", "o'neill", "jürgen", "x", f"u{random.randint(1, 9999)}"]
    )
    domain = random.choice(["example.com", "mail.example.co.uk", "müller.de", "firma.example.no", "x-y.museum", "a.io"])
    return random.choice(
        [f"{name}@{domain}", f"mailto:{name}@{domain}", f"{name}@{domain.upper()}", f"{name}%40{domain}"]
    )


KINDS: tuple[Callable[[Random], str], ...] = (iban, card, key, email)


def dirty(random: Random, number: int) -> Iterator[Labelled]:
    for place in range(number):
        secret = KINDS[place % len(KINDS)](random)
        yield Labelled(random.choice(AROUND).format(secret), secret)


def isbn(random: Random) -> str:
    number = f"978{picked(random, digits, 9)}"
    total = sum(int(each) * (3 if place % 2 else 1) for place, each in enumerate(number))
    whole = f"{number}{-total % 10}"
    return random.choice([whole, f"{whole[:3]}-{whole[3]}-{whole[4:8]}-{whole[8:12]}-{whole[12]}"])


def clean(random: Random, number: int) -> Iterator[str]:
    def some(least: int, most: int) -> int:
        return random.randint(least, most)

    makers: tuple[Callable[[], str], ...] = (
        lambda: f"Where is my order {some(10_000, 99_999_999)}?",
        lambda: f"Order #{some(100, 999)}-{some(1_000_000, 9_999_999)}-{some(1_000_000, 9_999_999)} has not arrived",
        lambda: f"It was on {some(2000, 2029)}-{some(1, 12):02}-{some(1, 28):02} at {some(0, 23):02}:{some(0, 59):02}:{some(0, 59):02}",
        lambda: f"am {some(1, 28):02}.{some(1, 12):02}.{some(2000, 2029)} um {some(0, 23)}:{some(0, 59):02} Uhr",
        lambda: f"between {some(1, 12)}/{some(1, 28)}/{some(2000, 2029)} and {some(1, 12)}/{some(1, 28)}/{some(2000, 2029)}",
        lambda: f"rag-contract {some(0, 9)}.{some(0, 30)}.{some(0, 30)} on Python 3.{some(8, 14)}.{some(0, 20)} and numpy=={some(1, 2)}.{some(0, 30)}.{some(0, 9)}",
        lambda: f"request {uuid.UUID(int=random.getrandbits(128), version=4)} failed",
        lambda: f"since commit {random.getrandbits(160):040x}",
        lambda: f"sha256:{random.getrandbits(256):064x}",
        lambda: f"costs {some(1, 999)}.{some(0, 99):02} EUR, not {some(1, 9)},{some(100, 999)}.{some(0, 99):02}",
        lambda: f"Gesamtpreis {some(1, 99)}.{some(100, 999)},{some(0, 99):02} € inkl. 19 % MwSt.",
        lambda: f"at {random.uniform(-90, 90):.6f}, {random.uniform(-180, 180):.6f}",
        lambda: f"the book with ISBN {isbn(random)}",
        lambda: f"Wie viele der {some(2, 500)} Gäste kommen am {some(1, 31)}. Mai, und gilt § {some(1, 300)} Abs. {some(1, 9)}?",
        lambda: f"Hvor lenge varer garantien på modell {some(100, 999)} fra {some(1990, 2026)}? Prisen er kr {some(1, 99)} {some(100, 999)},-",
        lambda: f"host 192.168.{some(0, 255)}.{some(1, 254)}:{some(1024, 65535)} answers in {some(1, 999)} ms",
        lambda: f"timestamps {some(1_600_000_000, 1_900_000_000)} and {some(1_600_000_000_000, 1_900_000_000_000)}",
        lambda: f"part {picked(random, ascii_uppercase, 2)}{some(10, 99)}-{some(1_000, 9_999)}, size {some(30, 50)}/{some(30, 36)}",
        lambda: " ".join(str(some(0, 999)) for _ in range(some(3, 12))),
        lambda: f"use sk-learn-{picked(random, ascii_lowercase, 12)}-pipelines with max_tokens={some(100, 9999)}",
        lambda: f"def answer(query, top={some(1, 20)}): return [{some(1, 9)}, {some(1, 9)}]  # @cache",
        lambda: f"mention @{picked(random, ascii_lowercase, 8)} in issue #{some(1, 99999)}, see https://example.com/{some(1, 9999)}?page={some(1, 99)}",
        lambda: f"flight SK{some(100, 9999)} from OSL at {some(0, 23):02}:{some(0, 59):02}, seat {some(1, 40)}{random.choice('ABCDEF')}",
        lambda: f"§{some(1, 99)}: {some(1, 9)}×{some(1, 9)} m², {some(10, 99)} °C, {some(1, 99)}–{some(100, 200)} kg, {random.random():.12f}",
        lambda: f"What is the difference between plan {random.choice('ABC')} and token buckets with {some(2, 64)} tokens?",
        lambda: f"postal code {some(10_000, 99_999)} Berlin, 0{some(100, 999)} Oslo, row {some(1, 99)} of {some(100, 9_999)}",
    )  # fmt: skip
    for place in range(number):
        yield makers[place % len(makers)]()


def compact(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def test_nothing_is_left_of_cards_ibans_keys_and_addresses() -> None:
    left = []
    for text, secret in dirty(Random(35), LINES // 2):
        stored = redactor().text(text)
        middle = compact(secret)[-9:]  # of a key with a label, a part of the value
        if middle in compact(stored) or stored == text:
            left.append((text, stored))
    assert left == []


def test_few_clean_lines_are_touched() -> None:
    lines = [*clean(Random(35), LINES // 2)]
    touched = [(line, stored) for line in lines if (stored := redactor().text(line)) != line]
    assert len(touched) <= CLEAN_TOUCHED * len(lines), touched


@pytest.mark.parametrize("seed", range(3))
def test_other_lines_are_no_worse(seed: int) -> None:
    left = [
        each for each in dirty(Random(seed), LINES) if compact(each.secret)[-9:] in compact(redactor().text(each.text))
    ]
    touched = [line for line in clean(Random(seed), LINES) if redactor().text(line) != line]
    assert left == []
    assert len(touched) <= CLEAN_TOUCHED * LINES, touched


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("write to ana@example.com, or bo@example.org", "write to [email], or [email]"),
        ("git clone git+https://x.example/y@1.0.dev1", "git clone git+https://x.example/y@1.0.dev1"),
        ("4111 1111 1111 1111 until 12/29", "[card] until 12/29"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("4111\u20131111\u20111111\u200b1111", "[card]"),
        ("DE89\u20113704\u00ad0044\u200b0532\u20130130\u206000", "[iban]"),
        (r"{\"api_key\":\"abcd1234efgh5678\"}", r"{\"api_key\":\"[key]" + '"}'),
        ("room 12 4111-1111-1111-1111", "room 12 [card]"),
        (
            "\u0664\u0661\u0661\u0661 \u0661\u0661\u0661\u0661 \u0661\u0661\u0661\u0661 \u0661\u0661\u0661\u0661",
            "[card]",
        ),
        ("DE89 3704 0044 0532 0130 00 DE89370400440532013000", "[iban] [iban]"),
        ("to AB12 and NO93 8601 1117 947 by Friday", "to AB12 and [iban] by Friday"),
        ("DE88 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
        ("postgres://rag:hunter2@db/x", "postgres://[key]@db/x"),
        ("Authorization: Bearer abcdefghij0123456789", "Authorization: Bearer [key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE1\n-----END RSA PRIVATE KEY----- after", "[key] after"),
        ("+49 170 1234567, (030) 1234567, 0171/1234567", "[phone], [phone], [phone]"),
        ("Tlf. 22 33 44 55 og mobil: 912 34 567", "Tlf. [phone] og mobil: [phone]"),
        ("call (415) 555-0132 or 415-555-0132", "call [phone] or [phone]"),
        ("a\0b \ud800", "a\ufffdb \\ud800"),
    ],
)
def test_each_kind_by_its_name(text: str, stored: str) -> None:
    assert redactor().text(text) == stored


def test_a_project_chooses_what_is_taken_out() -> None:
    text = "ana@example.com pays with 4111 1111 1111 1111 in EMP-0042"
    assert Redactor(["card"]).text(text) == "ana@example.com pays with [card] in EMP-0042"
    assert Redactor([]).text(text) == text


def test_a_project_adds_patterns() -> None:
    pytest.importorskip("re2")
    redact = Redactor(["email", r"EMP-\d{4}", "x*"])
    assert redact.text("é EMP-0042xx, ana@example.com, emp-1") == "é [redacted][redacted], [email], emp-1"
    with pytest.raises(PatternError):
        Redactor(["("])


def test_all_texts_of_json_are_read() -> None:
    value = {"ana@example.com": [{"text": "4111111111111111", "score": 0.5}, None, True, ("x", 1)]}
    assert redactor().json(value) == {"[email]": [{"text": "[card]", "score": 0.5}, None, True, ["x", 1]]}


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_texts_take_linear_time(part: str) -> None:
    assert grows_linearly(lambda size: redactor().text((part * size)[:size]), LONG // 8)


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_texts_hide_nothing_that_follows(part: str) -> None:
    assert redactor().text(f"{(part * LONG)[:LONG]} ana@example.com").endswith(("[email]", "[key]"))


@pytest.mark.parametrize("letter", ["\u0130", "\u0131", "\u017f", "\u212a"])
def test_letters_that_are_others_in_another_case_are_no_part_of_an_iban(letter: str) -> None:
    text = f"NO93{letter}601 1117 947 and {letter}E89 3704 0044 0532 0130 00"
    assert redactor(("iban",)).text(text) == text
