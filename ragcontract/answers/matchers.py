"""Searches answers for the texts, patterns and alternatives of matchers."""

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain

from msgspec import DecodeError, convert, json
from msgspec.structs import replace

from ragcontract.answers.answer_text import WORD, Answer
from ragcontract.answers.dead_patterns import dead_part
from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.normalising import Form, Span, composed, is_no_part_of_words, wanted
from ragcontract.answers.regexes import Pattern, PatternError, compiled
from ragcontract.core import bounds
from ragcontract.core.config_sections import AsWritten, Matcher, Reading, Single
from ragcontract.core.invisible import is_visible, without_invisible
from ragcontract.core.rule import Fault
from ragcontract.core.safe_text import shorten, visible

_MARKUP = re.compile(r"[<>\[\]\\&~]")
_ANCHOR = re.compile(r"[$^]|\\[AZz]")  # of a pattern for the beginning or the end of an answer or a line
_FAIL = 1  # the number of instructions of a pattern that RE2 knows to match nothing
_LONG = 1 << 14  # characters; whether a longer answer has a word at all is looked up, because there may be many words


def matcher(written: AsWritten, reading: Reading, *, compose: bool = True) -> Matcher:
    """Return a matcher as a record; a bare text is read as ``reading``.

    With ``compose``, patterns are in the normal form of answers.
    """
    if isinstance(written, Matcher) and written.any is not None:
        return Matcher(any=tuple(_single(alternative, reading, compose=compose) for alternative in written.any))
    return convert(_single(written, reading, compose=compose), Matcher, from_attributes=True)


def _single(written: str | Single, reading: Reading, *, compose: bool = True) -> Single:
    single = written
    if isinstance(single, str):
        single = Single(text=single) if reading == "text" else Single(regex=single)
    return single if single.regex is None or not compose else replace(single, regex=composed(single.regex))


def alternatives(matcher: Matcher | Single) -> tuple[Single, ...]:
    """Return what a matcher looks for: its alternatives, or itself if it has none."""
    if not isinstance(matcher, Matcher) or matcher.any is None:
        return (matcher,)
    return tuple([_single(alternative, "text") for alternative in matcher.any])


def faults(written: AsWritten | Single, reading: Reading, *, of_answers: bool = True) -> Iterator[Fault]:
    """Yield what is wrong with a matcher that has the right types.

    A pattern ``of_answers`` must not match every answer. A pattern of an argument may match every value.
    """
    if isinstance(written, str):
        yield from _faults_of_one(_single(written, reading), (), of_answers=of_answers)
        return
    several = written.any if isinstance(written, Matcher) else None
    kinds = [name for name in ("text", "regex") if getattr(written, name) is not None]
    kinds += ["any"] if several is not None else []
    if len(kinds) != 1:
        instead = f"found {' and '.join(kinds)}" if kinds else "found none of them"
        yield (), f"expected exactly one of text, regex and any, {instead}"
    elif several is None:
        yield from _faults_of_one(written, (kinds[0],), of_answers=of_answers)
    else:
        if stray := [name for name in ("word", "ignore_case", "dot_all") if getattr(written, name) is not None]:
            yield (stray[0],), "belongs to the single alternatives; write it there"
        if not several:
            yield ("any",), "is empty; give at least one alternative"
        for number, alternative in enumerate(several):
            if isinstance(alternative, str) and (fault := matcher_as_text(alternative)):
                yield ("any", number), fault
                continue
            for path, message in faults(alternative, reading, of_answers=of_answers):
                yield ("any", number, *path), message


def _faults_of_one(single: Single, path: tuple[str, ...], *, of_answers: bool) -> Iterator[Fault]:
    if "" in {single.text, single.regex}:
        yield path, "is empty; give a text or a pattern to search for"
    elif single.text is not None:
        if fault := text_fault(single.text):
            yield path, fault
        if single.dot_all is not None:
            yield ("dot_all",), "is for patterns; it means nothing for a text"
    elif single.regex is not None:
        if single.word is not None:
            yield ("word",), r"is for texts; in a pattern, write \b where a word begins and ends"
        ignore_case, dot_all = single.ignore_case is not False, bool(single.dot_all)
        fault = pattern_fault(single.regex, ignore_case=ignore_case, dot_all=dot_all, of_answers=of_answers)
        if fault:
            yield path, fault


def matcher_as_text(text: str) -> str | None:
    """Return why a text is not to be searched for, if it is the JSON of a matcher; None if it is not."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.decode(text)
    except (DecodeError, RecursionError):
        return None
    if value.keys().isdisjoint(("text", "regex", "any")):
        return None
    return 'is the text of a matcher; write the object, not its text (a text of JSON: {"text": "{…}"})'


def text_fault(text: str) -> str | None:
    """Return why a text cannot be searched for, or None if it can."""
    try:
        sought = wanted(text)
    except CannotScoreError as error:
        return str(error)
    if not is_visible(sought):
        return "has no characters left once emphasis and blanks are removed; give a text to search for"
    return None


def pattern_fault(
    pattern: str, *, ignore_case: bool = True, dot_all: bool = False, of_answers: bool = True
) -> str | None:
    """Return why RE2 refuses a pattern, or why it never matches or always does; None if it is good."""
    try:
        engine = compiled(composed(pattern), ignore_case=ignore_case, dot_all=dot_all)
    except PatternError as error:
        return str(error)
    if not is_visible(pattern):
        return r"has nothing but blanks and invisible characters; write \s or \x{…} for those"
    if invisible := next((char for char in pattern if not without_invisible(char)), None):
        code = f"{ord(invisible):04X}"
        return (
            rf"has an invisible character, U+{code}; remove it, write \x{{{code}}} for it, or write "
            '{"text": …}, which is compared without such characters'
        )
    if dead := pattern if engine.size == _FAIL else dead_part(pattern, dot_all=dot_all):
        return (
            rf"never matches from {shorten(visible(dead), bounds.VALUE)} on: ^, $, \b, \B or a class that has no "
            r"characters rules that out; for the characters $ and ^, write \$ and \^"
        )
    if of_answers and _matches_everything(engine):
        return "matches every answer; write what only some answers have, or leave it out"
    return None


@lru_cache(maxsize=4096)
def _matches_everything(pattern: Pattern) -> bool:
    """Return whether a pattern matches every answer, because it matches an empty text or very different samples."""
    short, long = _samples()
    matches = [pattern.search(sample) for sample in short]
    if any(span is not None and span[0] == span[1] for span in matches):
        return True
    return None not in matches and pattern.finds(long)


@cache
def _samples() -> tuple[tuple[Answer, ...], Answer]:
    """Return answers of one character of each kind, and a long one of several lines with all of ASCII."""
    every = "".join(map(chr, range(0x20, 0x7F)))
    return tuple(map(Answer, "aZ7é中!👍")), Answer(f"{every}\n\n{every} é中👍\n" * 20)


def spans(matcher: Matcher | Single, answer: Answer, *, normalise: bool = True) -> Iterator[Span]:
    """Yield the spans of a matcher's matches in an answer, in any of its forms; one alternative after the other."""
    return _different(form.written(span) for form, span in spans_by_form(matcher, answer, normalise=normalise))


def spans_by_form(
    matcher: Matcher | Single, answer: Answer, *, normalise: bool = True
) -> Iterator[tuple[Answer, Span]]:
    """Yield the matches of a matcher, each as a form of the answer and a span in it."""
    for single in alternatives(matcher):
        forms = _texts_of(answer) if single.regex is None else _searched(single.regex, answer)
        for form in forms if normalise else (answer,):
            yield from ((form, span) for span in spans_in_form(single, form, normalise=normalise))


def spans_in_form(matcher: Single, form: Answer, *, normalise: bool, within: Span | None = None) -> Iterator[Span]:
    """Yield the spans of a matcher's matches in one form of an answer; those of a pattern ``within`` a part of it."""
    ignore_case = matcher.ignore_case is not False
    if matcher.regex is not None:
        return compiled(matcher.regex, ignore_case=ignore_case, dot_all=bool(matcher.dot_all)).matches(form, within)
    compared = Form(normalise=normalise, ignore_case=ignore_case)
    sought = wanted(matcher.text or "", compared)
    return (
        form.origin(each, *span)
        for each in _forms(form, compared, word=bool(matcher.word))
        for span in _in_form(sought, form, each, word=bool(matcher.word))
    )


def _forms(answer: Answer, form: Form, *, word: bool) -> tuple[Form, ...]:
    """Return the forms in which a text is searched; a word is also searched without the footnote marks after it."""
    return (form, replace(form, raised=False)) if word and form.normalise and answer.has_raised else (form,)


def _texts_of(answer: Answer) -> Iterator[Answer]:
    yield answer
    yield from answer.reworded
    if decoded := answer.decoded:
        yield from _texts_of(decoded)


def _searched(pattern: str, answer: Answer) -> Iterator[Answer]:
    is_anchored = _ANCHOR.search(pattern) is not None
    for form in _forms_of_patterns(pattern, answer):
        yield form
        if is_anchored and (trimmed := form.trimmed):
            yield trimmed
    if decoded := answer.decoded:
        yield from _searched(pattern, decoded)


def _forms_of_patterns(pattern: str, answer: Answer) -> Iterator[Answer]:
    yield answer
    yield from filter(None, (answer.shown, answer.stripped))
    if " " in pattern and (flowing := answer.flowing):
        yield flowing


def finds(matcher: Matcher | Single, answer: Answer, *, normalise: bool = True) -> bool:
    """Return whether a matcher finds something that an answer must have; faster than :func:`spans`.

    Patterns see the answer only as it is written. In another form, a pattern such as ``^[^*]*$`` could hold by mistake.
    """
    return any(_finds(single, answer, normalise=normalise) for single in alternatives(matcher))


def _finds(single: Single, answer: Answer, *, normalise: bool) -> bool:
    ignore_case = single.ignore_case is not False
    if single.text is not None:
        return finds_text(single.text, answer, Form(normalise, ignore_case), word=bool(single.word))
    return compiled(single.regex or "", ignore_case=ignore_case, dot_all=bool(single.dot_all)).finds(answer)


def finds_text(text: str, answer: Answer, form: Form, *, word: bool) -> bool:
    """Return whether a text is in an answer, as it is written or as a page shows it, and is not hidden there.

    A text that is markup itself is never hidden.
    """
    if not form.normalise:
        return _is_in(text, answer, form, word=word)
    if not any(_is_in(text, each, form, word=word) for each in chain((answer,), answer.reworded)):
        return False
    if not answer.seen or _MARKUP.search(text):
        return True
    return any(_is_in(text, each, form, word=word) for each in answer.seen)


def _is_in(text: str, answer: Answer, form: Form, *, word: bool) -> bool:
    sought = wanted(text, form)
    if word:
        forms = _forms(answer, form, word=True)
        return any(next(_in_form(sought, answer, each, word=True), None) is not None for each in forms)
    return sought in answer.normal(form)


def _in_form(sought: str, answer: Answer, form: Form, *, word: bool) -> Iterator[Span]:
    """Yield the spans of a text in a form of an answer, without overlaps."""
    searched = answer.normal(form)
    if word and len(searched) > _LONG and not answer.words(form).issuperset(WORD.findall(sought)):
        return iter(())
    return occurrences(sought, searched, word=word)


def _different(all_spans: Iterable[Span]) -> Iterator[Span]:
    seen: set[Span] = set()
    for span in all_spans:
        if span not in seen:
            seen.add(span)
            yield span


def occurrences(sought: str, searched: str, *, word: bool) -> Iterator[Span]:
    """Yield the spans of one text in another; with ``word``, only where no word goes on before or after it.

    ``secret`` is a word of ``_secret_``, but not of ``secret_key``. In scripts without blanks, words end anywhere.
    """
    start = searched.find(sought)
    while start >= 0:
        end = start + len(sought)
        whole = not word or not (_joins(searched, start) or _joins(searched, end))
        if whole:
            yield start, end
        start = searched.find(sought, end if whole else start + 1)


def _joins(text: str, at: int) -> bool:
    """Return whether a word goes on across a position."""
    return 0 < at < len(text) and _goes_on(text, at - 1, -1) and _goes_on(text, at, 1)


def _goes_on(text: str, at: int, step: int) -> bool:
    """Return whether a character is part of a word; an underscore is emphasis unless the word goes on beyond it."""
    if text[at] != "_":
        return text[at].isalnum() and not is_no_part_of_words(text[at])
    beyond = at + step
    return 0 <= beyond < len(text) and (text[beyond].isalnum() or text[beyond] == "_")


def described(matcher: Matcher | Single) -> tuple[str, ...]:
    """Return the texts and patterns that a matcher looks for."""
    singles = alternatives(matcher)
    return tuple([single.text if single.text is not None else single.regex or "" for single in singles])
