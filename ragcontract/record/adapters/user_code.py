"""Import the object that a text such as ``my_app.search:retrieve`` or ``search.py:retrieve`` names.

Only recording imports users' code, and only the code that was named. What the code prints goes to standard error:
standard output is for the command.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.nearest import nearest
from ragcontract.core.safe_text import shorten, visible

OURS = Path(__file__).parents[1]
EXAMPLE = "my_app.search:retrieve, or search.py:retrieve"


def imported(named: str, folder: Path = Path()) -> object:
    """Import and return the object that ``module:attribute`` or ``file.py:attribute`` names.

    Modules are looked for in ``folder``, in the current folder and where Python looks; files in ``folder``. Raises
    InputError if there is no such object, or if the import fails.
    """
    module_name, colon, attribute = named.rpartition(":")
    if not colon or not module_name or not attribute:
        raise InputError([f"{named}: does not say what to call; write {EXAMPLE}"])
    with on_path(Path.cwd(), folder.resolve()):
        module = _file(module_name, folder) if module_name.endswith(".py") else _module(module_name)
    target: object = module
    for part in attribute.split("."):
        with redirect_stdout(sys.stderr), _explained(named):  # a module's __getattr__ is users' code, too
            there = hasattr(target, part)
        if not there:
            near = nearest(part, [name for name in vars(module) if not name.startswith("_")])
            meant = f"; did you mean {near!r}?" if near else ""
            raise InputError([f"{named}: {module_name} has no {attribute!r}{meant}"])
        target = getattr(target, part)
    return target


def source_of(named: str, folder: Path = Path()) -> Path | None:
    """Return the file of an object that a text may name as ``module:attribute``; None if there is none."""
    name = named.rpartition(":")[0]
    if name.endswith(".py"):
        return folder / name
    path = getattr(sys.modules.get(name), "__file__", None)
    return Path(path) if path else None


@contextmanager
def on_path(*folders: Path) -> Iterator[None]:
    """Let Python look for modules in folders, the last one first.

    The folders stay on the path, because code may import later, too. What is printed goes to standard error.
    """
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    with redirect_stdout(sys.stderr):
        yield


def place_of(error: BaseException) -> str:
    """Return the file and line where an exception was raised, as ``search.py:17``; empty if it is not known."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    # The last frame may be in a library; users can look at the last one in the current folder.
    here = [frame for frame in frames if _is_here(frame.filename)] or frames
    return f"{_relative(here[-1].filename)}:{here[-1].lineno}" if here else ""


def described(error: BaseException) -> str:
    """Return an exception as text: its type, its message and where it was raised."""
    message = shorten(visible(str(error).strip()), bounds.FAILURE)
    at = place_of(error)
    return f"{type(error).__name__}{f': {message}' if message else ''}{f' (at {at})' if at else ''}"


def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(OURS)


def _is_here(filename: str) -> bool:
    path = Path(filename)
    inside = path.is_relative_to(Path.cwd()) or not path.is_absolute()
    return inside and "site-packages" not in path.parts and not filename.startswith("<")


def _relative(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _file(name: str, folder: Path) -> ModuleType:
    path = (folder / name).resolve()
    if not path.is_file():
        near = nearest(path.name, [other.name for other in path.parent.glob("*.py")])
        raise InputError([f"{folder / name}: there is no such file" + (f"; did you mean {near!r}?" if near else "")])
    with on_path(path.parent):
        known = sys.modules.get(path.stem)
        if known is not None and getattr(known, "__file__", None) == str(path):
            return known
        # A file may have the name of a module that is imported already, as json.py.
        taken = known is not None or path.stem in sys.stdlib_module_names
        spec = importlib.util.spec_from_file_location(f"target_{path.stem}" if taken else path.stem, path)
        if spec is None or spec.loader is None:
            raise InputError([f"{folder / name}: cannot be imported"])
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        with _explained(str(folder / name)):
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[spec.name]
                raise
        return module


def _module(name: str) -> ModuleType:
    missing = InputError([f"{name}: there is no such module{_hint(name)}"])
    if not all(part.isidentifier() for part in name.split(".")):
        raise missing
    with _explained(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there, but imports another that is not
            raise missing from error


def _hint(name: str) -> str:
    if "/" in name or "\\" in name:
        return f"; a file needs its ending: {name}.py"
    return "; run this where Python can import it, or name its file, as in search.py:retrieve"


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn anything that users' code raises while it is imported into an InputError."""
    try:
        yield
    except (KeyboardInterrupt, InputError):
        raise
    except SystemExit as error:
        why = "ends the program when it is imported; put what runs it under `if __name__ == '__main__':`"
        raise InputError([f"{name}: {why}"]) from error
    except ModuleNotFoundError as error:
        advice = f"install it for {sys.executable}, which runs rag-contract, or run this in the folder that has it"
        raise InputError([f"{name}: cannot be imported: {described(error)}; {advice}"]) from error
    except BaseException as error:
        raise InputError([f"{name}: cannot be imported: {described(error)}"]) from error
