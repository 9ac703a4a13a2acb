"""Whether a server can hold a log; and, for `doctor`, settings that endanger what is stored."""

import psycopg
from psycopg.conninfo import make_conninfo

from session_server.log.opening import Fact, measured_pace
from session_server.log.postgres.address import address_of
from session_server.log.postgres.epochs import UNKNOWN, identity_of
from session_server.log.postgres.faults import opening_error
from session_server.log.postgres.schema import Connection, one
from session_server.log.protocol import NotWritableError, OpenError

OLDEST_SERVER = 140_000
DANGEROUS = {
    "fsync": "Turn fsync on: a power cut can damage the whole database.",
    "full_page_writes": "Turn full_page_writes on: a power cut can damage pages.",
}


async def check_server(connection: Connection, shown: str) -> None:
    """Raises an `OpenError` for a server that cannot hold a log."""
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        text = f"{shown} is PostgreSQL {version // 10_000}"
        raise OpenError(f"{text}; session-server needs {OLDEST_SERVER // 10_000} or newer.")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise OpenError(f"{shown} has the encoding {encoding}; create a database with UTF8.")
    if await one(connection, "SELECT pg_is_in_recovery()"):
        raise NotWritableError(f"{shown} is a standby: name the primary, or all servers.")


async def examined_server(url: str) -> list[Fact]:
    """Raises an `OpenError`."""
    address = address_of(url)
    try:
        connection = await psycopg.AsyncConnection.connect(
            make_conninfo("", **address.parameters), autocommit=True
        )
        async with connection:
            return await _facts(connection)
    except (psycopg.Error, OSError) as error:
        raise opening_error(address.shown, error) from error


async def _facts(connection: Connection) -> list[Fact]:
    version = await one(connection, "SHOW server_version")
    pace = await measured_pace(lambda: connection.execute("SELECT 1"), "the database")
    facts = [Fact(f"PostgreSQL {version}"), pace]
    for setting, advice in DANGEROUS.items():
        if await one(connection, "SELECT current_setting(%s)", (setting,)) != "on":
            facts.append(Fact(f"{setting} is off.", advice, is_bad=True))
    if await one(connection, "SHOW data_checksums") != "on":
        advice = "`pg_checksums --enable` lets PostgreSQL notice damage outside of entries too."
        facts.append(Fact("The cluster has no data checksums.", advice))
    if UNKNOWN in await identity_of(connection):
        text = "The role may not see the cluster's system identifier or timeline."
        advice = (
            "Grant it EXECUTE on pg_control_system and pg_walfile_name, or clients may miss that"
            " a failover lost entries."
        )
        facts.append(Fact(text, advice))
    standbys = await one(connection, "SHOW synchronous_standby_names")
    kind = f"commits wait for {standbys}" if standbys else "commits wait for no standby"
    facts.append(Fact(f"Replication: {kind}."))
    return facts
