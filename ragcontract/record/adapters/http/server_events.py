"""Answers that a service streams as events (text/event-stream, section 9.2 of the HTML standard), read once whole."""

import json
import re
from collections.abc import Callable
from typing import Any

from jmespath.exceptions import JMESPathError

from ragcontract.http.sending import Answered

EVENT_STREAM = "text/event-stream"
LAST = "[DONE]"  # what OpenAI's API sends last


def read_stream(answered: Answered, text_of: Callable[[Any], Any]) -> Any:
    """Return the decoded JSON of an answer, or of a stream its ``events`` and their ``text``; raises ValueError.

    ``text_of`` returns the text in the data of an event; what is not text has no part in it.
    """
    if not answered.headers.get("content-type", "").lower().startswith(EVENT_STREAM):
        return json.loads(answered.content)
    events = [json.loads(data) for data in _data(answered.content.decode("utf-8-sig", errors="replace"))]
    try:
        texts = [text_of(event) for event in events]
    except JMESPathError as error:
        raise ValueError(str(error)) from error
    return {"text": "".join(text for text in texts if isinstance(text, str)), "events": events}


def _data(stream: str) -> list[str]:
    """Return the data of each event: the rest of its lines that begin with ``data:``."""
    found = []
    for event in re.split(r"\r\n\r\n|\n\n|\r\r", stream):
        lines = [line for line in re.split(r"\r\n|\n|\r", event) if line.startswith("data:")]
        data = "\n".join(line.removeprefix("data:").removeprefix(" ") for line in lines)
        if data.strip() not in {"", LAST}:
            found.append(data)
    return found
