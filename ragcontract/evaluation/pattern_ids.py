"""Finds forbidden ids that are probably meant as patterns or lists. Ids are compared exactly: ``internal/*`` is one."""

import re
from collections.abc import Iterable, Sequence

from ragcontract.core.golden import named_in
from ragcontract.evaluation.plan import Plan

BETWEEN = re.compile(r"[,;|\n]")  # the ids of a list that is written as one text
FOLDER = ("/", "\\")


class PatternIds:
    """The forbidden ids that look like patterns and occur nowhere; ``never`` has where each is first forbidden.

    Where other ids end in ``/``, such an id is not a folder.
    """

    def __init__(self, plan: Plan) -> None:
        """Start with those of a plan that no query wants, and that are not known to stand for themselves."""
        own = plan.settings.different_documents
        self.never: dict[str, str] = {}
        for query in plan.golden.values():
            for doc_id in query.forbidden_doc_ids:
                if _is_pattern(doc_id) and doc_id not in own:
                    self.never.setdefault(doc_id, query.location)
        if self.never:
            self.note([sorted(named_in(plan.golden.values()) | plan.wanted_elsewhere)])

    def note(self, all_ids: Iterable[Sequence[str]]) -> None:
        """Leave out what occurs among ids."""
        for doc_ids in all_ids:
            for doc_id in self.never.keys() & set(doc_ids):
                del self.never[doc_id]
            if any(doc_id.endswith(FOLDER) for doc_id in doc_ids):
                self.never = {doc_id: at for doc_id, at in self.never.items() if not _is_folder(doc_id)}


def _is_pattern(doc_id: str) -> bool:
    return "*" in doc_id or doc_id.startswith("^") or _is_folder(doc_id) or _is_list(doc_id)


def _is_list(doc_id: str) -> bool:
    """Return whether an id is a list of ids without blanks, as titles of documents have them."""
    several = BETWEEN.split(doc_id)
    return (doc_id[0] + doc_id[-1] == "[]") or (len(several) > 1 and all(len(one.split()) == 1 for one in several))


def _is_folder(doc_id: str) -> bool:
    return doc_id.endswith(FOLDER) and "*" not in doc_id
