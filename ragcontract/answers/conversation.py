"""Splits a conversation into its turns.

A turn begins at each message of the user, the first turn at the first message. A row may also have its own answer and
calls beside its messages. They must say the same.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict, replace

from ragcontract.answers.messages import (
    UNKNOWN_CALLS,
    answer_of,
    calls_in,
    came_about,
    faults_of,
    is_of_tools,
    letters_of,
    reasons_in,
    refusals_in,
    results_without_call,
    texts_in,
    with_role,
)
from ragcontract.answers.metric_options import CannotScoreError, is_for_calls, tell_the_same
from ragcontract.answers.tool_calls import ToolCall, brief, tool_calls
from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Message, private
from ragcontract.core.questions import same_question
from ragcontract.core.rule import Turn
from ragcontract.core.run import Json, RunRow
from ragcontract.files.schema import shown

DECLARED = ("mode", "finish_reason")  # how an answer came about; also in a message, for turns before the last
STATED = ("error", "refusal", *DECLARED)
ALONE = "; or leave messages out, which only turns need"


def turns_of(row: RunRow, expected: int) -> tuple[Turn, ...] | str:
    """Return the ``expected`` turns of a row's ``messages``, or a fault that completes "query 'q1' …".

    The response of a turn is the text of the assistant's messages in it, and its calls are theirs. Messages of the
    assistant before the first of the user belong to the first turn. The row's own fields about its answer belong to the
    last turn. After an ``error``, later turns may be missing; they have no answer.
    """
    if row.messages is None and row.error is None:
        return "has no messages, which its turns need; export the conversation as chat messages with role and content"
    messages = [*map(with_role, row.messages or ())]
    if why := next(_faults(row, messages, []), None):
        return why
    starts = starts_in(messages)
    if len(starts) > expected or (len(starts) < expected and row.error is None):
        had = f"has {count(len(starts), 'turn')} in messages, and its golden row has {expected:,}"
        return f"{had}; a turn begins at each message of the user"
    turns: list[Turn] = []
    for start, end in pairwise([*starts, len(messages)]):
        turn = Turn(row=_row(row, messages[start if turns else 0 : end]), message=start)
        if len(str(turn.row.response or "")) > bounds.ANSWER:
            return f"has an answer of more than {bounds.ANSWER:,} characters in turn {len(turns) + 1}"
        turns.append(turn)
    if why := next(_contradictions(row, messages, in_turns=True), None):
        return why
    if turns:
        turns[-1] = replace(turns[-1], row=_with_fields_of(row, turns[-1].row))
    if row.error is not None and len(turns) == expected:  # it ended the last turn
        turns[-1] = replace(turns[-1], row=replace(turns[-1].row, error=row.error))
    return (*turns, *unanswered(row, expected - len(turns)))


def with_last_turn(row: RunRow) -> RunRow:
    """Return a row without turns with what its last messages say, and it does not, of how its answer came about."""
    return _with_stated(row, _stated(_of_last_turn([*map(with_role, row.messages or ())])))


def _with_stated(row: RunRow, stated: Mapping[str, str | None]) -> RunRow:
    missing = {field: text for field, text in stated.items() if text and _reads(row, field) and not getattr(row, field)}
    return replace(row, **missing) if missing else row


def contradiction(row: RunRow) -> str | None:
    """Return what is wrong with the messages of a row without turns; completes "query 'q1' …".

    They may be unreadable, or differ from the response and the calls of the row, which are what is checked.
    """
    messages = [*map(with_role, row.messages or ())]
    if why := next(_faults(row, messages, getattr(row, "tool_calls", None) or []), None):
        return Message.of(why, ALONE)
    return next(_contradictions(row, messages, in_turns=False), None)


def beside_turn(messages: Sequence[Json], *, in_turns: bool = True, **fields: Any) -> str | None:
    """Return how the messages of one turn contradict the fields of a row beside them; completes "query 'q1' …"."""
    row = RunRow(query_id="-", **fields)
    return next(_contradictions(row, last_turn(messages), in_turns=in_turns), None)


def content_of_turn(messages: Sequence[Json]) -> tuple[str, Hashable, frozenset[str]]:
    """Return a key of what the assistant says, calls and refuses in messages; equal for versions that say the same."""
    own = [message for message in messages if message["role"] == "assistant"]
    made = [call for message in own for call in calls_in(message)]
    try:
        calls: Hashable = frozenset(Counter(call.identity for call in tool_calls(made)).items())
    except CannotScoreError:
        calls = repr(made)
    return letters_of(answer_of(own)), calls, frozenset(map(letters_of, refusals_in(own)))


def other_questions(messages: Sequence[Json], questions: Sequence[str]) -> bool:
    """Return whether the user says something else in a turn than its question.

    An application may put more around it, such as a context. A turn without a text, such as an image, is not compared.
    """
    with_roles = [*map(with_role, messages)]
    sayings = ("".join(text for _, text in texts_in(with_roles[start])) for start in starts_in(with_roles))
    return any(
        text and same_question(question) not in same_question(text)
        for text, question in zip(sayings, questions, strict=False)  # after an error, turns may be missing
    )


def starts_in(messages: Sequence[Json]) -> list[int]:
    """Return where turns begin: at each message of the user that has more than results of tools."""
    return [index for index, sent in enumerate(messages) if sent.get("role") == "user" and not is_of_tools(sent)]


def last_turn(messages: Sequence[Json]) -> Sequence[Json]:
    """Return the last message of the user and all after it; all messages if the user sent none."""
    return messages[max(starts_in(messages), default=0) :]


def _faults(row: RunRow, messages: Sequence[Json], called: Sequence[Json]) -> Iterator[str]:
    """Yield what is wrong with messages; ``called`` are calls that are not among them."""
    for index, message in enumerate(messages):
        yield from faults_of(message, f"messages[{index}]")
    if _reads(row, "tool_calls"):
        for index in results_without_call(messages, called):
            yield f"has the result of a tool in messages[{index}], and not its call; export the call, too"
        yield from _uncalled(messages, called)


def _uncalled(messages: Sequence[Json], called: Sequence[Json]) -> Iterator[str]:
    """Yield the messages that stopped for tool calls in a turn without a call."""
    for start, end in pairwise([0, *starts_in(messages)[1:], len(messages)]):
        if called or any(map(calls_in, messages[start:end])):
            continue
        for index, message in enumerate(messages[start:end], start):
            if any(map(is_for_calls, reasons_in(message))):
                yield f"has a message that stopped for tool calls in messages[{index}], and no call; export the calls"


def _contradictions(row: RunRow, messages: Sequence[Json], *, in_turns: bool) -> Iterator[str]:
    """Yield how the calls of a row differ from those in its messages, and its response from their last answer.

    Without turns, the messages may lack a call that an application made inside of a tool, and may end with the user.
    """
    if _reads(row, "tool_calls") and row.tool_calls is not None:
        yield from _other_calls(row.tool_calls, messages, in_turns=in_turns)
    own = _of_last_turn(messages)
    yield from _came_about_otherwise(row, own)
    if not _reads(row, "response") or row.response is UNSET or row.error is not None:
        return
    answered = answer_of(own)
    refusals = [text for message in own for _, text in texts_in(message)]
    if (own or in_turns) and letters_of(row.response) not in {letters_of(answered), letters_of("".join(refusals))}:
        answer = "nothing" if answered is None else private(shown(answered))
        advice = (
            "leave response out, because turns are checked by their messages" if in_turns else "export the same in both"
        )
        advice = f" as the answer in messages; {advice}{'' if in_turns else ALONE}"
        yield Message.quoting("has ", private(shown(row.response)), " as response, and ", answer, advice)


def _of_last_turn(messages: Sequence[Json]) -> list[Json]:
    _, *later = starts_in(messages) or [0]
    return [message for message in messages[later[-1] if later else 0 :] if message["role"] == "assistant"]


def _came_about_otherwise(row: RunRow, own: Sequence[Json]) -> Iterator[str]:
    """Yield what a row says of how its answer came about, and its last messages deny."""
    stated = _stated(own)
    for field in DECLARED:
        of_row, of_messages = getattr(row, field) if _reads(row, field) else None, stated[field]
        if not of_row or not of_messages or of_row == of_messages:
            continue
        if field != "finish_reason" or not tell_the_same((of_row, of_messages)):
            both = private(shown(of_row)), f" as {field}, and ", private(shown(of_messages))
            yield Message.quoting("has ", *both, " in messages; export the same in both")


def _other_calls(called: Sequence[Json], messages: Sequence[Json], *, in_turns: bool) -> Iterator[str]:
    places = [(index, call) for index, message in enumerate(messages) for call in calls_in(message)]
    if not called and places:
        advice = "export all calls, and only the messages of this query"
        rest = f" as tool_calls, and a call in messages[{places[0][0]}]; {advice}"
        yield Message.quoting("has ", private("[]"), rest)
        return
    if called == [call for _, call in places]:  # as they are written
        return
    try:
        own, stated = tool_calls(called), tool_calls([call for _, call in places])
    except CannotScoreError as error:
        yield str(error)
        return
    if lost := _without(stated, own):
        advice = "export all calls, and only the messages of this query"
        rest = f" in messages, and not in tool_calls; {advice}"
        yield Message.quoting("has a call of ", private(shown(brief(lost[0]))), rest)
    elif in_turns and (more := _without(own, stated)):
        advice = "leave tool_calls out, because turns are checked by their messages, and export the call there"
        rest = f" in tool_calls, and not in messages; {advice}"
        yield Message.quoting("has a call of ", private(shown(brief(more[0]))), rest)


def _without(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls that are not among others; each of the others stands for one call."""
    left = Counter(call.identity for call in others)
    missing: list[ToolCall] = []
    for call in calls:
        left[call.identity] -= 1
        if left[call.identity] < 0:
            missing.append(call)
    return missing


def _reads(row: RunRow, field: str) -> bool:
    return field in row.__struct_fields__ and field not in row.unparsed


def unanswered(row: RunRow, turns: int) -> tuple[Turn, ...]:
    """Return empty turns for a conversation that is missing or ended with an error."""
    return (Turn(row=replace(_row(row, []), error=row.error, tool_calls=None)),) * turns


def whole(row: RunRow, turns: Sequence[Turn]) -> RunRow:
    """Return a row for metrics, with the response of the last turn and the calls of all turns if it has none itself.

    The calls stay unknown if those of a turn are.
    """
    fields: dict[str, Any] = {}
    if _reads(row, "response") and row.response is UNSET and turns:
        fields["response"] = turns[-1].row.response
    are_known = all(turn.row.tool_calls is not None or turn.message is None for turn in turns)
    if _reads(row, "tool_calls") and row.tool_calls is None and are_known:
        fields["tool_calls"] = [call for turn in turns for call in turn.row.tool_calls or ()]
    row = replace(row, **fields) if fields else row
    return _with_stated(row, {field: getattr(turns[-1].row, field) for field in STATED}) if turns else row


def _with_fields_of(row: RunRow, of_turn: RunRow) -> RunRow:
    """Return the row of the last turn with the fields of the whole row about how the application answered."""
    fields = {field: getattr(row, field) for field in ("refusal", *DECLARED) if _reads(row, field)}
    refusals = dict.fromkeys(filter(None, (of_turn.refusal, fields.get("refusal"))))
    declared = {field: fields.get(field) or getattr(of_turn, field) for field in DECLARED}
    return replace(of_turn, refusal="\n".join(refusals) or None, **declared)


def _row(row: RunRow, messages: Sequence[Json]) -> RunRow:
    """Return the row of one turn, without what is only known of the whole row."""
    said = [message for message in messages if message["role"] == "assistant"]
    is_unknown = any(message.get(UNKNOWN_CALLS) for message in said)
    of_turn: dict[str, Any] = {
        **_stated(said),
        "response": answer_of(said),
        "messages": None,
        "tool_calls": None if is_unknown else [call for message in said for call in calls_in(message)],
    }
    return RunRow(**{**asdict(row), **of_turn})


def _stated(own: Sequence[Json]) -> dict[str, str | None]:
    """Return the fields of a row that messages of the assistant say of how they came about; the last one counts."""
    stated: dict[str, str | None] = {**dict.fromkeys(STATED), "refusal": "\n".join(refusals_in(own)) or None}
    for message in own:
        stated |= came_about(message)
    return stated
