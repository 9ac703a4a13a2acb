"""Where a host's HTTP is, for what AHP has no command for."""

from ssl import SSLContext
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit


class HttpDoor(NamedTuple):
    """The address, and how to be let in."""

    url: str
    headers: dict[str, str]
    ssl: SSLContext | None = None

    @classmethod
    def beside(cls, socket_url: str, headers: dict[str, str], ssl: SSLContext | None) -> "HttpDoor":
        """Of the host whose AHP is at this address."""
        parts = urlsplit(socket_url)
        scheme = {"ws": "http", "wss": "https"}[parts.scheme]
        path = parts.path.removesuffix("/ahp")
        return cls(urlunsplit((scheme, parts.netloc, path, "", "")), headers, ssl)
