"""`schemas` and `reducers` are functions of their arguments, as far as their source can tell.

Beyond what the import contracts see: modules inside packages, built-ins that touch the world, and
the methods of `datetime` that read the clock.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("reducers", "schemas")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

FORBIDDEN_MODULES = frozenset(
    [
        "asyncio",
        "contextvars",
        "fastapi",
        "http",
        "importlib",
        "io",
        "logging",
        "mcp",
        "multiprocessing",
        "os",
        "pathlib",
        "pydantic",
        "random",
        "reducers",
        "schemas",
        "secrets",
        "select",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "urllib.request",
        "uuid",
        "uvicorn",
        "websockets",
    ]
)
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
    for name in imported(tree):
        parts = name.split(".")
        if any(".".join(parts[:end]) in FORBIDDEN_MODULES for end in range(1, len(parts) + 1)):
            yield f"imports {name}"
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


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


@pytest.mark.proves("design.pure.world", "design.pure.clock")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_touches_nothing_but_its_arguments(path: Path) -> None:
    assert list(impurities(parsed(path))) == []


@pytest.mark.proves("design.pure.shapes")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_stands_on_few_packages(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    assert strangers(parsed(path), THIRD_PARTY[folder]) == set()


def test_all_sources_are_looked_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(FOLDERS)


@pytest.mark.parametrize(
    "code",
    [
        "import time",
        "import os.path",
        "from urllib import request",
        "from urllib.request import urlopen",
        "import http.client as parse",
        "from schemas.wire import Wire",
        "def f():\n    import random",
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


def test_a_stranger_is_found() -> None:
    tree = ast.parse("import re, re2, msgspec\nfrom attrs import define")
    assert strangers(tree, THIRD_PARTY["schemas"]) == {"re2", "attrs"}
