"""Who may send requests: the connection token, and the allowed hosts, origins and proxies."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from session_server.schemas.errors import AmbiguousRequestError, ForeignOriginError, ProxiedError
from session_server.settings import Settings

ANY = "*"


class Access(NamedTuple):
    """`hosts` are the names it may be called by besides those of loopback, `None` for any.

    Without a connection token, everyone without a credential is an owner. `is_open`: the operator
    wants this for everyone who reaches the address, also through a proxy.
    """

    connection_token: str | None = None
    is_open: bool = False
    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = frozenset()


def access_of(
    settings: Settings, connection_token: str | None = None, *, is_loopback: bool = True
) -> Access:
    """Off loopback a token protects the host, so any `Host` is allowed."""
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


DEFAULT_PORTS = (None, 80, 443)

SINGLE_HEADERS = ("host", "origin", "authorization")
"""With two of them, a proxy might read another one than this host does."""

_HOST = re.compile(r"(?:[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")

# fmt: off
PROXY_HEADERS = frozenset((
    "cdn-loop", "client-ip", "do-connecting-ip", "early-data", "forwarded", "front-end-https",
    "incap-client-ip", "proxy-client-ip", "remote-addr", "remote-user", "rndr-id",
    "surrogate-capability", "true-client-ip", "via", "wl-proxy-client-ip", "x-client-ip",
    "x-cluster-client-ip", "x-host", "x-remote-addr", "x-remote-ip", "x-remote-user", "x-scheme",
    "x-varnish",
))
PROXY_PREFIXES = (
    "akamai-", "cf-", "cloudfront-", "fastly-", "fly-", "ngrok-", "render-proxy-", "tailscale-",
    "x-akamai-", "x-amz", "x-appengine-", "x-appgw-", "x-arr-", "x-auth-request-", "x-authentik-",
    "x-azure-", "x-envoy-", "x-fd-", "x-forwarded", "x-goog-", "x-haproxy-",
    "x-ms-client-principal", "x-nf-", "x-original", "x-pomerium-", "x-proxy", "x-real-",
    "x-sucuri-", "x-tunnel-", "x-vercel-",
)
# fmt: on
"""Headers that reverse proxies, tunnels, load balancers and CDNs add to requests."""

PROXIED = (
    "This request came through a proxy, and this host has no connection token: everyone on the"
    " other side of the proxy would be its owner. Start the host with --connection-token generate,"
    " or with --without-connection-token if the proxy itself checks who may come in."
)


def check_unambiguous(names: Mapping[str, int], headers: Mapping[str, str]) -> None:
    """`names` counts each header of the request."""
    for name in SINGLE_HEADERS:
        if names.get(name, 0) > 1:
            raise AmbiguousRequestError(f"The request has two `{name.title()}` headers; send one.")
    if not _HOST.fullmatch(headers.get("host", "")):
        raise AmbiguousRequestError("The `Host` header is not a name or address with a port.")


def check_direct(access: Access, names: Mapping[str, int], http_version: str = "1.1") -> None:
    """Without a token, everyone on this machine is an owner: requests through a proxy are refused.

    A proxy on the same machine connects from loopback and may use a loopback name; it is recognized
    by the headers that it adds. nginx adds none, but speaks HTTP/1.0 by default.
    """
    if access.connection_token is not None or access.is_open:
        return
    if http_version == "1.0" or any(map(_is_proxy_header, names)):
        raise ProxiedError(PROXIED)


def _is_proxy_header(name: str) -> bool:
    """Also with `_`, which some software writes and reads in place of `-`."""
    name = name.replace("_", "-")
    return name in PROXY_HEADERS or name.startswith(PROXY_PREFIXES)


def check_host(access: Access, headers: Mapping[str, str]) -> None:
    if access.hosts is None:
        return
    name = _host(headers)[0]
    if not is_loopback_name(name) and name not in access.hosts:
        raise ForeignOriginError(
            "This host listens on loopback and is not known by the name in `Host`;"
            " if that is intended, set allowed_hosts or public_url."
        )


VSCODE_ORIGIN = "vscode-file://vscode-app"
"""The window of VS Code. No web page can have this origin: browsers know no such scheme, and pages
inside of VS Code have others. So it is a program on somebody's machine, like those without one."""


def check_origin(access: Access, headers: Mapping[str, str], *, is_upgrade: bool = False) -> None:
    origin = headers.get("origin")
    if origin is None:
        _check_fetch(headers)
    elif is_upgrade and origin == VSCODE_ORIGIN:
        return
    elif not (
        ANY in access.origins or origin.lower() in access.origins or _is_same(origin, headers)
    ):
        raise ForeignOriginError(
            "Pages of this origin may not use this host; set allowed_origins if they should."
        )


def is_loopback_name(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _check_fetch(headers: Mapping[str, str]) -> None:
    """Images, scripts and frames of other sites come without `Origin`; links are harmless."""
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return
    is_link = headers.get("sec-fetch-mode") == "navigate"
    if not is_link or headers.get("sec-fetch-dest", "document") != "document":
        raise ForeignOriginError("Other sites may link to this host, but not load from it.")


def _is_same(origin: str, headers: Mapping[str, str]) -> bool:
    """The scheme is left out: behind a proxy ours may be another one than the browser's."""
    scheme, _, rest = origin.lower().partition("://")
    if scheme not in ("http", "https"):
        return False
    name, port = _named(rest)
    own_name, own_port = _host(headers)
    is_default = port in DEFAULT_PORTS and own_port in DEFAULT_PORTS
    return name != "" and name == own_name and (is_default or port == own_port)


def _host(headers: Mapping[str, str]) -> tuple[str, int | None]:
    return _named(headers.get("host", "").lower())


def _named(netloc: str) -> tuple[str, int | None]:
    """Name and port; the name is empty if the text is anything else."""
    try:
        parts = urlsplit(f"//{netloc}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    is_plain = parts.netloc == netloc and "@" not in netloc
    return (name, port) if is_plain else ("", None)
