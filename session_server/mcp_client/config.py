"""The configuration of MCP servers, and how it is read from an `mcp.json`."""

import difflib
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from session_server.schemas.errors import ConfigError, SessionServerError
from session_server.schemas.limits import ROUNDS_PER_CALL
from session_server.schemas.mcp import Root
from session_server.schemas.record import Answerers
from session_server.schemas.wire import Count, Uri, Wire

START_SECONDS = 60.0
CONNECTIONS, PROCESSES = 4, 1
"""To one 2025-era server, over HTTP and on stdin and stdout."""

MODERN: Literal["2026-07-28"] = "2026-07-28"
LEGACY: Literal["2025-11-25"] = "2025-11-25"
Era: TypeAlias = Literal["2026-07-28", "2025-11-25"]
Protocol: TypeAlias = Literal["auto"] | Era

QUIET = {"mcp": logging.CRITICAL, "client": logging.CRITICAL, "httpx2": logging.WARNING}
"""The SDK's loggers write whole messages, with arguments and states; so ours report instead."""


class ServerConfig(Wire, frozen=True, kw_only=True):
    """One entry of `mcpServers`. `name` is its key there, `problem` why it cannot be used.

    `protocol`: the revision to speak. `connections`: how many at most, if the server is of 2025.
    `answers`: who is asked when the server asks. `session`: where calls through the gateway go.
    `private_arguments`: names of arguments that are shown as •••, for all tools or by tool.
    `answer_within`: seconds that a question stays open; without it, until someone answers.
    """

    name: str = ""
    problem: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: str | None = None
    url: Uri | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    disabled: bool = False
    protocol: Protocol = "auto"
    answers: Answerers = "session"
    session: str | None = None
    private_arguments: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    answer_within: float | None = None
    start_timeout: float = START_SECONDS
    max_rounds: Count = ROUNDS_PER_CALL
    connections: Count | None = None
    roots: tuple[Root, ...] | None = None

    def __repr__(self) -> str:
        return f"ServerConfig({'stdio' if self.command else 'http'})"

    def __rich_repr__(self) -> Any:
        yield "stdio" if self.command else "http"

    @property
    def most_connections(self) -> int:
        if self.connections is not None:
            return self.connections
        return PROCESSES if self.url is None else CONNECTIONS

    def private_arguments_of(self, tool: str) -> tuple[str, ...]:
        names = self.private_arguments
        return names.get(tool, ()) if isinstance(names, dict) else names


SECTIONS = ("mcpServers", "servers", "context_servers", "mcp")
"""Where programs keep their servers; `mcp` may hold `servers` once more."""

IGNORED = ("inputs", "$schema")
"""What stands next to them and means nothing here; `${input:…}` is reported where it is used."""

ALIASES = {
    "transport": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "environment": "env",
    "environmentVariables": "env",
}
OF_OTHERS = ("type", "enabled", "envFile")
OURS = tuple(
    field.encode_name
    for field in msgspec.structs.fields(ServerConfig)
    if field.name not in ("name", "problem")
)
KNOWN = (*OURS, *OF_OTHERS, *ALIASES)
EXPANDED = ("command", "args", "env", "cwd", "url", "headers", "envFile")
STDIO_KINDS = ("stdio", "local")
HTTP_KINDS = ("http", "remote", "streamable-http", "streamable_http", "streamablehttp")
PROTOCOLS = ("auto", MODERN, LEGACY)
EDITOR_FOLDERS = (".vscode", ".cursor")

NAME_CHARS = 64
_UNUSABLE = re.compile(r"[^A-Za-z0-9._-]+")
_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_LEFT_OVER = re.compile(r"\$\{[^}]*\}")
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


class Loaded(NamedTuple):
    """`warnings`: what was not understood, for the author of the file."""

    servers: dict[str, ServerConfig]
    warnings: tuple[str, ...]


class _ProblemError(SessionServerError):
    """Leaves the reading of one entry; never this module."""


def load_servers(path: Path, environment: Mapping[str, str] | None = None) -> Loaded:
    """The servers of a file, by name; a file that cannot be read at all is a `ConfigError`."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8.") from None
    try:
        content = msgspec.json.decode(_plain_json(text), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not a configuration of MCP servers: {error}.") from None
    return _File(path, os.environ if environment is None else environment).loaded(content)


def _plain_json(text: str) -> str:
    """Without comments and trailing commas, which editors allow."""

    def kept(found: re.Match[str]) -> str:
        return found[1] or ""

    return _COMMA.sub(kept, _COMMENT.sub(kept, text))


class _File:
    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        folder = path.absolute().parent
        self._folder = folder.parent if folder.name in EDITOR_FOLDERS else folder
        own = {"workspaceFolder": str(self._folder), "userHome": str(Path.home())}
        self._variables = {**own, **environment}
        self._servers: dict[str, ServerConfig] = {}
        self._warnings: list[str] = []

    def loaded(self, content: dict[str, Any]) -> Loaded:
        found = [key for key in SECTIONS if key in content]
        for key in content:
            if key not in (*SECTIONS, *IGNORED):
                self._warn(f"`{key}` is not understood{_nearest(key, SECTIONS)}")
        if not found:
            self._warn("there is no `mcpServers`, so no MCP server is configured")
        for key in found:
            section = content[key]
            if key == "mcp" and isinstance(section, dict) and "servers" in section:
                section = section["servers"]
            if not isinstance(section, dict):
                raise ConfigError(
                    f"{self._path} is not a configuration of MCP servers: `{key}` is not an object."
                )
            for name, entry in section.items():
                self._add(name, entry)
        return Loaded(self._servers, tuple(self._warnings))

    def _warn(self, reason: str) -> None:
        self._warnings.append(f"{self._path}: {reason}.")

    def _add(self, given: str, entry: Any) -> None:
        name = _UNUSABLE.sub("-", given).strip("-._")[:NAME_CHARS]
        if not name or name in self._servers:
            why = "has a name without letters" if not name else f"would be a second {name!r}"
            self._warn(f"the server {given!r} {why} and is left out; give it another name")
            return
        if name != given:
            self._warn(f"the server {given!r} is called {name!r} here, as in /mcp/{name}")
        if not isinstance(entry, dict):
            entry = {}
        raw = self._renamed(name, entry)
        is_off = raw.get("disabled") is True
        try:
            config = self._config(raw, is_off=is_off)
        except _ProblemError as problem:
            config = ServerConfig(problem=str(problem), disabled=is_off)
            if not is_off:
                self._warn(f"the server {name!r} cannot be used: {problem}")
        self._servers[name] = msgspec.structs.replace(config, name=name)

    def _renamed(self, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """In our spelling, with what is not understood left out."""
        raw: dict[str, Any] = {}
        for key, value in entry.items():
            if key in KNOWN:
                raw.setdefault(ALIASES.get(key, key), value)
            else:
                hint = _nearest(key, KNOWN)
                self._warn(f"the server {name!r}: `{key}` is not understood{hint}")
        if "enabled" in raw:
            raw.setdefault("disabled", raw.pop("enabled") is False)
        command = raw.get("command")
        if isinstance(command, list) and command:  # the whole line in one list
            raw["command"], raw["args"] = command[0], [*command[1:], *raw.get("args", ())]
        if isinstance(command, dict):  # as Zed had it
            raw.pop("command")
            renamed = {"path": "command", "args": "args", "env": "env"}
            raw |= {renamed[key]: value for key, value in command.items() if key in renamed}
        return raw

    def _config(self, raw: dict[str, Any], *, is_off: bool) -> ServerConfig:
        raw = {
            key: self._expanded(value, is_off=is_off) if key in EXPANDED else value
            for key, value in raw.items()
        }
        kind = raw.pop("type", None)
        env_file = raw.pop("envFile", None)
        if raw.get("protocol", "auto") not in PROTOCOLS:
            raise _ProblemError(f"its `protocol` must be {', '.join(PROTOCOLS[:-1])} or {LEGACY}")
        try:
            config = msgspec.convert(raw, ServerConfig)
        except msgspec.ValidationError as error:
            # msgspec's errors name types and places, and never hold a value.
            raise _ProblemError(str(error).replace("`$.", "`")) from None
        if is_off:
            return config
        _check(config, kind)
        if isinstance(env_file, str):
            variables = _variables_in(self._folder / Path(env_file).expanduser())
            config = msgspec.structs.replace(config, env={**variables, **config.env})
        if config.cwd is not None:
            cwd = str(self._path.parent / Path(config.cwd).expanduser())
            config = msgspec.structs.replace(config, cwd=cwd)
        return config

    def _expanded(self, value: Any, *, is_off: bool) -> Any:
        """With variables filled in, in all texts of the value."""
        if isinstance(value, dict):
            return {key: self._expanded(inner, is_off=is_off) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._expanded(inner, is_off=is_off) for inner in value]
        if not isinstance(value, str):
            return value

        def replaced(found: re.Match[str]) -> str:
            default: str | None = found["default"]
            known = self._variables.get(found["name"], default)
            if known is None and not is_off:
                raise _ProblemError(f"it uses ${{{found['name']}}}, which is not set")
            return known or ""

        left = _LEFT_OVER.search(_VARIABLE.sub("", value))
        if left is not None and not is_off:
            raise _ProblemError(
                f"it uses {left[0]}, which this host cannot fill in: put the value into the"
                " environment, and write ${NAME}"
            )
        return _VARIABLE.sub(replaced, value)


def _nearest(key: str, known: Iterable[str]) -> str:
    """A misspelt key is most often written with other capitals, or with underscores."""
    plain = {_bare(name): name for name in known}
    close = difflib.get_close_matches(_bare(key), plain, 1, 0.75)
    return f"; did you mean `{plain[close[0]]}`?" if close else " and ignored"


def _bare(key: str) -> str:
    return re.sub(r"[_\s-]", "", key).lower()


def _variables_in(file: Path) -> dict[str, str]:
    """Of a file with lines `NAME=value`."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise _ProblemError(f"its `envFile` {file} cannot be read") from None
    found: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            value = value.strip()
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name.strip()] = value[1:-1] if is_quoted else value
    return found


def _check(config: ServerConfig, kind: Any) -> None:
    if (config.command is None) == (config.url is None):
        raise _ProblemError("it needs either a `command` or a `url`")
    if config.url is not None and kind == "sse":
        raise _ProblemError(
            "its transport is SSE, which MCP has replaced by streamable HTTP: ask its maker for the"
            " new address, often at /mcp, and set `type` to http"
        )
    if isinstance(kind, str) and kind.lower() not in (*STDIO_KINDS, *HTTP_KINDS):
        raise _ProblemError(f"its `type` {kind} is unknown; use stdio or http")
    if config.url is not None and not config.url.startswith(("https://", "http://")):
        raise _ProblemError("it needs a `url` that begins with https:// or http://")
    if config.most_connections < 1 or config.max_rounds < 1 or config.start_timeout <= 0:
        raise _ProblemError("`connections`, `maxRounds` and `startTimeout` must be more than 0")
    if config.answer_within is not None and config.answer_within <= 0:
        raise _ProblemError("`answerWithin` is a number of seconds, more than 0")
