"""Make a repository of 60 commits, three of which change what the example's retriever finds, and check each.

`python make_history.py my-history` takes some seconds. Most commits are harmless. Two make retrieval worse, and one
repairs what one of them broke: the history of checks shows which. Add `--reveal` to read the answer.
"""

import argparse
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ragcontract import record_run
from ragcontract.history.entry import Origin
from ragcontract.history.folder import Folder
from ragcontract.history.new_entry import new_entry
from ragcontract.pipeline import Inputs, check
from ragcontract.report.record import Provenance

EXAMPLE = Path(__file__).resolve().parent
FILES = ("search.py", "golden.jsonl", "ragcontract.yml", "baseline.json")
COMMITS, FIRST, BETWEEN = 60, datetime(2026, 8, 3, 9, tzinfo=UTC), timedelta(hours=36)
NOT_CHECKED = {9, 26, 53}  # no CI that day
CHECKED_TWICE = {33}  # somebody hoped that the failure would go away

# The harmless commits: pages about something else, code that is written differently, and minutes.
PAGE = "---\nvisibility: public\nstatus: current\narea: product\n---\n# {}\n\n{}\n"
PAGES = (
    ("Keyboard shortcuts", "Press the question mark to see every shortcut. The letter N opens an empty note."),
    ("Dark mode", "Colors follow the operating system. Pick a light or dark theme in the appearance menu."),
    ("Emoji reactions", "Hover over a comment and pick a smiley. Everybody sees who reacted."),
    ("Calendar view", "Tasks with a due date appear in the calendar. Drag a task to move it to a different week."),
)
REWRITTEN = (
    ("Rename raw_score to raw", "raw_score", "raw"),
    ("Rename _bm25 to _index", "self._bm25", "self._index"),
    ("Say what front matter is", "FRONT_MATTER = ", "# Between two lines of ---\nFRONT_MATTER = "),
    ("Rename number to position", "number", "position"),
    ("Shorten a docstring", "Store how the folder of Markdown files is to be indexed.", "Index a folder of pages."),
    ("Rename fingerprint to digest", "fingerprint", "digest"),
)

# The three that count: the message, and what is replaced by what in search.py.
LABELS = """    labels = {"fax", "former", "phone"}  # of the contact form, which every page has
    return [[word for word in words if word not in labels] for words in tokens]
"""
WHOLE, CUT = "for paragraph in document.paragraphs]", "for paragraph in document.paragraphs[1:]]"
PLANTED = {
    18: ("Collect the labels of the contact form", "    return tokens\n", LABELS),
    33: ("Make the index smaller", WHOLE, CUT),
    47: ("Tidy up how pages are cut", CUT, WHOLE),
}
OF_CUT = "refund-annual, plan-with-sso, school-discount, idle-timeout (they {}), remove-leavers, deleted-files"
ANSWERS = {
    18: "'former' and 'phone' are not searched for: erase-person and lost-phone get worse; the contract holds",
    33: f"first paragraphs are not indexed: {OF_CUT.format('fail')}",
    47: f"first paragraphs are indexed again: {OF_CUT.format('hold')}",
}


def changes() -> Iterator[tuple[str, str, str, str]]:
    """Yield the message of each commit, the file that it changes, and the text that it replaces by another one there.

    If it replaces nothing, the other text is added at the end.
    """
    yield "Search the help centre", "minutes.md", "", "# Minutes\n\n"
    pages, rewritten = iter(PAGES), iter(REWRITTEN)
    for number in range(2, COMMITS + 1):
        if number % 14 == 0:
            title, text = next(pages)
            path = f"corpus/{title.lower().replace(' ', '_')}.md"
            yield f"Add the page {title}", path, "", PAGE.format(title, text)
        elif number in PLANTED or number % 8 == 0:
            message, old, new = PLANTED.get(number) or next(rewritten)
            yield message, "search.py", old, new
        else:
            yield f"Add minutes {number}", "minutes.md", "", f"- {number}: nothing new\n"


def git(folder: Path, *arguments: str, at: datetime = FIRST) -> str:
    """Run git in a folder, without anybody's settings, and return what it prints."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    environ |= {"GIT_AUTHOR_DATE": at.isoformat(), "GIT_COMMITTER_DATE": at.isoformat()}
    identity = ("-c", "user.name=Example", "-c", "user.email=example@example.com")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def record_and_check(folder: Path, origin: Origin, at: datetime) -> None:
    """Do what `rag-contract record`, `check` and `history add` do, but as of a day in the past."""
    retriever = runpy.run_path(str(folder / "search.py"))["full"]
    golden, config, baseline, run = (str(folder / name) for name in (*FILES[1:], "current_run.jsonl"))
    record_run(retriever, golden=golden, out=run)
    inputs = Inputs(golden=[golden], run=[run], baseline=[baseline], config=config, keep_ids=True)
    outcome = check(inputs, now=at, source=Provenance(contract="docs"))
    Folder(str(folder / "history")).add(new_entry(outcome.report, outcome.evaluation, origin, report_sha256=""))


def make(folder: Path) -> None:
    """Make the repository, and check each commit."""
    shutil.copytree(EXAMPLE / "corpus", folder / "corpus")
    for name in FILES:
        shutil.copyfile(EXAMPLE / name, folder / name)
    (folder / ".gitignore").write_text("history*\ncurrent_run.jsonl*\n", encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number, (message, file, old, new) in enumerate(changes(), start=1):
        path, at = folder / file, FIRST + (number - 1) * BETWEEN
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(text.replace(old, new) if old else text + new, encoding="utf-8", newline="\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", message, at=at)
        commit = git(folder, "rev-parse", "HEAD")
        for attempt in range(1, 1 + (number not in NOT_CHECKED) + (number in CHECKED_TWICE)):
            origin = Origin(commit=commit, branch="main", event="push", run_id=1000 + number, run_attempt=attempt)
            record_and_check(folder, origin, at + attempt * timedelta(minutes=10))


def main() -> None:
    """Make the repository, or name the three commits of one that was made before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reveal", action="store_true", help="name the three commits")
    options = parser.parse_args()
    folder, is_made = options.folder, (options.folder / "history").is_dir()
    if folder.exists() and not (options.reveal and is_made):
        sys.exit(f"{folder}: exists already; name a new folder")
    if not is_made:
        make(folder)
        page = "rag-contract history page --history history --golden golden.jsonl --out history.html"
        print(f"made {COMMITS} commits in {folder}; {len(NOT_CHECKED)} were not checked, {len(CHECKED_TWICE)} twice")
        print(f"Which three changed what is found, and for which questions?\ncd {folder} && {page}")
    commits = git(folder, "rev-list", "--reverse", "main").split()
    for number, answer in ANSWERS.items() if options.reveal else ():
        print(f"{commits[number - 1][:7]} {PLANTED[number][0]}: {answer}")


if __name__ == "__main__":
    main()
