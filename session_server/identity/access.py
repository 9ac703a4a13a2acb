"""The terms of access to one host: its connection token, and who may come from where."""

from typing import NamedTuple
from urllib.parse import urlsplit

from session_server.settings import Settings

ANY = "*"


class Access(NamedTuple):
    """`hosts` are names it may be called by beside loopback's, `None` for any.

    Without a connection token everyone who brings no credential is an owner. `is_open`: the
    operator wants that for everyone who reaches the address, through a proxy too.
    """

    connection_token: str | None = None
    is_open: bool = False
    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = frozenset()


def access_of(
    settings: Settings, connection_token: str | None = None, *, is_loopback: bool = True
) -> Access:
    """Elsewhere than on loopback a token guards the door, whatever the host is called."""
    origins = {origin.rstrip("/").lower() for origin in settings.allowed_origins}
    hosts = {name.lower() for name in settings.allowed_hosts}
    if settings.public_url is not None:
        public = urlsplit(settings.public_url.lower())
        origins.add(f"{public.scheme}://{public.netloc}")
        hosts.add(public.hostname or "")
    any_host = ANY in hosts or not is_loopback
    return Access(
        connection_token,
        settings.without_connection_token,
        frozenset(origins),
        None if any_host else frozenset(hosts),
    )
