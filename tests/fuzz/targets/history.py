"""A history in a folder, into which anybody may have written, and the commands that read it.

The entries and the result set of a case are files like others; ``places.json`` says what there is in the folder. The
commands are in ``argv.json``, and run one after the other in a small repository of git.
"""

import hashlib
import json
import os
import re
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree as ET

from ragcontract.cli.commands import history as commands_of_history
from ragcontract.cli.main import main
from ragcontract.guard import guarded
from ragcontract.history.entry import EntryId, entry_path, folder_of, results_path
from tests.fuzz import expectations
from tests.fuzz.expectations import expect
from tests.fuzz.generate.recorded import COMMITS, ENTRIES, OBJECTS, RESULTS, contract_of, entry_id, id_of
from tests.fuzz.generate.values import Maker
from tests.fuzz.sandbox import SECRET, Ended, Sandbox, captured
from tests.fuzz.targets.command_line import ARGV, REPORTS
from tests.fuzz.targets.target import Target

PLACES = "places.json"
STORE, OTHER, BASELINE = "runs", "other", "written.json"
BESIDE = Path("beside/20260109T030405Z-000000000000-999-1.json")  # an entry that is in no store
MARK = "fr0m-bes1de-the-st0re"
DIGEST = "0" * 64
LARGEST_BADGE = 2_000  # bytes
NOW = datetime(2026, 1, 31, tzinfo=UTC)
OUTPUTS = {*REPORTS.values(), BASELINE}


def run(sandbox: Sandbox, files: Mapping[str, bytes]) -> Ended:
    """Fill the store, and run the commands; the exit code is the last one, but for a crash."""
    _make_repository(sandbox.workspace)
    _fill(sandbox.workspace, files)
    before = _contents(sandbox.workspace)
    out = err = ""
    for argv in json.loads(files[ARGV]):
        with captured() as texts:
            with patch.object(commands_of_history, "clock", lambda: NOW):
                code = guarded(lambda argv=argv: main(argv), sys.stderr)  # type: ignore[misc]
            text, errors = texts()
        out, err = out + text, err + errors
        expect(code != 2 or (text + errors).strip(), "exit code 2 without a message")
        if code not in {0, 1, 2}:
            break
    _expect_unchanged(sandbox.workspace, before, json.loads(files[ARGV]))
    return Ended(code=code, out=out, err=err)


def _make_repository(workspace: Path) -> None:
    """Make a repository of two commits, as git would; starting it takes longer than all else."""
    repository = workspace / ".git"
    for commit in OBJECTS:
        sha = id_of(commit)
        path = repository / "objects" / sha[:2] / sha[2:]
        path.parent.mkdir(parents=True)
        path.write_bytes(zlib.compress(commit))
    (repository / "refs" / "heads").mkdir(parents=True)
    (repository / "refs" / "heads" / "main").write_text(f"{COMMITS[-1]}\n")
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")


def _fill(workspace: Path, files: Mapping[str, bytes]) -> None:
    """Make what ``places.json`` names: a file of the case, a link, a pipe or a folder."""
    results = files.get("results.jsonl", b"")
    digest = hashlib.sha256(results).hexdigest()
    contents = {name: data.replace(RESULTS.encode(), digest.encode()) for name, data in files.items()}
    beside = workspace / BESIDE
    beside.parent.mkdir()
    beside.write_bytes(_entry_beside(contents))
    for place in json.loads(files[PLACES]):
        name = place.get("file", "")
        if name and name not in files:
            continue
        own = results_path(digest) if name == "results.jsonl" else _path_of(contents.get(name, b""), name)
        path = workspace / place["store"] / place.get("path", own)
        if os.path.lexists(path) or not _has_folders(path.parent):
            continue
        if name:
            path.write_bytes(contents[name])
        elif "link" in place:
            path.symlink_to(path if place["link"] == "." else workspace / place["link"])
        elif place.get("pipe"):
            os.mkfifo(path)
        else:
            path.mkdir()


def _entry_beside(contents: Mapping[str, bytes]) -> bytes:
    """Return an entry that would be shown if a link to it were followed: one of the case, with a mark."""
    for name in filter(contents.__contains__, ENTRIES):
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            fields = json.loads(contents[name])
            source = {**fields["source"], "commit": None, "branch": MARK}
            return json.dumps(fields | {"id": BESIDE.stem, "summary": MARK, "source": source}).encode()
    return MARK.encode()


def _has_folders(folder: Path) -> bool:
    """Make the folders of a file unless something else of the case is in the way."""
    if any(parent.is_symlink() for parent in (folder, *folder.parents)):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return True


def _path_of(content: bytes, name: str) -> str:
    """Return where an entry says that it is; where the one of its name would be if it does not say."""
    try:
        fields = json.loads(content)
        contract, own = str(fields["contract"]), str(fields["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        contract, own = "docs", ""
    own = own if EntryId.of(own) else entry_id(name) if name in ENTRIES else entry_id("entry-1.json")
    return entry_path(folder_of(contract), own)


def _contents(workspace: Path) -> dict[str, bytes | None]:
    """Return all that is in the workspace, by path; None for what is not a file."""
    found: dict[str, bytes | None] = {}
    for folder, folders, names in os.walk(workspace):
        for name in (*folders, *names):
            path = Path(folder) / name
            is_file = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(workspace))] = path.read_bytes() if is_file else None
    return found


def _expect_unchanged(workspace: Path, before: Mapping[str, bytes | None], commands: list[list[str]]) -> None:
    """Expect that files are new in a store or named outputs, and that only prune deletes, and only result sets."""
    after = _contents(workspace)
    stores = tuple(f"{store}/" for store in (STORE, OTHER))
    for path in {path for path in (*before, *after) if before.get(path, b"new") != after.get(path, b"gone")}:
        if path in OUTPUTS or path in {STORE, OTHER}:
            continue
        expect(path.startswith(stores), "a file outside of the stores and the outputs was changed")
        pruned = "/results/" in f"/{path}" and ["history", "prune"] in [argv[:2] for argv in commands]
        expected = (pruned and path not in after) or (path in after and _is_badge(path))
        expect(path not in before or expected, "a file of a store was changed")
        expect(not path.endswith(".tmp"), "a temporary file was left")
    for path, data in ((path, data) for path, data in after.items() if before.get(path) != data and data):
        if _is_badge(path):
            _expect_badge(data, Path(path).suffix)
        expect(SECRET[:8].encode() not in data and MARK.encode() not in data, "a file has what is in no store")


def _is_badge(path: str) -> bool:
    return bool(re.fullmatch(r"\w+/badges/[a-z0-9_-][a-z0-9._-]{0,59}\.(svg|json)", path))


def _expect_badge(content: bytes, kind: str) -> None:
    """Expect that a badge is small, and that nothing in it loads or acts."""
    expect(len(content) < LARGEST_BADGE, "a badge is large")
    if kind == ".json":
        expect(set(json.loads(content)) == {"schemaVersion", "label", "message", "color"}, "a badge has other fields")
        return
    names = {each.tag.rpartition("}")[2] for each in ET.fromstring(content).iter()}
    expect(names == {"svg", "title", "clipPath", "rect", "g", "text"}, "a badge has other elements")


def _expect(sandbox: Sandbox, _files: Mapping[str, bytes], ended: Ended) -> None:
    expectations.ended_well(ended, {0, 1, 2})
    expectations.stays_inside(sandbox)
    expectations.is_plain(ended.out + ended.err)
    expect(SECRET[:8] not in ended.out + ended.err, "a secret of the machine was printed")
    expect(MARK not in ended.out + ended.err, "what is in no store was printed")
    for name, path in REPORTS.items():
        if Path(path).is_file() and not Path(path).is_symlink() and path != "report.json":
            expectations.CHECKS[name](Path(path))


def _kinds(maker: Maker) -> list[str]:
    entries = maker.some(list(ENTRIES), len(ENTRIES)) or ["entry-1.json"]
    config = ["ragcontract.yml"] if maker.chance(0.7) else []
    report = ["report.json"] if maker.chance(0.2) else []
    return ["golden.jsonl", "current_run.jsonl", *config, *entries, "results.jsonl", *report]


def _options(maker: Maker, kinds: list[str]) -> Mapping[str, bytes]:
    commands = [_command(maker) for _ in range(maker.pick((1, 1, 2, 3)))]
    if maker.chance(0.1):  # what a check judged is recorded, and looked at
        name = maker.odd_text() if maker.chance(0.5) else contract_of(maker)  # a badge has it
        commands = [["check", "--name", name.replace("\0", "")], *_RECORDING, *commands]
    return {ARGV: json.dumps(commands).encode(), PLACES: json.dumps(_places(maker, kinds)).encode()}


def _places(maker: Maker, kinds: list[str]) -> list[dict[str, Any]]:
    store = OTHER if maker.chance(0.05) else STORE
    places: list[dict[str, Any]] = [
        {"store": store, "file": name} for name in kinds if name in ENTRIES or name == "results.jsonl"
    ]
    if maker.chance(0.4):
        places.insert(0, {"store": STORE, "path": _path(maker)} | _thing(maker, kinds))
    return places


def _path(maker: Maker) -> str:
    """Return a path in a store: one that it would have, or a name that nobody would give."""
    folder = folder_of(contract_of(maker))
    badge = f"badges/{folder}.{maker.pick(('svg', 'json'))}"
    entry = entry_path(folder, entry_id(maker.pick(list(ENTRIES))))
    odd = maker.odd_text().replace("/", "_").replace("\0", "_").encode(errors="replace").decode()[:60].strip(".") or "x"
    paths = (
        "entries",
        "results",
        "README.md",
        "badges",
        badge,
        f"entries/{folder}",
        f"entries/{folder}/2026-01",
        entry,
    )
    strange = (
        *(f"entries/{odd}/2026-01/{entry[-20:]}", f"entries/{folder}/{odd}/x", f"entries/{folder}/9999-12", odd),
        *(f"entries/{folder}/2026-01/{odd}.json", f"entries/{folder}/2026-99/x.json", f"entries/{odd}", "results/ab"),
        *(f"results/00/{DIGEST}.jsonl", f"results/{odd}/{DIGEST}.jsonl", f"{entry}.tmp", f"{entry.upper()}"),
        entry_path(folder, BESIDE.stem),
    )
    return maker.pick(paths if maker.chance(0.5) else strange)


def _thing(maker: Maker, kinds: list[str]) -> dict[str, Any]:
    targets = (
        "../outside/secret",
        "../outside",
        "beside",
        str(BESIDE),
        ".",
        "none",
        "runs",
        "runs/entries",
        "/dev/zero",
    )
    return maker.pick(
        (
            {"link": maker.pick(targets)},
            {"pipe": True},
            {},
            {"file": maker.pick(kinds)},
        )
    )


_RECORDING = [["history", "add", "--history", STORE], ["history", "show", "--history", STORE, "last"]]


def _command(maker: Maker) -> list[str]:
    contract = contract_of(maker)
    ref = maker.pick(("last-pass", "last-pass", "last", COMMITS[-1], COMMITS[0][:7], entry_id("entry-1.json")))
    ref = maker.odd_text().replace("\0", "") if maker.chance(0.05) else ref
    history = ["--history", STORE]
    branch = ["--branch", maker.pick(("main", "main", maker.text()))] if maker.chance(0.4) else []
    named = ["--contract", contract] if maker.chance(0.5) else []
    form = ["--format", "json"] if maker.chance(0.4) else []
    name = ["--name", contract] if maker.chance(0.8) and "\0" not in contract else []
    query = ["--query", maker.pick([str(one) for one in maker.queries])]
    more = maker.pick(([], [ref], [ref, "--baseline-out", BASELINE], query, ["--metric", "mrr_at_5"], ["--last", "1"]))
    commands = (
        ["check", *history, *branch, *name, *maker.pick(([], ["--report-html", "report.html"]))],
        ["check", *history, *branch, *name, "--baseline", f"history:{ref}"],
        ["check", *history, *branch, *name, "--baseline", f"history:{ref}"],
        ["diff", *history, *branch, *named, "--baseline", f"history:{ref}", *form],
        ["compare", *history, *branch, *named, "current_run.jsonl", f"history:{ref}"],
        ["history", "show", *history, *branch, *named, *form, *more],
        ["history", "show", *history, *branch, *named, *form, *more],
        ["history", "gate", maker.pick(COMMITS), *history, *named, *form],
        ["history", "add", *history, *branch, *maker.pick(([], ["--no-answers"], ["--accepted"]))],
        ["history", "add", *history, *maker.pick(([], ["--report", maker.pick(("report.json", str(BESIDE), STORE))]))],
        ["history", "copy", *maker.pick(((STORE, OTHER), (OTHER, STORE), (STORE, STORE)))],
        ["history", "prune", *history, "--keep-results", "1"],
    )
    return [argument.replace("\0", "") for argument in maker.pick(commands)]


HISTORY = Target(share=0.15, kinds=_kinds, options=_options, run=run, expect=_expect)
