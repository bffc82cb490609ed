"""Answer questions from the example corpus; `rag-contract record assistant.py:careful` writes the run with the answers.

An example cannot ship a language model, so this application quotes: it searches with the retriever of `../search.py`,
takes the two sentences of the best documents that share most words with the question, and cites where they come from.
Where too few words match, it says that it does not know. To use rag-contract with an application of your own, name it
in the command in place of this one.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from search import FULL, Retriever, tokenize  # it lies in the folder above

UNKNOWN = "I can't find that in our documentation. Please ask our support team."
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """What the assistant is told: how sure it has to be before it answers."""

    version: str
    least: float
    """The share of the question's words that an answer must have."""


CAREFUL = Prompt(version="careful-1", least=0.4)
# "Always give the customer an answer": helpful at first sight, and what the contract is there to catch.
HELPFUL = Prompt(version="helpful-1", least=0.0)


def stems(text: str) -> set[str]:
    """Return the words of a text without stop words and endings."""
    [tokens] = tokenize([text])
    return {re.sub(r"(ing|ed|es|s|e)$", "", token) for token in tokens}


class Assistant:
    """Answers from the three best documents, or says that it does not know."""

    def __init__(self, prompt: Prompt) -> None:
        """Search the documents that customers may read."""
        self._retriever = Retriever(FULL)
        self._prompt = prompt

    def setup(self) -> None:
        """Index the documents."""
        self._retriever.setup()

    def run(self, question: str, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return what becomes a row of the run: the results with their texts, the answer, and its mode."""
        results = self._retriever.run(question, {**context, "top": 3})
        for result in results:
            document = self._retriever.documents[result["doc_id"]]
            result["text"] = "\n\n".join([document.title, *document.paragraphs])
        wanted = stems(question)
        found = sorted(self._sentences(results), key=lambda one: (-len(wanted & stems(one[1])), one[0]))[:2]
        titles = [self._retriever.documents[doc_id].title for doc_id, _ in found]
        covered = wanted & stems(" ".join([*titles, *(text for _, text in found)]))
        if not found or len(covered) < self._prompt.least * len(wanted):
            return {"results": results, "response": UNKNOWN, "mode": "abstain"}
        said = " ".join(f"{text} [{doc_id}]" for doc_id, text in found)
        return {"results": results, "response": said, "mode": "trustworthy"}

    def versions(self) -> dict[str, str]:
        """Return what made these answers; reports name what changed."""
        return self._retriever.versions() | {"llm_model": "none", "prompt_version": self._prompt.version}

    def _sentences(self, results: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        return [
            (result["doc_id"], sentence)
            for result in results
            for paragraph in self._retriever.documents[result["doc_id"]].paragraphs
            for sentence in SENTENCE_END.split(paragraph)
        ]


careful = Assistant(CAREFUL)
helpful = Assistant(HELPFUL)
