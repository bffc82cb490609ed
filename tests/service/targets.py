"""Folders of projects as an operator mounts them, with systems that answer, or do something wrong."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragcontract.service.mounted import MountedProject, project_in
from tests.builders import as_jsonl, golden

ANSWERS = """
def answer(query, messages=(), top=10):
    said = " and ".join([m["content"] for m in messages] + [query])
    return {
        "response": f"You said: {said}",
        "results": [{"doc_id": "d1", "score": 0.5, "text": "The first text."}, {"doc_id": "d2"}],
        "tool_calls": [{"name": "look_up", "arguments": {"query": query}}],
    }
"""
BROKEN = {
    "hangs": "import time\ndef answer(query):\n    time.sleep(600)\n",
    "dies": "import os\ndef answer(query):\n    os._exit(3)\n",
    "prints": "def answer(query):\n    for _ in range(100):\n        print('x' * (1 << 20))\n    return ['d1']\n",
    "floods": "def answer(query):\n    return {'response': 'x' * (100 << 20)}\n",
    "nonsense": "def answer(query):\n    return {'results': {1: object()}, 'wrong': [query]}\n",
    "number": "def answer(query):\n    return 42\n",
    "raises": "def answer(query):\n    raise ValueError('no index')\n",
    "does not import": "import no_such_module\n",
    "ends at once": "raise SystemExit(1)\n",
    "does not start": "import time\ntime.sleep(600)\n",
}


def project(
    folder: Path,
    code: str = ANSWERS,
    *,
    slug: str = "docs",
    queries: Sequence[dict[str, Any]] = (),
    config: str = "k: 5\n",
    file: str = "name: Docs\n",
    record: str | None = "python:\n  object: target.py:answer\n",
) -> Path:
    """Mount a project and return the folder of all of them."""
    home = folder / slug
    home.mkdir(parents=True, exist_ok=True)
    (home / "project.yml").write_text(file)
    (home / "golden.jsonl").write_text(as_jsonl(*(queries or [golden("q1", "d1", query="Where is the first text?")])))
    (home / "ragcontract.yml").write_text(config)
    (home / "target.py").write_text(code)
    if record is not None:
        (home / "record.yml").write_text(record)
    return folder


def mounted(folder: Path, slug: str = "docs") -> MountedProject:
    """Return a project that is mounted in a folder."""
    read = project_in(folder, slug)
    assert read
    return read
