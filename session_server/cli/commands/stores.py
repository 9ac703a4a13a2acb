"""`backup` and `migrate`: copies of a host's store."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from session_server.cli.failures import CliError, ExitCode
from session_server.cli.http_client import Reach
from session_server.cli.output import err, print_json
from session_server.cli.session_names import short_name
from session_server.cli.setting_options import (
    ConfigOption,
    DataDirOption,
    StoreOption,
    named_store,
    settings_of,
)
from session_server.log.migration import migrate as copy_log
from session_server.log.opening import database_of, is_postgres, redacted, schema_of
from session_server.log.protocol import InUseError, LogError
from session_server.log.sqlite.backup import back_up

DATABASE = "PostgreSQL is backed up with its own tools, while the host runs."
DATABASE_ADVICE = (
    "Use `pg_dump --schema={schema} DATABASE` for this host's log alone, or `pg_basebackup` with a"
    " WAL archive for the whole cluster and any point in time. Keep a copy of secret.key too."
)
STILL_NEEDED = "secret.key is not in it: keep a copy of that file too."


def backup(
    reach: Reach,
    file: Annotated[Path, typer.Argument(help="The copy; a file that does not exist yet.")],
    store: StoreOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> ExitCode:
    """Copy the database of a host on this machine, while the host runs or not."""
    settings = settings_of(config, store, data_dir)
    store = named_store(settings)
    if is_postgres(store):
        raise CliError(DATABASE, advice=DATABASE_ADVICE.format(schema=schema_of(store)))
    source = database_of(store)
    if source is None:
        raise CliError(f"Only a store in a file can be copied. This one is {redacted(store)}.")
    made = back_up(source, file)
    if reach.as_json:
        print_json({"file": str(file), **made._asdict()}, pretty=True)
    else:
        message = f"{file}: {made.entries:,} entries in {made.channels:,} channels, {made.size:,} B"
        err.print(f"{message}. {STILL_NEEDED}")
    for uri, reason in made.damaged.items():
        err.print(f"{short_name(uri)} is damaged, also in the copy: {reason}.")
    return ExitCode.FAILED if made.damaged else ExitCode.OK


STOP_FIRST = "Stop the host first: what it writes meanwhile would be missing in the copy."
NOT_USABLE = "The new store is incomplete: remove it before you try again."


def migrate(
    reach: Reach,
    source: Annotated[str, typer.Argument(help="The store that is copied, as with `serve`.")],
    target: Annotated[str, typer.Argument(help="The store to make; it must be new or empty.")],
) -> ExitCode:
    """Copy the log of a stopped host to another store, and compare the two."""
    try:
        made = asyncio.run(copy_log(source, target))
    except InUseError as error:
        raise CliError(str(error), advice=STOP_FIRST) from None
    except LogError as error:
        raise CliError(str(error), advice=NOT_USABLE if error.code == "unlike" else "") from None
    if reach.as_json:
        print_json({"target": redacted(target), **made._asdict()}, pretty=True)
    else:
        text = f"{made.entries:,} entries in {made.channels:,} channels, all compared"
        err.print(f"{redacted(target)}: {text}. Start the host with --store.")
    return ExitCode.OK
