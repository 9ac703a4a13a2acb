"""Where the host listens, which addresses reach it, and what that requires of callers."""

import re
import secrets
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from session_server.identity.origins import ANY, Access, access_of, is_loopback_name
from session_server.identity.signing_key import is_guessable, read_private, write_private
from session_server.schemas.limits import CONNECTION_TOKEN_CHARS
from session_server.settings import Settings, SettingsError

ALL_ADDRESSES = ("", "0.0.0.0", "::")  # noqa: S104
_NOWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Reserved documentation addresses: the route to them shows our own address."""

ONLY_HERE = (
    "This host listens only on loopback, so the link works on this machine alone. For other devices"
    " start it with --host 0.0.0.0 and a connection token, or set public_url."
)
NO_NETWORK = (
    "No address of this machine was found that others could use, so the link works on this machine"
    " alone. Set public_url to where people reach this host."
)


class Reachable(NamedTuple):
    """`warning` is for when others cannot use `url`."""

    url: str
    warning: str | None = None


def reachable(settings: Settings, called_by: str, port: int, scheme: str = "http") -> Reachable:
    """`called_by` is the `Host` of the request: used if it is not a name of this machine alone."""
    if settings.public_url is not None:
        return Reachable(settings.public_url.rstrip("/"))
    if called_by and not is_local(called_by):
        return Reachable(f"{scheme}://{called_by}")
    here = f"{scheme}://{called_by}" if called_by else f"{scheme}://{netloc_of('127.0.0.1', port)}"
    if _is_only_here(settings.host):
        return Reachable(here, ONLY_HERE)
    outside = outside_address() if settings.host in ALL_ADDRESSES else settings.host
    if outside is None:
        return Reachable(here, NO_NETWORK)
    return Reachable(f"{scheme}://{netloc_of(outside, port)}")


def is_local(netloc: str) -> bool:
    """Whether the name means the local machine wherever it is used."""
    name = netloc.rpartition("@")[2]
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return is_loopback_name(name) or name in ALL_ADDRESSES


def outside_address() -> str | None:
    """This machine's address towards the network; nothing is sent to find out."""
    for address, family in _NOWHERE:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((address, 9))
            except OSError:
                continue
            found: str = probe.getsockname()[0]
        if not is_local(found if family == socket.AF_INET else f"[{found}]"):
            return found
    return None


def _is_only_here(host: str) -> bool:
    try:
        return is_loopback_address(host)
    except SettingsError:
        return False


def netloc_of(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


GENERATE = "generate"
ANY_PAGE = frozenset({ANY, "null"})
"""Any page can have the origin `null`, with a sandboxed frame."""

TOKEN_BYTES = 24

_TOKEN = re.compile(r"[0-9A-Za-z_-]+")

CONTRADICTION = (
    "connection_token, connection_token_file and without_connection_token exclude each other;"
    " set one of them."
)
NEEDED = (
    "{reason}, so a connection token is needed:\n"
    "  --connection-token generate         makes one and prints it\n"
    "  --connection-token-file FILE        keeps one in a file\n"
    "  --without-connection-token          makes everyone who reaches the address an owner"
)


class Binding(NamedTuple):
    """`token` is the connection token if it is new and must be printed, `file` where it is kept."""

    access: Access
    token: str | None = None
    file: Path | None = None


def binding_of(settings: Settings) -> Binding:
    """The binding for these settings; raises a `SettingsError` with what to change."""
    path, given = settings.connection_token_file, settings.connection_token
    if sum((given is not None, path is not None, settings.without_connection_token)) > 1:
        raise SettingsError(CONTRADICTION)
    is_loopback = is_loopback_address(settings.host)
    token: str | None = None
    new: str | None = None
    is_new_file = False
    if path is not None:
        token, is_new_file = _kept(path)
    elif given is not None:
        new = secrets.token_urlsafe(TOKEN_BYTES) if given.get_secret_value() == GENERATE else None
        token = new or _checked(given.get_secret_value())
    elif not settings.without_connection_token:
        reason = _exposure(settings, is_loopback=is_loopback)
        if reason is not None:
            raise SettingsError(NEEDED.format(reason=reason))
    access = access_of(settings, token, is_loopback=is_loopback)
    return Binding(access, new, path if is_new_file else None)


def _exposure(settings: Settings, *, is_loopback: bool) -> str | None:
    """Why people on other machines, or their pages, could reach this host."""
    if not is_loopback:
        return f"{settings.host or 'Every address'} can be reached by others"
    public = None if settings.public_url is None else urlsplit(settings.public_url).hostname
    if public is not None and not is_loopback_name(public):
        return "public_url is an address for others"
    if any(name == ANY or not is_loopback_name(name.lower()) for name in settings.allowed_hosts):
        return "allowed_hosts has a name that others can use"
    if ANY_PAGE & {origin.lower() for origin in settings.allowed_origins}:
        return "allowed_origins lets every page in"
    return None


def is_loopback_address(host: str) -> bool:
    """Whether only this machine can reach the address; of a name, whether all of its addresses."""
    if not host:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SettingsError(f"There is no address {host!r}: {error.strerror}.") from None
    return all(ip_address(address[4][0]).is_loopback for address in found)


def _kept(path: Path) -> tuple[str, bool]:
    """The token in a file, and whether the file is new."""
    try:
        if not path.exists():
            token = secrets.token_urlsafe(TOKEN_BYTES)
            write_private(path, token)
            return token, True
        return _checked(read_private(path)), False
    except OSError as error:
        raise SettingsError(f"The connection token file cannot be used: {error}.") from None


def _checked(token: str) -> str:
    """Checked to be safe in a URL without encoding, and too long to guess."""
    if not _TOKEN.fullmatch(token) or len(token) < CONNECTION_TOKEN_CHARS:
        raise SettingsError(
            f"A connection token has at least {CONNECTION_TOKEN_CHARS} characters out of A–Z, a–z,"
            " 0–9, - and _; `--connection-token generate` makes one."
        )
    if is_guessable(token):
        raise SettingsError(
            "The connection token is a simple pattern that can be guessed, and anyone with it is an"
            " owner. `--connection-token generate` makes a random one."
        )
    return token
