"""One leg of a request that takes long: held for a while, with signs of life, then handed back.

A 2026-era client is told to try again with a state; a 2025-era one has to be kept waiting.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from session_server.gateway.visitors import Context, Visitor

PROGRESS_SECONDS = 10.0

STOPPING = "The host is stopping. Ask again soon: what is under way goes on there."

T = TypeVar("T")

Wait = Callable[[float], Awaitable[T]]
"""Waits for at most this many seconds; `None` is "not yet", and may come early."""


class Patience(NamedTuple):
    """How long the legs of clients of 2026 are held, and that none is when the host stops."""

    seconds: float
    over: asyncio.Event


async def hold(
    ctx: Context,
    visitor: Visitor,
    wait: Wait[T],
    patience: Patience,
    words: Callable[[], str] | None = None,
) -> T:
    """What was waited for, or `None` when the time of a 2026-era leg is over.

    `words` are told as progress, again and again, to clients that asked to hear of it.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + patience.seconds if visitor.is_modern else math.inf
    found, told = await wait(0), 0
    while found is None and (left := end - clock()) > 0 and not patience.over.is_set():
        if words is not None:
            told += 1
            await ctx.session.report_progress(told, None, words())
        found = await _unless(patience.over, wait(min(left, PROGRESS_SECONDS))) or found
    if found is None and not visitor.is_modern:
        raise MCPError(INTERNAL_ERROR, STOPPING)
    return found


async def _unless(over: asyncio.Event, waiting: Awaitable[T]) -> T | None:
    """What is waited for, or nothing once the host stops."""
    work, stop = asyncio.ensure_future(waiting), asyncio.ensure_future(over.wait())
    try:
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        work.cancel()
        stop.cancel()


def try_again(state: dict[str, Any]) -> dict[str, Any]:
    """A result without questions: come back with this state."""
    return {"resultType": "input_required", "requestState": msgspec.json.encode(state).decode()}


def carried_in(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The state that a client brings back, which the boundary has unsealed."""
    state: str | None = (params or {}).get("requestState")
    if state is None:
        return {}
    decoded: dict[str, Any] = msgspec.json.decode(state, type=dict[str, Any])
    return decoded
