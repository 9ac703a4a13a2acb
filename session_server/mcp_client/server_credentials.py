"""Credentials that the configuration gives a server, hidden wherever the server repeats them.

Credentials are values of `headers`, `env` and the query of `url` under names that say so, and the
password in a `url`. They are replaced as messages arrive, except in what only the server reads.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.sdk import Change
from session_server.reducers.calls.redaction import hidden

SHORTEST_CREDENTIAL = 8
"""Shorter values are words such as `debug`; hiding these would spoil results."""

_NAME = re.compile(
    r"auth|cookie|token|key|secret|passw|passphrase|pwd|credential|signature", re.IGNORECASE
)
_PARTS = re.compile(r"[\s;,]+")
_OPAQUE = ("requestState", "nextCursor")
"""Read by the server alone, which gets them back as they were."""


def credentials_of(config: ServerConfig) -> frozenset[str]:
    found = [value for name, value in config.env.items() if _NAME.search(name)]
    for name, value in config.headers.items():
        if _NAME.search(name):
            parts = _PARTS.split(value)  # and of `name=value` pairs, as in cookies, the values
            found += [value, *parts, *(part.partition("=")[2].strip('"') for part in parts)]
    if config.url is not None:
        url = urlsplit(config.url)
        found += [value for name, value in parse_qsl(url.query) if _NAME.search(name)]
        found.append(unquote(url.password or ""))
    return frozenset(value for value in found if len(value) >= SHORTEST_CREDENTIAL)


def hide_in_result(result: dict[str, Any], credentials: frozenset[str]) -> dict[str, Any]:
    opaque = {name: result[name] for name in _OPAQUE if name in result}
    shown: dict[str, Any] = hidden(result, credentials)
    return shown | opaque


def hiding(credentials: frozenset[str]) -> Change:
    """What comes from the server shows none of these."""

    def hide(message: Any) -> None:
        match message:
            case JSONRPCResponse():
                message.result = hide_in_result(message.result, credentials)
            case JSONRPCError():
                error = message.error
                error.message = hidden(error.message, credentials)
                error.data = hidden(error.data, credentials)
            case JSONRPCRequest() | JSONRPCNotification():
                message.params = hidden(message.params, credentials)
            case _:
                pass

    return hide
