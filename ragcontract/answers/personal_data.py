"""Personal data and keys in texts, by kind: addresses, phone numbers, cards, IBANs, keys.

Every pattern is bounded, or begins with a fixed text and has nothing after its only repetition, so that the time is
linear in the length of a text, whatever it says.
"""

import re
from collections.abc import Callable, Mapping, Sequence

# Between the digits of a card, or the groups of an IBAN; also what editors make of hyphens, and what nobody sees.
_GAP = r"[ \u00a0\u00ad\u2009-\u200b\u2010-\u2014\u202f\u2060.-]"

# Keys: a fixed beginning with a few characters, then all that may follow.
_REST = r"[A-Za-z0-9_-]"
_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}KEY-----)?"
    rf"|(?<![A-Za-z0-9])(?:"
    rf"sk-{_REST}{{16}}{_REST}*"
    rf"|(?:sk|rk|pk)_(?:live|test)_{_REST}{{10}}{_REST}*"
    rf"|gh[pousr]_[A-Za-z0-9]{{20}}[A-Za-z0-9]*|github_pat_{_REST}{{20}}{_REST}*|glpat-{_REST}{{16}}{_REST}*"
    rf"|xox[abeoprs]-{_REST}{{10}}{_REST}*|hf_[A-Za-z0-9]{{20}}[A-Za-z0-9]*|npm_[A-Za-z0-9]{{30}}[A-Za-z0-9]*"
    rf"|AIza{_REST}{{30}}{_REST}*|(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{{16}}"
    rf"|eyJ{_REST}{{12}}[A-Za-z0-9_.-]*"
    rf"|rc_[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{16}}[A-Za-z0-9]*)"
)
_VALUE = r"[^\s\"'\u201c\u201d`,;&<>()\[\]{}]"
_LABELLED = re.compile(
    rf"(?P<label>\b(?:bearer|basic)[ \t]{{1,4}}(?=[A-Za-z0-9._~+/=-]{{16}})"
    r"|(?:api[_ -]?key|access[_ -]?key|secret(?:[_ -]?key)?|(?:auth|access)[_ -]?token|\btoken"
    r"|passwor[dt]|passwd|kennwort|passord)[\"'`\\]{0,4}[ \t]{0,4}[:=][ \t]{0,4}[\"'`\u201c\\]{0,4})"
    rf"(?P<value>{_VALUE}{{8}}{_VALUE}*)",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?P<before>[a-z0-9+.-]{2,20}://)[^\s/:@]{0,100}:[^\s/@]{1,200}@", re.IGNORECASE)
_EMAIL = re.compile(
    r"(?:\"[^\"\n]{1,64}\"|[\w.!#$%&'*+/=?^`{|}~-]{1,64}?)(?:@|\uff20|%40)"
    r"(?:\[[0-9A-Fa-f.:]{3,45}\]|(?:[\w-]{1,63}\.){1,8}(?:xn--[a-z0-9-]{2,40}|[^\W\d_]{2,24}+(?![0-9])))"
)
# The lengths of IBANs, by country: the registry of SWIFT, release 99.
_IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 "
    "EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 "
    "IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 "
    "NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 "
    "SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
_LENGTHS: Mapping[str, int] = {each[:2]: int(each[2:]) for each in _IBANS.split()}
_CHECK_DIGITS = re.compile(rf"[0-9](?={_GAP}{{0,2}}[0-9])")  # which most texts have fewer of than letters
_COUNTRY = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=[Ii][Bb][Aa][Nn]))(?P<country>[A-Za-z]{{2}}){_GAP}{{0,2}}\Z")
_BEFORE_DIGITS = 8  # characters: IBAN, the country, and two gaps
_OF_IBAN = re.compile(rf"{_GAP}{{0,2}}([A-Za-z0-9])")
_DIGITS = re.compile(rf"\d(?<!\d\d)(?:{_GAP}{{0,3}}\d){{12}}(?:{_GAP}{{0,3}}\d)*")
_GROUP = re.compile(r"\d+")
# How the numbers of payment cards begin: Visa, Mastercard, Maestro, American Express, Diners, Discover, JCB, UnionPay.
_CARD = re.compile(r"4|5[0-9]|2[2-7]|3[4-9]|30|6[0-9]")
_CARD_DIGITS = range(13, 20)
_LEAST_GROUP = 3  # digits in a row of a card that is written in groups of different lengths
# Repetitions keep what they have (+), because there are many ways to part a row of digits.
_PHONE = re.compile(
    r"(?<![\w+.,/-])(?:"
    r"(?:\+|\(\+|(?<!\d[ \u00a0])00(?=[1-9]))[1-9][0-9]{0,3}+\)?+"  # with the country
    r"(?:[ \u00a0./-]{0,2}+\(?[0-9]{1,12}+\)?+){1,8}+"
    r"|\(0[0-9]{1,5}\)[ \u00a0]?[0-9](?:[ \u00a0/-]?[0-9]){4,11}+"  # (030) 123456
    r"|(?<!\d[ \u00a0])0[1-9][0-9]{1,4}[ \u00a0]?[/-][ \u00a0]?[0-9](?:[ \u00a0-]?[0-9]){5,10}+"  # 0171/1234567
    r"|(?<!\d[ \u00a0])0[1-9][0-9]{1,4}[ \u00a0][0-9]{3}(?:[ \u00a0-]?[0-9]){2,9}+"  # 0171 1234567
    r"|\([2-9][0-9]{2}\)[ \u00a0]?[0-9]{3}[ .-][0-9]{4}"  # (415) 555-0132
    r"|[2-9][0-9]{2}(?P<gap>[.-])[2-9][0-9]{2}(?P=gap)[0-9]{4}"
    r")(?!\w)"
)
_CALLED = re.compile(
    r"(?P<label>\b(?:tel(?:efon|ephone)?|tlf|phone|mobile?|mobil|handy|fax|whatsapp|call me(?: at| on)?|ring)\b"
    r"[ \t]{0,3}(?:nr\.?|no\.?|number|nummer)?[ \t]{0,3}[.:]{0,2}[ \t]{0,3})"
    r"(?P<value>[(+]{0,2}[0-9](?:[ \u00a0()./-]{0,2}[0-9]){5,14}+)",
    re.IGNORECASE,
)
_PHONE_DIGITS = range(7, 16)


# Most texts have nothing of this. Before a pattern is tried, a text is searched for what each of its matches has.
_STARTS_OF_KEYS: Mapping[str, Sequence[str]] = {  # by a character that they have
    "-": ("PRIVATE KEY-", "sk-", "glpat-", "xox"),
    "_": ("k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "hf_", "npm_", "rc_"),
    "A": ("AIza", "AKIA", "ASIA", "AGPA", "AIDA", "AROA"),
    "J": ("eyJ",),
}
_LABELS: Mapping[str, Sequence[str]] = {  # likewise
    " ": ("bearer", "basic"),
    "\t": ("bearer", "basic"),
    ":": ("key", "secret", "token", "passwor", "passwd", "kennwort", "passord"),
    "=": ("key", "secret", "token", "passwor", "passwd", "kennwort", "passord"),
}
_ALSO_I = ("\u0130", "\u0131")  # which a pattern takes for an i, and casefold does not
_SEPARATOR = r"[ \u00a0()./-]"  # in a phone number
_ENOUGH_DIGITS = re.compile(rf"[0-9](?:{_SEPARATOR}{{0,5}}[0-9]){{6}}")
_DIGIT = re.compile(r"\d")
_NO_DIGIT = bytes({*range(256)} - {*b"0123456789"})


def _digits(text: str) -> int:
    """Return how many digits a text has."""
    return len(text.encode().translate(None, _NO_DIGIT)) if text.isascii() else len(_DIGIT.findall(text))


def _has_any(text: str, words: Mapping[str, Sequence[str]]) -> bool:
    for character, with_it in words.items():
        if character in text:
            for word in with_it:
                if word in text:
                    return True
    return False


def _key(text: str) -> str:
    if "://" in text and "@" in text:
        text = _IN_URL.sub(r"\g<before>[key]@", text)
    if not _digits(text):
        return text
    if _has_any(text, _STARTS_OF_KEYS):
        text = _KEY.sub(lambda match: "[key]" if _is_key(match[0]) else match[0], text)
    if _has_any(text.casefold(), _LABELS) or any(letter in text for letter in _ALSO_I):
        return _LABELLED.sub(lambda match: f"{match['label']}[key]" if _is_key(match["value"]) else match[0], text)
    return text


def _is_key(text: str) -> bool:
    """Return whether a text has a digit, as every key has; ``sk-learn-pipelines`` is none."""
    return any("0" <= character <= "9" for character in text)


def _email(text: str) -> str:
    return _EMAIL.sub("[email]", text) if "@" in text or "\uff20" in text or "%40" in text else text


def _iban(text: str) -> str:
    parts, at = list[str](), 0
    for digit in _CHECK_DIGITS.finditer(text):
        if "0" <= text[digit.start() - 1 : digit.start()] <= "9":
            continue
        first = max(0, digit.start() - _BEFORE_DIGITS)
        match = _COUNTRY.search(text[first : digit.start()])
        if match is None or first + match.start() < at:
            continue
        start = first + match.start()
        end = _end_of_iban(text, start, _LENGTHS.get(match["country"].upper(), 0))
        if end is not None:
            parts += [text[at:start], "[iban]"]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def _end_of_iban(text: str, start: int, length: int) -> int | None:
    """Return where an IBAN of this many characters ends; None if what begins there is none."""
    end, characters = start, list[str]()
    while len(characters) < length and (match := _OF_IBAN.match(text, end)):
        characters.append(match[1])
        end = match.end()
    if not characters or len(characters) < length:
        return None
    moved = "".join([*characters[4:], *characters[:4]])
    return end if int("".join(str(int(each, 36)) for each in moved)) % 97 == 1 else None


def _card(text: str) -> str:
    return _DIGITS.sub(_without_cards, text) if _digits(text) >= _CARD_DIGITS.start else text


def _without_cards(match: "re.Match[str]") -> str:
    """Return a row of digits without the cards in it, each of which begins and ends with a group of digits."""
    written = match[0]
    spans = [group.span() for group in _GROUP.finditer(written)]
    sizes = [end - start for start, end in spans]
    digits = [int(character) for character in written if character.isdecimal()]
    parts, at, place, seen = list[str](), 0, 0, 0  # seen: how many digits are before the group at this place
    while place < len(spans):
        number = _groups_of_card(sizes[place : place + _CARD_DIGITS.stop], digits[seen : seen + _CARD_DIGITS.stop])
        if number:
            parts += [written[at : spans[place][0]], "[card]"]
            at = spans[place + number - 1][1]
        next_place = place + (number or 1)
        seen += sum(sizes[place:next_place])
        place = next_place
    return "".join([*parts, written[at:]])


def _groups_of_card(sizes: Sequence[int], digits: Sequence[int]) -> int:
    """Return how many of these groups, from the first one on, are a card; 0 if none are."""
    if not _CARD.match("".join(map(str, digits[:2]))):
        return 0
    total = 0
    for number, size in enumerate(sizes, 1):
        total += size
        if total >= _CARD_DIGITS.stop:
            break
        if total >= _CARD_DIGITS.start and _has_check_digit(digits[:total]):
            earlier = sizes[: number - 1]
            if not earlier or min(earlier) >= _LEAST_GROUP or (len({*earlier}) == 1 and size <= earlier[0]):
                return number
    return 0


def _has_check_digit(digits: Sequence[int]) -> bool:
    """Return whether the last digit is that of Luhn's algorithm."""
    doubled = [2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[-2::-2]]  # noqa: PLR2004
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def _phone(text: str) -> str:
    if _digits(text) < _PHONE_DIGITS.start or not _ENOUGH_DIGITS.search(text):
        return text
    text = _CALLED.sub(lambda match: f"{match['label']}[phone]" if _is_phone(match["value"]) else match[0], text)
    return _PHONE.sub(lambda match: "[phone]" if _is_phone(match[0]) else match[0], text)


def _is_phone(text: str) -> bool:
    return sum(character.isdecimal() for character in text) in _PHONE_DIGITS


# In this order: what is a key is no address, and what is a card is no phone number.
KINDS: Mapping[str, Callable[[str], str]] = {
    "key": _key,
    "email": _email,
    "iban": _iban,
    "card": _card,
    "phone": _phone,
}
