"""From a URL to connection parameters. Everything but `schema` is libpq's own."""

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from session_server.log.opening import DEFAULT_SCHEMA
from session_server.log.protocol import UrlError

SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")

DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "target_session_attrs": "read-write",
}
"""A server that has gone away is noticed within 20 seconds, and a standby is not written to."""


class Address(NamedTuple):
    """`shown` is for messages: it has no password."""

    parameters: dict[str, str]
    schema: str
    shown: str


def address_of(url: str) -> Address:
    """Raises a `UrlError`. libpq's own messages are not shown: they may hold a password."""
    location, _, query = url.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        options = [(name, value) for name, value in pairs if name != "schema"]
        # libpq does not read "+" as a space, so spaces stay percent-encoded.
        rest = urlencode(options).replace("+", "%20")
        given = conninfo_to_dict(f"{location}?{rest}" if rest else location)
    except (ProgrammingError, ValueError):
        advice = "Percent-encode special characters in user name and password"
        raise UrlError(
            f"The store is not a valid PostgreSQL URL. {advice}; the form is"
            " postgresql://user@host:5432/database?schema=name."
        ) from None
    schema = dict(pairs).get("schema", DEFAULT_SCHEMA)
    if not SCHEMA_NAME.fullmatch(schema):
        raise UrlError(
            f"{schema!r} is not a valid schema name: use lower-case letters, digits and"
            " underscores, at most 63, not beginning with a digit or pg_."
        )
    parameters = {name: str(value) for name, value in given.items() if value is not None}
    return Address(DEFAULTS | _from_environment() | parameters, schema, _shown(parameters, schema))


def _from_environment() -> dict[str, str]:
    """libpq prefers a parameter to its variable, so a default of ours must not hide one."""
    variables = {
        "connect_timeout": "PGCONNECT_TIMEOUT",
        "target_session_attrs": "PGTARGETSESSIONATTRS",
    }
    return {name: os.environ[key] for name, key in variables.items() if os.environ.get(key)}


def _shown(parameters: dict[str, str], schema: str) -> str:
    user = f"{parameters['user']}@" if "user" in parameters else ""
    host = parameters.get("host", "")
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"postgresql://{user}{host}{port}/{parameters.get('dbname', '')}?schema={schema}"
