"""How the package is laid out: imports point one way, modules are short, and each has a name of its own."""

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.runner import ROOT

PACKAGE = ROOT / "ragcontract"
# From the top down: what is in a line may import what is below it, and what is in its own line.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__", "__init__", "guard"),
    ("cli", "action", "pytest_plugin", "pytest_cases", "spark"),
    ("api", "recall_functions", "schemas"),
    ("service",),
    ("child", "memory"),
    ("history",),
    ("pipeline",),
    ("github",),
    ("report",),
    ("convert",),
    ("record", "judge"),
    ("labelling",),
    ("cluster",),
    ("decision",),
    ("evaluation",),
    ("judgments",),
    ("contract",),
    ("registry",),
    ("rules", "metrics"),
    ("statistics",),
    ("answers",),
    ("runs",),
    ("net", "interaction_client"),
    ("files",),
    ("core",),
)
PRONOUNS, MOST_PRONOUNS = {"one", "found", "given", "said"}, 100
MOST_MODULES, MOST_SMALL_MODULES, SMALL = 308, 56, 60  # a file is a topic, not a function
OF_HISTORY = {"statistics.levels", "statistics.change_points", "evaluation.past", "report.html.charts"}
MOST_MODULES_OF_HISTORY = 34  # with those above; 3 are the client of the team service
MOST_MODULES_OF_SERVICE = 104  # with its commands and pages; 3 only say what is in their folder
OF_SERVICE = ("service", "cli.commands.service", "cli.commands.serve", "cli.service_options")
LONGEST_MODULE, LONGEST_FUNCTION = 450, 50
JUDGES, MOST_JUDGES = ("judge", "judgments", "cli"), 6  # a judge is a model, and other modules need little of it
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_IMPORTED_BY_TESTS = 198
MOST_LATE_IMPORTS = 70  # of optional extras, and of what few commands or contracts need


def name_of(path: Path) -> str:
    """Return a module's name within the package, as ``decision.gates``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def layer_of(module: str) -> int:
    """Return how far down a module is."""
    fits = [
        (len(prefix), number)
        for number, layer in enumerate(LAYERS)
        for prefix in layer
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    assert fits, f"{module} is in no layer"
    return max(fits)[1]


@cache
def names() -> frozenset[str]:
    """Return the names of all modules."""
    return frozenset(map(name_of, MODULES))


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text())


def imports_of(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a module imports: within functions and for annotations, too."""
    known = names()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ragcontract":
            base = node.module.removeprefix("ragcontract").removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                yield full if full in known else base or "__init__"


def test_contributors_are_shown_the_layers_from_the_top_down() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| module | content |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    shown = [[name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`(\S+)`", row)] for row in rows]
    numbers = [layer_of(name) for row in shown for name in row]
    assert numbers == sorted(numbers)
    of_package = {name_of(path).partition(".")[0] for path in MODULES}
    assert {name for row in shown for name in row} == of_package - {"__init__", "__main__"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down_the_layers(path: Path) -> None:
    module = name_of(path)
    up = [target for target in imports_of(path) if target != "__init__" and layer_of(target) < layer_of(module)]
    assert not up, f"{module} imports from above: {up}"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name_of(path): set(imports_of(path)) - {"__init__"} for path in MODULES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for target in graph.get(module, ()):
                visit(target, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_only_its_own_commands_import_the_service() -> None:
    importing = {name_of(path) for path in MODULES for target in imports_of(path) if target.split(".")[0] == "service"}
    others = {name for name in importing if name.split(".")[0] != "service"}
    assert others <= {"cli.commands.serve", "cli.commands.service"}


def test_a_file_is_a_topic() -> None:
    of_history = [path for path in MODULES if "history" in name_of(path) or name_of(path) in OF_HISTORY]
    assert len(of_history) <= MOST_MODULES_OF_HISTORY
    of_service = [path for path in MODULES if name_of(path).startswith(OF_SERVICE)]
    assert len(of_service) <= MOST_MODULES_OF_SERVICE
    assert len(MODULES) - len(of_history) - len(of_service) <= MOST_MODULES
    small = [name_of(path) for path in MODULES if path.read_text().count("\n") < SMALL]
    assert len(small) <= MOST_SMALL_MODULES, small


def test_imports_stand_at_the_top() -> None:
    late = {
        (name_of(path), node.lineno)
        for path in MODULES
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert len(late) <= MOST_LATE_IMPORTS, sorted(late)


def test_tests_follow_the_seams() -> None:
    """What files, the command line and reports can say needs no import, and does not change when a module moves."""
    imported = {module for path in sorted((ROOT / "tests").rglob("*.py")) for module in imports_of(path)}
    imported = {module for module in imported if module.partition(".")[0] != "service"}  # an extra with few seams
    assert len(imported) <= MOST_IMPORTED_BY_TESTS, sorted(imported)


def test_names_say_what_they_name() -> None:
    counts = {name_of(path): 0 for path in MODULES}
    for path in MODULES:
        with path.open("rb") as file:
            tokens = tokenize.tokenize(file.readline)
            counts[name_of(path)] = sum(token.type == tokenize.NAME and token.string in PRONOUNS for token in tokens)
    assert sum(counts.values()) <= MOST_PRONOUNS, {name: number for name, number in counts.items() if number}


def test_a_judge_is_a_model_and_nothing_else() -> None:
    others = [name_of(path) for path in MODULES if "judg" in path.stem and not name_of(path).startswith(JUDGES)]
    assert len(others) <= MOST_JUDGES, others


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_fits_in_one_reading_and_a_function_on_one_screen(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_MODULE or name_of(path) == "core.bounds"  # a line for each limit
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


def test_no_two_modules_have_one_name() -> None:
    """A module of a command has the command's name, as a user types it; the seam of a layer is its ``interface``."""
    modules = [name_of(path).rpartition(".") for path in MODULES if path.stem not in {"__init__", "interface"}]
    names = [name for folder, _, name in modules if folder != "cli.commands"]
    assert not sorted({name for name in names if names.count(name) > 1})


# A limit by its name: what is no limit is a setting of an algorithm, or digits that are displayed.
NAME_OF_A_LIMIT = re.compile(
    r"_?(MAX|MOST|LONGEST|LARGEST|HIGHEST|LIMIT|SHOWN|LISTED|NAMED)(_\w+)?|\w+_(TIMEOUT|BYTES)"
)
DIGITS = {("core.numbers", "MOST"), ("core.numbers", "MOST_FOR_TABLES")}
BOUNDED = {"ge", "gt", "le", "lt", "min_length", "max_length"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_limit_is_in_the_module_of_limits(path: Path) -> None:
    """A number that a field is limited to may be 0 or 1 in other modules: that is no size, but what a field means."""
    module, tree = name_of(path), tree_of(path)
    if module == "core.bounds":
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Meta":
            limits = [one.value for one in node.keywords if one.arg in BOUNDED and isinstance(one.value, ast.Constant)]
            assert all(limit.value in {0, 1} for limit in limits), f"{module}:{node.lineno}: a limit of its own"
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            assert not ast.unparse(node).startswith("bounds."), f"{module}:{node.lineno}: changes a limit"
    for name in names_of_numbers(tree):
        assert (module, name) in DIGITS or not NAME_OF_A_LIMIT.fullmatch(name), f"{module}: {name}"


def names_of_numbers(tree: ast.Module) -> Iterator[str]:
    """Yield the constants of a module whose values have numbers in them."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            numbers = [
                one for one in ast.walk(node.value) if isinstance(one, ast.Constant) and type(one.value) in {int, float}
            ]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name) if numbers
            )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("MAX_BODY = 9", ["MAX_BODY"]),
        ("A, MOST_IDS = 1, 2 << 20", ["A", "MOST_IDS"]),
        ("MOST: dict = {1: bounds.ERRORS}", ["MOST"]),
        ('MAX = "a"', []),
    ],
)
def test_a_limit_is_found_by_its_number(source: str, found: list[str]) -> None:
    assert list(names_of_numbers(ast.parse(source))) == found
