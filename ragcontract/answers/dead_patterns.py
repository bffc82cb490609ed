r"""Finds the part of a pattern that no text can match because of its neighbours: ``costs $5``, ``x^2``, ``\b\B``.

Characters are of three kinds, which are letters as ``\b`` knows them, line ends and others. A pattern becomes a graph.
Its edges ask for a kind of character, or for what is before and after a place. A part that is on no way through the
graph can never match. Where the kind is not sure, as in a class of Unicode, it may be any. A part that may be left out
does no harm, so ``end$\s*`` is fine.

The graph also shows letters outside ASCII beside a ``\b``, where RE2 sees no word: ``\bцена\b`` would never match.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

CODE = r"\\(?:x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_LETTERS = r"\\p(?:\{(?:L\w?|\w{3,})\}|L)"  # all letters, or those of a script
_OTHERS = r"\\[pP](?:\{\^?\w*\}|.)"
TOKEN = re.compile(
    rf"(?P<bound>\\[bB])|(?P<edge>\\[AzZQE]|\^|\$|\(\?[a-zA-Z-]+\))|{CODE}|{_LETTERS}|{_OTHERS}"
    r"|(?P<class>\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\])|(?P<open>\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?)"
    r"|(?P<close>\))|(?P<or>\|)|\\.|.",
    re.DOTALL,
)
QUANTIFIER = re.compile(r"(?:(?P<optional>[*?]|\{0?,[0-9]*\}|\{0\})|\+|\{[0-9]+(?:,[0-9]*)?\})\??")
_IN_CLASS = re.compile(rf"{CODE}|{_LETTERS}|{_OTHERS}|\\.|.", re.DOTALL)

_EDGE, _LETTER, _OTHER, _LINE_END = 1, 2, 4, 8  # kinds of characters; the first is the end of a text
_ANY, _ANYTHING = _LETTER | _OTHER | _LINE_END, 15
_KINDS = (_LETTER, _OTHER, _LINE_END)
_CLASSES = {
    "d": _LETTER | _OTHER, "w": _LETTER | _OTHER, "s": _OTHER | _LINE_END, "S": _LETTER | _OTHER,
    "W": _OTHER | _LINE_END, "n": _LINE_END, **dict.fromkeys("tvfra", _OTHER),
}  # fmt: skip
_FOLDED = frozenset("kKsS")  # with case ignored, they are also U+212A and U+017F, which \b does not take for letters
_ALL_OF_IT = (r"\s\S", r"\S\s", r"\w\W", r"\W\w", r"\d\D", r"\D\d")
_MEMBER = re.compile(rf"{CODE}|\\.|\[:\^?[a-z]+:\]|.", re.DOTALL)
_WORTH_A_LOOK = re.compile(r"[$^]|\\[bBAzZ]")
_QUOTED = r"\Q"

Assertion = str
Place = tuple[int, int, int]  # a node, the kind of what is before it, and the kinds that may be after it


class _Edge(Struct, frozen=True, gc=False):
    """A step of the graph, which takes one character or only asserts something about its place."""

    to: int  # the node
    kinds: int = 0  # of the character
    asserts: Assertion = ""  # without a character
    at: int = -1  # where the character is in the pattern
    again: bool = False  # whether it leads back, to repeat a part


class _Graph:
    """The ways in which a pattern matches. A part of it is a pair of nodes, its beginning and its end."""

    def __init__(self) -> None:
        self.edges: list[list[_Edge]] = []
        self.needed: set[int] = set()  # the places of the characters that some alternative needs
        self.letters: dict[int, str] = {}  # outside ASCII, a letter or a class of letters, by its place
        self.bounds: list[tuple[int, int, int]] = []  # the places where words begin or end, with their nodes

    def node(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def step(self, kinds: int = 0, asserts: Assertion = "", at: int = -1) -> tuple[int, int]:
        start, end = self.node(), self.node()
        self.edges[start].append(_Edge(end, kinds, asserts, at))
        if at >= 0:
            self.needed.add(at)
        return start, end

    def join(self, start: int, end: int, *, again: bool = False) -> None:
        self.edges[start].append(_Edge(end, again=again))

    def either(self, parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
        start, end = self.node(), self.node()
        for first, last in parts:
            self.join(start, first)
            self.join(last, end)
        return start, end


def dead_part(pattern: str, *, dot_all: bool = False) -> str | None:
    """Return a pattern from the first character on that cannot be in any match; None if each can be."""
    if _QUOTED in pattern or not _WORTH_A_LOOK.search(pattern):
        return None
    graph = _Graph()
    start, end = _parsed(pattern, graph, dot_all=dot_all)
    before = _reached(graph, start)
    if all(node != end for node, _, _ in before):
        return pattern
    dead = graph.needed - _alive(before, end)
    return pattern[min(dead) :] if dead else None


def letter_beside_bound(pattern: str) -> str | None:
    r"""Return the character or class of letters outside ASCII directly beside a ``\b`` or ``\B``, or None."""
    if r"\b" not in pattern.lower():
        return None
    graph = _Graph()
    _parsed(pattern, graph, dot_all=False)
    after = [[(edge.to, edge) for edge in edges if not edge.again] for edges in graph.edges]
    before: list[list[tuple[int, _Edge]]] = [[] for _ in graph.edges]
    for node, steps in enumerate(after):
        for to, edge in steps:
            before[to].append((node, edge))
    beside: list[tuple[int, int, str]] = []
    for bound, start, end in graph.bounds:
        places = {*_nearest_characters(before, start), *_nearest_characters(after, end)} & graph.letters.keys()
        beside += [(max(bound, place), -place, graph.letters[place]) for place in places]
    return min(beside)[2] if beside else None


def _nearest_characters(steps: Sequence[Sequence[tuple[int, _Edge]]], node: int) -> Iterator[int]:
    """Yield the places of the characters that can be reached from a node without another one between."""
    nodes, seen = [node], {node}
    while nodes:
        for other, edge in steps[nodes.pop()]:
            if edge.at >= 0:
                yield edge.at
            elif not edge.kinds and other not in seen:
                seen.add(other)
                nodes.append(other)


def _parsed(pattern: str, graph: _Graph, *, dot_all: bool) -> tuple[int, int]:
    multiline = re.search(r"\(\?[a-zA-Z]*m", pattern) is not None
    dot = _ANY if dot_all or re.search(r"\(\?[a-zA-Z]*s", pattern) else _LETTER | _OTHER
    open_groups: list[tuple[list[tuple[int, int]], tuple[int, int], int]] = []
    alternatives: list[tuple[int, int]] = []
    part = graph.step()
    at = 0
    while token := TOKEN.match(pattern, at):
        begin, at = token.span()
        if token.lastgroup == "open":
            open_groups.append((alternatives, part, begin))
            alternatives, part = [], graph.step()
            continue
        if token.lastgroup == "or":
            alternatives.append(part)
            part = graph.step()
            continue
        if token.lastgroup == "close" and open_groups:
            item = graph.either([*alternatives, part])
            alternatives, part, begin = open_groups.pop()
        else:
            item = _item(token, graph, dot, multiline=multiline)
        while quantifier := QUANTIFIER.match(pattern, at):
            at = quantifier.end()
            graph.join(item[1], item[0], again=True)  # whatever the number is: once more is allowed
            if quantifier["optional"]:
                item = graph.either([item, graph.step()])
                graph.needed.difference_update(range(begin, at))
        graph.join(part[1], item[0])
        part = part[0], item[1]
    return graph.either([*alternatives, part])


def _item(token: re.Match[str], graph: _Graph, dot: int, *, multiline: bool) -> tuple[int, int]:
    text = token[0]
    if token.lastgroup == "bound":
        part = graph.step(asserts=text)
        graph.bounds.append((token.start(), *part))
        return part
    if token.lastgroup == "edge":
        if text.startswith("(?"):
            return graph.step()
        if text in {"^", r"\A"}:
            return graph.step(asserts="line start" if multiline and text == "^" else "start")
        if text == "$" and not multiline:  # also before a last line end
            end = graph.step(asserts="end")
            line_end = graph.step(_LINE_END)
            graph.join(line_end[1], end[0])
            either = graph.either([line_end, graph.step()])
            graph.join(either[1], end[0])
            return either[0], end[1]
        return graph.step(asserts="line end" if text == "$" else "end")
    if _in_class(text) if token.lastgroup == "class" else _is_letter(text):
        graph.letters[token.start()] = text
    kinds = _kinds_in(text) if token.lastgroup == "class" else dot if text == "." else _kinds_of(text)
    return graph.step(kinds, at=token.start())


def _kinds_in(written: str) -> int:
    if written.startswith("[^"):
        return 0 if any(both in written for both in _ALL_OF_IT) else _ANY
    members = _MEMBER.findall(written[1:-1])
    if "-" in members[1:-1]:
        return _ANY
    kinds = 0
    for member in members:
        kinds |= _ANY if member.startswith("[:") else _kinds_of(member)
    return kinds


def _kinds_of(text: str) -> int:
    """Return the kinds of a character, as it is written or with a backslash."""
    if re.fullmatch(CODE, text):
        text = chr(int(text[2:].strip("{}"), 16))
    elif text[0] == "\\" and text[1:2].isalnum():
        return _CLASSES.get(text[1:], _ANY)
    char = text[-1:]
    if char == "\n":
        return _LINE_END
    if not (char.isascii() and (char.isalnum() or char == "_")):
        return _OTHER
    return _LETTER | _OTHER if char in _FOLDED else _LETTER


def _in_class(written: str) -> bool:
    """Return whether a class names letters outside ASCII."""
    return not written.startswith("[^") and any(map(_is_letter, _IN_CLASS.findall(written)))


def _is_letter(token: str) -> bool:
    if re.fullmatch(_LETTERS, token):
        return True
    char = chr(int(token[2:].strip("{}"), 16)) if re.fullmatch(CODE, token) else token[-1:]
    return not char.isascii() and char.isalnum()


def _alive(before: dict[Place, list[tuple[Place, _Edge]]], end: int) -> set[int]:
    """Return the places of the characters in the pattern that are on a way to its end."""
    alive: set[int] = set()
    places = [place for place in before if place[0] == end]
    seen = set(places)
    while places:
        for previous, edge in before[places.pop()]:
            alive.add(edge.at)
            if previous not in seen:
                seen.add(previous)
                places.append(previous)
    return alive


def _reached(graph: _Graph, start: int) -> dict[Place, list[tuple[Place, _Edge]]]:
    """Return all places that can be reached, each with the steps that lead to it."""
    places: list[Place] = [(start, kind, _ANYTHING) for kind in (_EDGE, *_KINDS)]
    before: dict[Place, list[tuple[Place, _Edge]]] = {place: [] for place in places}
    while places:
        place = places.pop()
        for edge in graph.edges[place[0]]:
            for reached in _after(place, edge):
                if reached not in before:
                    before[reached] = []
                    places.append(reached)
                before[reached].append((place, edge))
    return before


def _after(place: Place, edge: _Edge) -> Iterator[Place]:
    """Yield the places to which a step leads from a place."""
    _, last, following = place
    if edge.at >= 0 or edge.kinds:
        yield from ((edge.to, kind, _ANYTHING) for kind in _KINDS if kind & edge.kinds & following)
        return
    match edge.asserts:
        case "start":
            following = following if last == _EDGE else 0
        case "line start":
            following = following if last in {_EDGE, _LINE_END} else 0
        case "end":
            following &= _EDGE
        case "line end":
            following &= _EDGE | _LINE_END
        case r"\b":
            following &= _ANYTHING - _LETTER if last == _LETTER else _LETTER
        case r"\B":
            following &= _LETTER if last == _LETTER else _ANYTHING - _LETTER
    if following:
        yield edge.to, last, following
