"""Answer questions from the example corpus and write a run with answers for rag-contract.

An example cannot ship a language model, so this application quotes: it searches with the retriever of
`../export_retrieval_run.py`, takes the two sentences of the best documents that share most words with the question, and
cites where they come from. Where too few words match, it says that it does not know. To use rag-contract with an
application of your own, replace `Assistant`.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from export_retrieval_run import SETTINGS as INDEXES  # noqa: E402 (it lies beside this folder)
from export_retrieval_run import Document, Retriever, read_document, tokenize  # noqa: E402

from ragcontract import RunWriter, load_golden  # noqa: E402

UNKNOWN = "I can't find that in our documentation. Please ask our support team."
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """What the assistant is told: how sure it has to be before it answers."""

    version: str
    least: float
    """The share of the question's words that an answer must have."""


PROMPTS: Mapping[str, Prompt] = {
    "careful": Prompt(version="careful-1", least=0.4),
    # "Always give the customer an answer": helpful at first sight, and what the contract is there to catch.
    "helpful": Prompt(version="helpful-1", least=0.0),
}


def stems(text: str) -> set[str]:
    """Return the words of a text without stop words and endings."""
    [tokens] = tokenize([text])
    return {re.sub(r"(ing|ed|es|s|e)$", "", token) for token in tokens}


class Assistant:
    """Answers from the three best documents, or says that it does not know."""

    def __init__(self, documents: Sequence[Document], prompt: Prompt) -> None:
        """Index the documents that customers may read."""
        self.retriever = Retriever(documents, INDEXES["full"])
        self._documents = {document.doc_id: document for document in documents}
        self._prompt = prompt

    def answer(self, question: str) -> dict[str, Any]:
        """Return a row of the run without its id: the results with their texts, the answer, and its mode."""
        results = self.retriever.search(question, top=3)
        for result in results:
            document = self._documents[result["doc_id"]]
            result["text"] = "\n\n".join([document.title, *document.paragraphs])
        wanted = stems(question)
        found = sorted(self._sentences(results), key=lambda one: (-len(wanted & stems(one[1])), one[0]))[:2]
        covered = wanted & stems(" ".join(f"{self._documents[doc_id].title} {text}" for doc_id, text in found))
        if not found or len(covered) < self._prompt.least * len(wanted):
            return {"results": results, "response": UNKNOWN, "mode": "abstain"}
        said = " ".join(f"{text} [{doc_id}]" for doc_id, text in found)
        return {"results": results, "response": said, "mode": "trustworthy"}

    def _sentences(self, results: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        return [
            (result["doc_id"], sentence)
            for result in results
            for paragraph in self._documents[result["doc_id"]].paragraphs
            for sentence in SENTENCE_END.split(paragraph)
        ]


def main() -> None:
    """Read the arguments, answer every question, write the run."""
    parser = argparse.ArgumentParser(description="Answer the example's questions and write a run for rag-contract.")
    parser.add_argument("--out", type=Path, required=True, help="the run to write (JSON lines)")
    parser.add_argument("--golden", type=Path, default=HERE / "golden.jsonl", help="the golden queries")
    parser.add_argument("--prompt", choices=sorted(PROMPTS), default="careful", help="what the assistant is told")
    args = parser.parse_args()

    documents = [read_document(path) for path in sorted((HERE.parent / "corpus").glob("*.md"))]
    prompt = PROMPTS[args.prompt]
    assistant = Assistant(documents, prompt)
    golden = load_golden(args.golden)
    versions = assistant.retriever.versions | {"llm_model": "none", "prompt_version": prompt.version}
    with RunWriter(args.out, **versions) as run:
        for query in golden.values():
            run.write(query.id, **assistant.answer(query.query))
    print(f"{len(golden)} questions answered ({args.prompt} prompt), run in {args.out}")


if __name__ == "__main__":
    main()
