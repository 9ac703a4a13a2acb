"""What the host stands on: no transport, no HTTP, no MCP, and no log of a certain kind."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "session_server"
OUTSIDE = {
    "aiohttp",
    "fastapi",
    "http",
    "httpx",
    "mcp",
    "session_server.transport",
    "session_server.http",
    "socket",
    "starlette",
    "uvicorn",
    "websockets",
}
BACKENDS = {f"session_server.log.{name}" for name in ("memory", "postgres", "sqlite")}


@cache
def imported(path: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.proves("design.layers.core")
def test_the_host_knows_no_transport_no_http_and_no_mcp() -> None:
    modules = sorted((PACKAGE / "host").glob("*.py"))
    assert len(modules) > 5
    found = {
        f"{path.name}: {name}"
        for path in modules
        for name in imported(path)
        if within(name, OUTSIDE)
    }
    assert found == set()


@pytest.mark.proves("design.layers.backends")
def test_only_the_composition_root_chooses_a_log() -> None:
    choosing = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for name in imported(path)
        if within(name, {"session_server.log.opening"})
        and path.relative_to(PACKAGE).parts[0] != "log"
    }
    commands = {f"cli/{name}.py" for name in ("backup", "doctor", "migrate", "serve")}
    assert choosing == {"app.py", "banner.py", *commands}
    inside = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for name in imported(path)
        if within(name, BACKENDS) and path.parent.name not in ("postgres", "sqlite")
    }
    # Commands that look after a database's file know whose it is.
    assert inside == {"cli/backup.py", "cli/doctor.py", "log/opening.py"}


def test_an_import_is_found_however_it_is_written(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("from session_server import http\nimport uvicorn.config\n")
    assert {name for name in imported(module) if within(name, OUTSIDE)} == {
        "session_server.http",
        "uvicorn.config",
    }
