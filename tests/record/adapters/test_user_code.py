"""What a text names is imported, and what is wrong with it is explained."""

import sys
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.user_code import imported, source_of


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, and let no test see the modules of another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def called(named: str) -> Any:
    function: Any = imported(named)
    return function()


def test_a_file_is_imported_with_what_lies_beside_it() -> None:
    write("app/helper.py", "VALUE = 7\n")
    write("app/search.py", "import helper\n\ndef find():\n    return helper.VALUE\n")
    assert called("app/search.py:find") == 7


def test_a_module_is_imported_from_the_current_folder() -> None:
    write("my_shop/search.py", "class Index:\n    @staticmethod\n    def find():\n        return 7\n")
    assert called("my_shop.search:Index.find") == 7


def test_a_file_that_is_imported_twice_is_the_same_module() -> None:
    write("counted.py", "def find():\n    return 7\n")
    assert imported("counted.py:find") is imported("counted.py:find")


def test_a_file_may_have_the_name_of_a_module_of_python() -> None:
    write("json.py", "def find():\n    return 7\n")
    assert called("json.py:find") == 7
    assert sys.modules["json"].__file__ != str(Path("json.py").resolve())


def test_a_file_that_cannot_be_imported_is_no_module_afterwards() -> None:
    write("broken.py", "import no_such_thing\n")
    with pytest.raises(InputError, match=r"broken.py: cannot be imported: ModuleNotFoundError.*\(at broken.py:1\)"):
        imported("broken.py:find")
    assert "broken" not in sys.modules


def test_what_is_printed_while_it_is_imported_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    write("talks.py", "print('hello')\nfind = 7\n")
    imported("talks.py:find")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello\n")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("search.py", "does not say what to call; write my_app.search:retrieve, or search.py:retrieve"),
        ("search.py:", "does not say what to call"),
        (":find", "does not say what to call"),
        ("search.py:fnid", "search.py has no 'fnid'; did you mean 'find'?"),
        ("search.py:zzz", "search.py has no 'zzz'"),
        ("serch.py:find", "serch.py: there is no such file; did you mean 'search.py'?"),
        ("no_such_module:find", "no_such_module: there is no such module; run this where Python can import it"),
        ("no_such.module:find", "no_such.module: there is no such module; run"),
        ("app/search:find", "a file needs its ending: app/search.py"),
        (".search:find", ".search: there is no such module"),
        (
            "lacking.inner:find",
            f"No module named 'no_such_thing' (at lacking/__init__.py:1); install it for {sys.executable}, which runs",
        ),
        ("ends.py:find", "ends.py: ends the program when it is imported; put what runs it under"),
        ("raises.py:find", "raises.py: cannot be imported: ZeroDivisionError: division by zero (at raises.py:1)"),
        ("syntax.py:find", "syntax.py: cannot be imported: SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_explained(named: str, said: str) -> None:
    write("search.py", "def find():\n    return 7\n")
    write("ends.py", "import sys\nsys.exit(0)\n")
    write("raises.py", "1 / 0\n")
    write("syntax.py", "def\n")
    write("lacking/__init__.py", "import no_such_thing\n")
    write("lacking/inner.py", "")
    with pytest.raises(InputError) as error:
        imported(named)
    assert said in str(error.value)


def test_an_interrupt_during_an_import_is_passed_on() -> None:
    write("stopped.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        imported("stopped.py:find")


def test_the_file_of_what_is_named_is_known() -> None:
    write("search.py", "find = 7\n")
    assert source_of("search.py:find") == Path("search.py")
    assert source_of("pathlib:Path") == Path(str(sys.modules["pathlib"].__file__))
    assert source_of("no_such_module:find") is None
    assert source_of("a text") is None
