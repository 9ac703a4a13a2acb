"""How commands reach a host: its address, a token, and whether to print JSON.

`reaching` makes a command of a function of a `Reach`: it adds the options, runs it, and
prints errors as a message with an exit code.
"""

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit, urlunsplit

import httpx2
import typer

from session_server import __version__
from session_server.cli.error_mapping import cli_error, of_response
from session_server.cli.failures import ExitCode, UsageError
from session_server.cli.host_options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from session_server.cli.output import err, print_error
from session_server.client import Client, connect
from session_server.client.connecting import headers_of
from session_server.reducers.texts import session_name
from session_server.reducers.version_negotiation import SUPPORTED_VERSIONS
from session_server.schemas.errors import SessionServerError
from session_server.schemas.wire import Uri

HTTP_SECONDS = 10.0
JSON = {"Content-Type": "application/json"}


class Reach(NamedTuple):
    url: str
    token: str | None = None
    as_json: bool = False

    @classmethod
    def to(cls, url: str | None, token: str | None, *, as_json: bool = False) -> "Reach":
        """A share link works too: its token is used."""
        parts = _address(url or DEFAULT_URL)
        shared = parse_qs(parts.query).get("tkn", [None])[0]
        path = parts.path.rstrip("/")
        base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        return cls(base, _sendable(token or shared), as_json)

    @property
    def shown(self) -> str:
        """The address without a password that may be in it."""
        parts = urlsplit(self.url)
        netloc = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, netloc, parts.path, "", ""))

    def client(
        self,
        *,
        policy: bool = False,
        name: str | None = None,
        versions: Sequence[str] = SUPPORTED_VERSIONS,
    ) -> AbstractAsyncContextManager[Client]:
        """AHP, for live sessions."""
        return connect(self.url, token=self.token, policy=policy, name=name, versions=versions)

    def http(self) -> httpx2.Client:
        """`/v1`, for single requests. An error response is raised as `CliError`."""
        return httpx2.Client(
            base_url=self.url,
            headers={"User-Agent": f"session-server/{__version__}", **headers_of(self.token)},
            timeout=HTTP_SECONDS,
            event_hooks={"response": [_check]},
            # Certificates take longer to read than a request takes, and plain HTTP needs none.
            verify=self.url.startswith("https:"),
        )


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    shown = url.partition("?")[0].rpartition("@")[2]
    advice = f"It looks like this: {DEFAULT_URL}"
    raise UsageError(f"{shown!r} is not the address of a host.", advice)


def _sendable(token: str | None) -> str | None:
    written = None if token is None else token.strip()
    if written and not (written.isascii() and written.isprintable()):
        raise UsageError("This is not a valid token: tokens are plain ASCII on one line.")
    return written or None


def _check(response: httpx2.Response) -> None:
    if not response.is_success:
        response.read()
        raise of_response(response)


def session_path(uri: Uri) -> str:
    """Where a session is under `/v1`."""
    return f"/v1/sessions/{session_name(uri)}"


Command = Callable[..., ExitCode | Coroutine[Any, Any, ExitCode | None] | None]


def reaching(command: Command) -> Callable[..., None]:
    """The command with `--url`, `--token` and `--json` in place of its parameter `reach`."""

    def runner(
        context: typer.Context,
        *,
        url: UrlOption = None,
        token: TokenOption = None,
        as_json: JsonOption = False,
        **given: Any,
    ) -> None:
        shared: dict[str, Any] = context.find_root().params
        where = url or shared.get("url"), token or shared.get("token")
        raise typer.Exit(run(command, given, *where, as_json or bool(shared.get("as_json"))))

    context, *host_options, _ = inspect.signature(runner).parameters.values()
    own = inspect.signature(command, eval_str=True).parameters
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (context, *own.values(), *host_options)
        if parameter.name != "reach"
    ]
    # Typer reads the signature and the annotations of what it is given.
    signed: Any = wraps(command)(runner)
    signed.__signature__ = inspect.Signature(parameters)
    signed.__annotations__ = {p.name: p.annotation for p in parameters}
    return runner


def run(
    command: Command, given: dict[str, Any], url: str | None, token: str | None, as_json: bool
) -> ExitCode:
    """Runs it, and prints what went wrong."""
    shown = ""
    try:
        reach = Reach.to(url, token, as_json=as_json)
        shown = reach.shown
        _check_text(given)
        done = command(reach=reach, **given)
        code = asyncio.run(done) if isinstance(done, Coroutine) else done
    except (SessionServerError, httpx2.TransportError) as error:
        failure = cli_error(error, shown)
        print_error(failure, as_json=as_json)
        return failure.exit_code
    except (KeyboardInterrupt, asyncio.CancelledError):
        err.print("Stopped.")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Nothing more can be written, even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    return ExitCode.OK if code is None else code


def _check_text(given: dict[str, Any]) -> None:
    """Python decodes arguments that are not UTF-8 to surrogates, which cannot be encoded."""
    for value in given.values():
        for word in value if isinstance(value, list) else (value,):
            try:
                if isinstance(word, str):
                    word.encode()
            except UnicodeEncodeError:
                raise UsageError(f"{word!a} is not text in UTF-8.") from None
