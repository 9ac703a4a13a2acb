"""Every problem that HTTP can answer with is in the documentation, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import session_server.app  # noqa: F401 - all kinds of errors are known once everything is loaded
from session_server.http import problems
from session_server.log.protocol import LogError
from session_server.schemas.errors import CommandError, RefusedError, UnreadableSessionError

ROOT = Path(__file__).parents[2]
SOURCES = (*sorted((ROOT / "session_server/http").glob("*.py")), ROOT / "session_server/app.py")
ROW = re.compile(r"^\| (\d{3}) \| (`[^|]+`) \|", re.MULTILINE)


def documented() -> set[tuple[int, str]]:
    page = (ROOT / "docs/http.md").read_text()
    table = page[page.index("## Problems") : page.index("## Metrics")]
    return {
        (int(status), code.strip("` "))
        for status, codes in ROW.findall(table)
        for code in codes.split(",")
    }


def raised() -> Iterator[tuple[int, str]]:
    """Those that are written down where they are raised."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="ProblemError" | "problem"),
                    args=[ast.Constant(value=int(status)), ast.Constant(value=str(code)), *_],
                ):
                    yield status, code
                case _:
                    pass


def classified() -> Iterator[tuple[int, str]]:
    """Those that a kind of error has."""
    coded_otherwise = (CommandError, RefusedError, LogError)
    for base in set(problems.STATUS) - {*coded_otherwise, UnreadableSessionError}:
        for kind in (base, *base.__subclasses__()):
            yield (
                next(problems.STATUS[near] for near in kind.__mro__ if near in problems.STATUS),
                kind.code,
            )
    for status, (code, _) in problems.HTTP_PROBLEMS.items():
        yield status, code
    yield from ((500, "sessionUnreadable"), (503, "logUnavailable"))


def test_every_problem_is_documented_with_its_status() -> None:
    found = {*raised(), *classified()}
    assert len(found) > 20
    assert found - documented() == set()
    assert documented() - found == set()
