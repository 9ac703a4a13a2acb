"""What waits on the strength of a credential: it ends when that is revoked or expires."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from session_server.host.host import Host
from session_server.identity.errors import BadCredentialError
from session_server.schemas.principals import Principal

ASK_FOR_ANOTHER = "ask the host's owner for a new one"

T = TypeVar("T")


class _Waiting:
    """A request, as something that can be closed."""

    def __init__(self) -> None:
        self.closed_with: int | None = None
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def close(self, code: int, reason: str) -> None:
        if not self.end.done():
            self.closed_with = code
            self.end.set_result(reason)


async def while_allowed(host: Host, principal: Principal, work: Awaitable[T]) -> T:
    """What the work brings; a `BadCredentialError` as soon as the credential is no longer one."""
    if principal.credential is None:
        return await work
    waiting, task = _Waiting(), asyncio.ensure_future(work)
    host.connections.bind(principal, waiting)
    try:
        await asyncio.wait((task, waiting.end), return_when=asyncio.FIRST_COMPLETED)
        if waiting.end.done():
            reason = waiting.end.result()
            raise BadCredentialError(f"{reason[0].upper()}{reason[1:]}; {ASK_FOR_ANOTHER}.")
        return task.result()
    finally:
        host.connections.release(principal, waiting)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
