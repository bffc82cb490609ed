"""What is measured: this package, the floors below it, and the tools beside it, as commands over a data set."""

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks import data, environments
from benchmarks.rounds import Command

HERE = Path(__file__).parent
OURS, FLOOR, BARE, OLD = "rag-contract", "decode floor", "bare imports", "rag-contract 0.1.0"
PEERS = ("pytrec_eval", "ir_measures", "ranx")
TOOLS = (OURS, FLOOR, BARE, OLD, *PEERS)
SAME = 1e-9
REPORTS = ("--report-md", "report.md", "--report-json", "report.json", "--junit", "junit.xml")
FAILED_OR_NOT = (0, 1)

LARGEST = {BARE: 100, OLD: 100_000, "ir_measures": 100_000, "ranx": 100_000}  # minutes, or nothing new, beyond
WIDE_TOOLS = (OURS, FLOOR, OLD, "pytrec_eval")


class Installed(Struct, frozen=True, kw_only=True):
    """The tools' ``bin`` folders, and why those that are not there are not."""

    bins: dict[str, Path]
    missing: dict[str, str]


def install(folder: Path) -> Installed:
    """Make an environment for each tool; one that cannot be installed is left out of the measurements."""
    bins = {OURS: environments.ours(folder)}
    bins[FLOOR] = bins[BARE] = bins[OURS]
    missing = {}
    for name in (OLD, *PEERS):
        try:
            bins[name] = environments.peer(name.replace(" ", "-").replace("_", "-"), folder)
        except environments.UnavailableError as error:
            missing[name] = str(error)
            print(f"skipped: {error}", flush=True)
    return Installed(bins=bins, missing=missing)


def takes(tool: str, shape: data.Shape) -> bool:
    """Whether a tool is measured on a data set."""
    if shape.is_wide:
        return tool in (WIDE_TOOLS if shape.text else (OURS, FLOOR))
    return shape.queries <= LARGEST.get(tool, shape.queries)


def commands(shape: data.Shape, folder: Path, installed: Installed) -> dict[str, Command]:
    """Return the command of each tool that takes this data set, whose files are in ``folder``."""
    return {
        tool: _command(tool, shape, folder, installed.bins[tool])
        for tool in TOOLS
        if tool in installed.bins and takes(tool, shape)
    }


def _command(tool: str, shape: data.Shape, folder: Path, bin_folder: Path) -> Command:
    python = str(bin_folder / "python")
    work = folder / tool.replace(" ", "-")
    work.mkdir(exist_ok=True)
    golden, run, good_run, config = (
        str(folder / name) for name in (data.GOLDEN, data.RUN, data.GOOD_RUN, data.CONFIG_FILE)
    )
    good: tuple[int, ...] = (0,)
    if tool == OURS:
        # On wide rows all read the same three files; else the good run is a stored baseline.
        baseline = good_run if shape.is_wide else str(stored_baseline(tool, folder, bin_folder, environments.sources()))
        arguments, good = check([str(bin_folder / "rag-contract")], golden, run, baseline, config), FAILED_OR_NOT
    elif tool == OLD:
        baseline = str(stored_baseline(tool, folder, bin_folder, ""))
        arguments, good = check([str(bin_folder / "rag-contract")], golden, run, baseline, config), FAILED_OR_NOT
    elif tool == FLOOR:
        arguments = [python, str(HERE / "floor.py"), golden, run, good_run]
    elif tool == BARE:
        arguments = [python, "-c", "import msgspec, yaml, click"]
    else:
        arguments = [python, "-P", str(HERE / "peers.py"), tool, golden, run, good_run]
    return Command(arguments=arguments, folder=str(work), log=str(work / "log"), good=good)


def check(program: list[str], golden: str, run: str, baseline: str, config: str) -> list[str]:
    """Return the arguments of a check with all three reports; the old version takes the same."""
    files = ["--golden", golden, "--run", run, "--baseline", baseline, "--config", config]
    return [*program, "check", *files, *REPORTS]


def stored_baseline(tool: str, folder: Path, bin_folder: Path, version: str) -> Path:
    """Let a version of rag-contract store the good run as its baseline, unless this ``version`` has done so."""
    baseline, stamp = folder / f"{tool.replace(' ', '-')}-baseline.json", folder / f"{tool.replace(' ', '-')}-baseline"
    made_of = version + (folder / "made-by").read_text()
    if not (stamp.is_file() and stamp.read_text() == made_of):
        inputs = ["--golden", str(folder / data.GOLDEN), "--run", str(folder / data.GOOD_RUN), "--out", str(baseline)]
        baseline.unlink(missing_ok=True)  # an older one may be left of a run that was stopped
        subprocess.run([bin_folder / "rag-contract", "baseline", *inputs], stdout=subprocess.DEVNULL, check=True)
        stamp.write_text(made_of)
    return baseline


class _Metric(Struct):
    current: float | None
    baseline: float | None


class _Report(Struct):
    metrics: dict[str, _Metric]


def disagreements(tools: Iterable[str], log_of: Callable[[str], str], report: bytes) -> list[str]:
    """Return where a peer's means are not those of our report.json: then a comparison would be of different things."""
    ours = msgspec.json.decode(report, type=_Report).metrics
    found = []
    for tool in tools:
        means = [
            msgspec.json.decode(line, type=dict[str, float]) for line in log_of(tool).splitlines() if line[:1] == "{"
        ]
        for name, side in (("current", 0), ("baseline", 1)):
            for metric, theirs in means[side].items():
                own = getattr(ours[f"{metric}_at_5"], name)
                if own is None or abs(own - theirs) > SAME:
                    found.append(f"{tool}: {metric} of the {name} run is {theirs}, ours is {own}")
    return found


def check_agreement(commands_: dict[str, Command]) -> None:
    """Stop where a peer, run on these data before, has computed something else than we have."""
    peers = [tool for tool in PEERS if tool in commands_]
    report = (Path(commands_[OURS].folder) / "report.json").read_bytes()
    found = disagreements(peers, lambda tool: Path(commands_[tool].log).read_text(), report)
    if found:
        raise RuntimeError("\n".join(found))
