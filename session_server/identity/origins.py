"""Where a request comes from, as browsers say it, and by which name it calls this host.

A browser says its page's `Origin`, and nobody's page can change that. Programs say none. The name
in `Host` matters on loopback: a foreign page whose name is made to point there calls it by that.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from session_server.identity.access import ANY, Access
from session_server.identity.errors import ForeignOriginError

DEFAULT_PORTS = (None, 80, 443)


def check_host(access: Access, headers: Mapping[str, str]) -> None:
    if access.hosts is None:
        return
    name = _host(headers)[0]
    if not is_loopback_name(name) and name not in access.hosts:
        raise ForeignOriginError(
            "This host listens on loopback and is not known by the name in `Host`;"
            " set allowed_hosts or public_url if that is meant."
        )


def check_origin(access: Access, headers: Mapping[str, str]) -> None:
    origin = headers.get("origin")
    if origin is None:
        _check_fetch(headers)
    elif not is_allowed(access, origin, headers):
        raise ForeignOriginError(
            "Pages of this origin may not use this host; set allowed_origins if they should."
        )


def is_allowed(access: Access, origin: str, headers: Mapping[str, str]) -> bool:
    return is_configured(access, origin) or _is_same(origin, headers)


def is_configured(access: Access, origin: str) -> bool:
    return origin.lower() in access.origins or ANY in access.origins


def is_loopback_name(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _check_fetch(headers: Mapping[str, str]) -> None:
    """Pictures, scripts and frames of a foreign page come without `Origin`; a link is no harm."""
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
    """Name and port; what is neither is no name at all."""
    try:
        parts = urlsplit(f"//{netloc}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    is_plain = parts.netloc == netloc and "@" not in netloc
    return (name, port) if is_plain else ("", None)
