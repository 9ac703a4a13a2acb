"""The table of all errors, from the tree itself; part of `docs/build.py`."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

import session_server
from session_server.cli.error_mapping import EXIT_CODES
from session_server.cli.failures import CliError, UsageError
from session_server.client import AskRefused, CallRefused, ClientError, CommandFailed
from session_server.client.errors import Refused
from session_server.gateway.mcp_errors import MCP_CODES
from session_server.host.connection.peer import RPC_CODES
from session_server.http.problems import STATUS, ProblemError
from session_server.log.protocol import LogError
from session_server.schemas.errors import (
    CommandError,
    RefusedError,
    SessionServerError,
    StartError,
)
from session_server.transport.http_protocol import RefusedRequestError

HEADS = ("Error", "Code", "Try again", "AHP", "HTTP", "MCP", "Exit", "Meaning")

OWN = (
    CommandError, CommandFailed, ProblemError, Refused, AskRefused, CallRefused, RefusedError,
    RefusedRequestError,
)  # fmt: skip
"""Each of these has a code, and with it a status, of its own."""


def error_rows() -> Iterator[tuple[str, ...]]:
    load_everything()
    for depth, kind in _tree(SessionServerError):
        yield (
            "· " * depth + f"`{kind.__name__}`",
            "its own" if kind in OWN else f"`{kind.code}`",
            "yes" if kind.can_retry else "no",
            _ahp(kind),
            _http(kind),
            _nearest(MCP_CODES, kind),
            _exit(kind),
            (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "),
        )


def load_everything() -> None:
    """A class is known once its module is loaded."""
    for found in pkgutil.walk_packages(session_server.__path__, "session_server."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def _tree(
    kind: type[SessionServerError], depth: int = 0
) -> Iterator[tuple[int, type[SessionServerError]]]:
    """Parents before their children; private ones never leave their module."""
    if not kind.__name__.startswith("_"):
        yield depth, kind
        for child in sorted(kind.__subclasses__(), key=lambda child: child.__name__):
            yield from _tree(child, depth + 1)


def _nearest(table: Mapping[Any, Any], kind: type) -> str:
    return next((f"{table[near]:d}" for near in kind.__mro__ if near in table), "")


def _ahp(kind: type[SessionServerError]) -> str:
    if issubclass(kind, RefusedError):
        return "rejection"
    return "its own" if issubclass(kind, CommandError) else _nearest(RPC_CODES, kind)


def _http(kind: type[SessionServerError]) -> str:
    if kind in (CommandError, ProblemError, RefusedError, RefusedRequestError):
        return "its own"
    return _nearest(STATUS, kind)


def _exit(kind: type[SessionServerError]) -> str:
    if issubclass(kind, CliError):
        return "2" if issubclass(kind, UsageError) else "its own"
    if not issubclass(kind, ClientError | StartError | LogError):
        return ""
    return _nearest({near: code for near, (code, _) in EXIT_CODES.items()}, kind)
