"""Where others can reach this host: the first half of a share link."""

import socket
from typing import NamedTuple

from session_server.identity.binding import is_loopback_address
from session_server.identity.origins import is_loopback_name
from session_server.settings import Settings, SettingsError

ALL_ADDRESSES = ("", "0.0.0.0", "::")  # noqa: S104
_NOWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses that are nobody's: a route to them shows which of ours leads outside."""

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
    """`called_by` is the name by which this request called us: if others can use it, it will do."""
    if settings.public_url is not None:
        return Reachable(settings.public_url.rstrip("/"))
    if called_by and not is_local(called_by):
        return Reachable(f"{scheme}://{called_by}")
    here = f"{scheme}://{called_by}" if called_by else f"{scheme}://{_netloc('127.0.0.1', port)}"
    if _is_only_here(settings.host):
        return Reachable(here, ONLY_HERE)
    outside = outside_address() if settings.host in ALL_ADDRESSES else settings.host
    return (
        Reachable(here, NO_NETWORK)
        if outside is None
        else Reachable(f"{scheme}://{_netloc(outside, port)}")
    )


def is_local(netloc: str) -> bool:
    """Whether this names the machine it is said on: no use to anybody elsewhere."""
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


def _netloc(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
