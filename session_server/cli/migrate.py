"""`migrate`: copies the log of a host to another store."""

import asyncio
from typing import Annotated

import typer

from session_server.cli.exit_codes import ExitCode
from session_server.cli.failures import Trouble
from session_server.cli.http_client import Reach
from session_server.cli.output import err, print_json
from session_server.log.errors import InUseError, LogError
from session_server.log.migration import migrate as copy_log
from session_server.log.opening import redacted

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
        raise Trouble(str(error), advice=STOP_FIRST) from None
    except LogError as error:
        raise Trouble(str(error), advice=NOT_USABLE if error.code == "unlike" else "") from None
    if reach.as_json:
        print_json({"target": redacted(target), **made._asdict()}, pretty=True)
    else:
        text = f"{made.entries:,} entries in {made.channels:,} channels, all compared"
        err.print(f"{redacted(target)}: {text}. Start the host with --store.", markup=False)
    return ExitCode.OK
