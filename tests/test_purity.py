"""`schemas` and `reducers` are functions of their arguments, as far as their source can tell.

Beyond what the import contracts see: built-ins that touch the world, the methods of `datetime` that
read the clock, and packages that are not listed here.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN_CALLS = frozenset(
    ["__import__", "breakpoint", "eval", "exec", "globals", "input", "open", "print"]
)
CLOCK_METHODS = frozenset(["fromtimestamp", "now", "today", "utcnow"])
THIRD_PARTY = {
    "reducers": frozenset({"email_validator", "msgspec", "re2"}),
    "schemas": frozenset({"msgspec"}),
}


def imported(tree: ast.Module) -> Iterator[str]:
    """Absolute names of modules; relative ones stay inside and are the import contracts'."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def impurities(tree: ast.Module) -> Iterator[str]:
    if "urllib.request" in imported(tree):
        yield "imports urllib.request"
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
                yield f"calls {name}"
            case ast.Attribute(attr=name) if name in CLOCK_METHODS:
                yield f"reads the clock with {name}"
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield "waits"
            case ast.Global() | ast.Nonlocal():
                yield "rebinds a name outside a function"


def strangers(tree: ast.Module, allowed: frozenset[str]) -> set[str]:
    """Third-party packages that the folder has no business with."""
    tops = {name.partition(".")[0] for name in imported(tree)}
    return tops - sys.stdlib_module_names - allowed - {"session_server"}


@pytest.mark.proves("design.pure.world", "design.pure.clock", "design.pure.shapes")
@pytest.mark.parametrize("folder", THIRD_PARTY)
def test_modules_touch_nothing_but_their_arguments_and_few_packages(folder: str) -> None:
    paths = list((ROOT / folder).rglob("*.py"))
    assert len(paths) > 10
    for path in paths:
        tree = ast.parse(path.read_text(), filename=str(path))
        assert list(impurities(tree)) == [], path
        assert strangers(tree, THIRD_PARTY[folder]) == set(), path


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request",
        "from urllib import request",
        "from urllib.request import urlopen",
        "open('x')",
        "print(1)",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import date\nstamp = date.today",
        "async def f(): ...",
        "def f():\n    global x\n    x = 1",
    ],
)
def test_an_impurity_is_found(code: str) -> None:
    assert list(impurities(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "import datetime",
        "from urllib.parse import urlsplit",
        "from .time import hour",
        "def f(opened): return opened(1)",
    ],
)
def test_a_pure_line_is_left_alone(code: str) -> None:
    assert list(impurities(ast.parse(code))) == []


def test_an_unlisted_package_is_found() -> None:
    tree = ast.parse("import re, re2, msgspec\nfrom attrs import define")
    assert strangers(tree, THIRD_PARTY["schemas"]) == {"re2", "attrs"}
