"""The configuration of MCP servers: `mcp.json` as people know it, and a few keys of ours.

`${NAME}`, `${NAME:-default}` and `${env:NAME}` are replaced from the environment. Values are never
shown: they hold tokens more often than not.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from session_server.calls.errors import ConfigError
from session_server.schemas.limits import ROUNDS_PER_CALL
from session_server.schemas.mcp import Root
from session_server.schemas.wire import Count, Uri, Wire

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
EXPANDED = ("command", "args", "env", "cwd", "url", "headers")
HTTP_KINDS = (None, "http", "streamable-http", "streamableHttp")

START_SECONDS = 60.0
CONNECTIONS = 4
"""To one 2025-era server, which can serve one call at a time on each."""


class ServerConfig(Wire, frozen=True, kw_only=True):
    """One entry of `mcpServers`, and its key there. Keys of other programs are ignored.

    `answers`: who is asked when the server asks. `session`: where calls through the gateway go.
    `private_arguments`: names of arguments that are shown as •••, for all tools or by tool.
    `answer_within`: seconds that a question stays open; without it, until someone answers.
    """

    name: str = ""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: str | None = None
    url: Uri | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    type: str | None = None
    disabled: bool = False
    answers: Literal["session", "client"] = "session"
    session: str | None = None
    private_arguments: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    answer_within: float | None = None
    start_timeout: float = START_SECONDS
    max_rounds: Count = ROUNDS_PER_CALL
    connections: Count = CONNECTIONS
    roots: tuple[Root, ...] | None = None

    def __repr__(self) -> str:
        return f"ServerConfig({'stdio' if self.command else 'http'})"

    def __rich_repr__(self) -> Any:
        yield "stdio" if self.command else "http"

    def private_arguments_of(self, tool: str) -> tuple[str, ...]:
        names = self.private_arguments
        return names.get(tool, ()) if isinstance(names, dict) else names


class ServersFile(Wire, frozen=True, kw_only=True):
    mcp_servers: dict[str, dict[str, Any]] = msgspec.field(
        default_factory=dict[str, dict[str, Any]]
    )


def load_servers(
    path: Path, environment: Mapping[str, str] | None = None
) -> dict[str, ServerConfig]:
    """The servers of a file, by name; what cannot be used is a `ConfigError`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        file = msgspec.json.decode(text, type=ServersFile)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not a configuration of MCP servers: {error}.") from None
    variables = os.environ if environment is None else environment
    return {
        name: _server(f"{path}: the server {name!r}", name, raw, variables, path.parent)
        for name, raw in file.mcp_servers.items()
    }


def _server(
    where: str, name: str, raw: dict[str, Any], variables: Mapping[str, str], folder: Path
) -> ServerConfig:
    if NAME.fullmatch(name) is None:
        raise ConfigError(f"{where} needs a name of letters, digits, dots, dashes, underscores.")

    def replaced(found: re.Match[str]) -> str:
        default: str | None = found["default"]
        value = variables.get(found["name"], default)
        if value is None and raw.get("disabled") is True:
            return ""
        if value is None:
            raise ConfigError(f"{where} uses ${{{found['name']}}}, which is not set.")
        return value

    expanded = {
        key: _expanded(value, lambda text: VARIABLE.sub(replaced, text))
        if key in EXPANDED
        else value
        for key, value in raw.items()
    }
    try:
        config = msgspec.convert(expanded, ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_placed(str(error))}.") from None
    _check(where, config)
    cwd = None if config.cwd is None else str(folder / Path(config.cwd).expanduser())
    return msgspec.structs.replace(config, name=name, cwd=cwd)


def _expanded(value: Any, replace: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, dict):
        return {key: _expanded(inner, replace) for key, inner in value.items()}
    return [_expanded(inner, replace) for inner in value] if isinstance(value, list) else value


def _placed(words: str) -> str:
    """msgspec's words name types and places, and never hold a value."""
    return words.replace("`$.", "`")


def _check(where: str, config: ServerConfig) -> None:
    if (config.command is None) == (config.url is None):
        raise ConfigError(f"{where} needs either a `command` or a `url`.")
    if config.url is not None and config.type not in HTTP_KINDS:
        raise ConfigError(f"{where}: only stdio and streamable HTTP are spoken, no {config.type}.")
    if config.url is not None and not config.url.startswith(("https://", "http://")):
        raise ConfigError(f"{where} needs a `url` that begins with https:// or http://.")
    if config.connections < 1 or config.max_rounds < 1 or config.start_timeout <= 0:
        words = "`connections`, `maxRounds` and `startTimeout` must be more than 0"
        raise ConfigError(f"{where}: {words}.")
    if config.answer_within is not None and config.answer_within <= 0:
        raise ConfigError(f"{where}: `answerWithin` is a number of seconds, more than 0.")
