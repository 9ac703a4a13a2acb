"""`doctor`: checks the installation, the store, the MCP servers and the host, with advice."""

import asyncio
import email.utils
import shutil
import socket
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import httpx2
import msgspec
import typer
from rich.table import Table
from rich.text import Text

from session_server import __version__
from session_server.cli.error_mapping import cli_error
from session_server.cli.failures import START_ONE, CliError, ExitCode, UsageError
from session_server.cli.http_client import Reach
from session_server.cli.output import out, print_json
from session_server.cli.session_names import session_list, short_name
from session_server.cli.setting_options import (
    ConfigOption,
    DataDirOption,
    McpConfigOption,
    StoreOption,
    named_store,
    settings_of,
)
from session_server.client import ClientError
from session_server.host.host import Host
from session_server.log import Sync
from session_server.log.opening import database_of, is_nats, is_postgres, open_log, redacted
from session_server.log.protocol import InUseError, OpenError
from session_server.log.sqlite.backup import examined
from session_server.log.sqlite.claim import claim_of
from session_server.schemas.ahp.commands import ROOT_CHANNEL, SESSION_PREFIX
from session_server.schemas.log_entries import CLIENTS_CHANNEL, TOKENS_CHANNEL
from session_server.schemas.principals import LOCAL_ID, OWNER_ID, Principal
from session_server.schemas.wire import Uri
from session_server.settings import Settings, SettingsError, load_settings

LEAST_PYTHON = (3, 11)
LITTLE_SPACE = 1024**3
NO_SPACE = 64 * 1024**2
CLOCK_SECONDS = 30


class Finding(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Check(NamedTuple):
    name: str
    finding: Finding
    message: str
    advice: str = ""


def ok(name: str, text: str) -> Check:
    return Check(name, Finding.OK, text)


def warning(name: str, text: str, advice: str = "") -> Check:
    return Check(name, Finding.WARNING, text, advice)


def problem(name: str, text: str, advice: str = "") -> Check:
    return Check(name, Finding.PROBLEM, text, advice)


def doctor(
    reach: Reach,
    config: ConfigOption = None,
    store: StoreOption = None,
    data_dir: DataDirOption = None,
    mcp_config: McpConfigOption = None,
    remove: Annotated[
        str | None,
        typer.Option(
            help="With the host stopped: remove the data of a damaged session, or of"
            f" {TOKENS_CHANNEL}, for good.",
            metavar="NAME",
        ),
    ] = None,
) -> ExitCode:
    """Check this installation, its store, its MCP servers, and the host at --url."""
    if remove is not None:
        asyncio.run(_removed(settings_of(config, store, data_dir), remove))
        return ExitCode.OK
    given = {"store": store, "data_dir": data_dir, "mcp_config": mcp_config}
    checks = [*_installation(config, given), *_host(reach)]
    if reach.as_json:
        print_json([check._asdict() for check in checks], pretty=True)
    else:
        out.print(_table(checks))
    has_problem = any(check.finding is Finding.PROBLEM for check in checks)
    return ExitCode.FAILED if has_problem else ExitCode.OK


_MARKS = {
    Finding.OK: ("✓", "green"),
    Finding.WARNING: ("!", "yellow"),
    Finding.PROBLEM: ("✗", "red"),
}


def _table(checks: list[Check]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for check in checks:
        mark, style = _MARKS[check.finding]
        text = Text(check.message)
        if check.advice:
            text.append(f"\n{check.advice}", style="dim")
        grid.add_row(Text(mark, style=f"bold {style}"), Text(check.name), text)
    return grid


# What is installed here


def _installation(config: Path | None, given: Mapping[str, Any]) -> Iterator[Check]:
    yield _python()
    try:
        settings = load_settings(given, config)
    except SettingsError as error:
        advice = "Fix the file or the SESSION_SERVER_* variable that it names."
        yield problem("settings", str(error), advice)
        return
    yield ok("settings", "They can be read.")
    yield _space(settings)
    yield from _store(settings)
    yield _port(settings)
    if settings.mcp_config is not None:
        # The MCP SDK takes a while to load.
        from session_server.cli.commands.mcp_checks import mcp_checks  # noqa: PLC0415

        yield from mcp_checks(settings.mcp_config)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    message = f"session-server {__version__} on Python {version}"
    if sys.version_info[:2] < LEAST_PYTHON:
        return problem("python", message, "Python 3.11 or newer is needed.")
    return ok("python", message)


def _space(settings: Settings) -> Check:
    folder = settings.data_dir.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    message = f"{free / 1024**3:.1f} GiB free for {settings.data_dir}"
    if free < NO_SPACE:
        return problem("disk", message, "Make room: without it nothing can be saved.")
    if free < LITTLE_SPACE:
        return warning("disk", message, "Make room soon: a full disk stops every session.")
    return ok("disk", message)


def _store(settings: Settings) -> Iterator[Check]:
    """An existing one is opened and read; none is made."""
    store = named_store(settings)
    try:
        file = database_of(store)
        if file is not None and not any(f.exists() for f in (file, claim_of(file))):
            yield ok("store", f"{file} is not there yet; `serve` makes it.")
            return
        try:
            unreadable = asyncio.run(_unreadable(settings, store))
        except InUseError as error:
            assert file is not None  # nothing else can be in use
            by = "" if error.pid is None else f" (process {error.pid})"
            yield ok("store", f"{file} is in use by a running host{by}.")
            unreadable = examined(file).damaged
        else:
            yield ok("store", f"{redacted(store)} can be opened.")
            if is_postgres(store) or is_nats(store):
                yield from _database_server(store)
    except OpenError as error:
        yield problem("store", str(error))
        return
    for uri, reason in unreadable.items():
        yield problem(
            "data", f"{uri} is damaged: {reason}.", _ADVICE.get(uri) or damaged_advice(uri)
        )


def _database_server(store: str) -> Iterator[Check]:
    if is_nats(store):
        from session_server.log.nats.diagnostics import examined_server  # noqa: PLC0415
    else:
        from session_server.log.postgres.diagnostics import examined_server  # noqa: PLC0415
    for fact in asyncio.run(examined_server(store)):
        finding = Finding.PROBLEM if fact.is_bad else Finding.WARNING if fact.advice else Finding.OK
        yield Check("database", finding, fact.text, fact.advice)


_ADVICE = {
    ROOT_CHANNEL: "Nothing needs to be done: the host makes it again when it starts.",
    CLIENTS_CHANNEL: "Nothing needs to be done: clients introduce themselves again.",
    TOKENS_CHANNEL: (
        "The host does not start without it, because revoked tokens could work again. Restore a"
        f" backup, or remove the list with `session-server doctor --remove {TOKENS_CHANNEL}`: then"
        " no token or share link that was issued works any more."
    ),
}


def damaged_advice(uri: Uri) -> str:
    name = short_name(uri)
    return (
        "The host serves the other sessions. Export what is readable of this one with"
        f" `session-server export {name} -o FILE`; then restore a backup, or remove it with"
        f" `session-server dispose {name}`."
    )


async def _unreadable(settings: Settings, store: str) -> dict[Uri, str]:
    async with _loaded(settings, store, is_exclusive=False) as host:
        return host.unreadable


async def _removed(settings: Settings, name: str) -> None:
    try:
        async with _loaded(settings, named_store(settings), is_exclusive=True) as host:
            uri = name if name in host.unreadable else f"{SESSION_PREFIX}{name}"
            if uri not in host.unreadable:
                raise UsageError(f"{name} is not damaged, or not there: nothing was removed.")
            await host.log.drop(uri)
    except InUseError as error:
        advice = f"Stop the host first, or remove a session with `session-server dispose {name}`."
        raise CliError(str(error), advice=advice) from None
    out.print(f"{uri} is removed.")


@asynccontextmanager
async def _loaded(settings: Settings, store: str, *, is_exclusive: bool) -> AsyncGenerator[Host]:
    """A host that has read its log, and does nothing else."""
    log = await open_log(store, sync=Sync(settings.sync), is_exclusive=is_exclusive)
    host = Host(log, ())
    try:
        await host.load_all()
        yield host
    finally:
        await log.close()


def _port(settings: Settings) -> Check:
    where = f"{settings.host}:{settings.port}"
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((settings.host, settings.port))
    except OSError:
        with suppress(httpx2.HTTPError):
            if httpx2.get(f"http://{where}/healthz", timeout=2).text == "ok":
                return ok("port", f"{where} is used by a running session-server.")
        advice = "Use `serve --port` with another."
        return warning("port", f"{where} is used by another program.", advice)
    return ok("port", f"{where} is free for `serve`.")


# The host


def _host(reach: Reach) -> Iterator[Check]:
    try:
        with reach.http() as http:
            health = http.get("/healthz")
            yield _ready(http, reach)
            yield _clock(health)
            access = _access(http)
            yield access
            if access.finding is Finding.OK:
                yield from _damaged(http)
    except (httpx2.TransportError, CliError) as error:
        failure = cli_error(error, reach.shown)
        yield problem("host", str(failure), failure.advice or START_ONE)
        return
    yield asyncio.run(_protocol(reach))


def _ready(http: httpx2.Client, reach: Reach) -> Check:
    try:
        http.get("/readyz")
    except CliError as failure:
        advice = "Until that is fixed people can read, but nothing they do is saved."
        return problem("host", f"{reach.url} answers and is not ready: {failure}", advice)
    return ok("host", f"{reach.url} answers and is ready.")


def _clock(response: httpx2.Response) -> Check:
    date = response.headers.get("date")
    if date is None:
        return warning("clock", "The host does not report its time.")
    ahead = time.time() - email.utils.parsedate_to_datetime(date).timestamp()
    if abs(ahead) > CLOCK_SECONDS:
        message = f"This machine's clock is {ahead:+.0f} s off the host's."
        advice = "Set it, for instance with NTP: deadlines and expiries are shown wrongly."
        return warning("clock", message, advice)
    return ok("clock", "It agrees with the host's.")


def _access(http: httpx2.Client) -> Check:
    try:
        me = msgspec.json.decode(http.get("/v1/me").content, type=Principal)
    except CliError as failure:
        return problem("access", str(failure), failure.advice)
    return ok("access", f"You are {_who(me)}.")


def _damaged(http: httpx2.Client) -> Iterator[Check]:
    for lost in session_list(http).unreadable:
        message = f"{lost.session} is damaged and not served: {lost.reason}."
        yield problem("session", message, damaged_advice(lost.session))


def _who(me: Principal) -> str:
    where = "" if me.sessions is None else f" in {', '.join(map(short_name, me.sessions))}"
    how = ", as a policy" if me.is_policy else ""
    if me.id == LOCAL_ID:
        return f"an owner{how}: no token is needed from this machine"
    if me.id == OWNER_ID:
        return f"an owner{how}, by the connection token"
    name = f"{me.name} ({me.id})" if me.name else me.id
    return f"{name}, in the role of {me.role.value}{where}{how}"


async def _protocol(reach: Reach) -> Check:
    try:
        async with reach.client() as client:
            seconds, version = await client.ping(), client.version
    except ClientError as error:
        failure = cli_error(error, reach.shown)
        return problem("protocol", str(failure), failure.advice)
    return ok("protocol", f"AHP {version}, answered in {seconds * 1000:.1f} ms.")
