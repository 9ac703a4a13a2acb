"""Acting on a session from code that can wait: HTTP, the MCP side, agents.

RefusedError            the rules say no; its refusal has the reason
NotSavedError           it could not be written; nothing has changed
└── InDoubtError        nobody knows whether it was: look before doing it again
"""

import asyncio
from typing import Any

from session_server.host.channel import Channel, Plan, Submission, in_doubt
from session_server.host.errors import no_session
from session_server.host.host import Host
from session_server.host.sessions import is_recording
from session_server.reducers.rules import RECORDING
from session_server.schemas.actions import Action
from session_server.schemas.codec import encode
from session_server.schemas.principals import HOST, Author, Principal, Provenance
from session_server.schemas.refusals import Refusal
from session_server.schemas.wire import Uri


class RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class NotSavedError(Exception):
    """Trying again later may help."""


class InDoubtError(NotSavedError):
    pass


async def perform(host: Host, principal: Principal, uri: Uri, action: Action) -> None:
    """An action of somebody's, judged like any other; returns when it is durable and visible."""
    channel = host.channel(principal, uri)
    if channel is None:
        raise host.missing(principal, uri)
    held, size = host.allowances.of(principal.id).held, len(encode(action))
    if not held.take(size):
        raise NotSavedError("Too much of what you sent is still being written.")
    done = Settling()
    host.dispatch(
        principal,
        channel,
        action,
        done=done.succeed,
        refused=done.refuse,
        failed=done.fail,
        doubted=done.doubt,
    )
    try:
        await done.future
    finally:
        held.give_back(size)


async def write(
    host: Host, uri: Uri, plan: Plan, by: Author, via: Provenance = Provenance.PERSON
) -> None:
    """A batch of the host's own making, planned on the record as it is when its turn comes."""
    channel = host.sessions.get(uri)
    if channel is None:
        raise no_session(uri)
    await write_to(channel, plan, by, via)


async def write_to(
    channel: Channel[Any], plan: Plan, by: Author, via: Provenance = Provenance.PERSON
) -> None:
    """The same to any channel, the host's own included."""
    if is_recording(channel.committed):
        raise RefusedError(RECORDING)
    done = Settling()
    channel.submit(
        Submission(
            plan,
            by=by,
            via=via,
            done=done.succeed,
            refused=done.refuse,
            failed=done.fail,
            is_exempt=by is HOST,
            doubted=done.doubt,
        )
    )
    await done.future


class Settling:
    """Callbacks of something that will be done, refused or fail, as something to wait for."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def succeed(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def refuse(self, refusal: Refusal) -> None:
        if not self.future.done():
            self.future.set_exception(RefusedError(refusal))

    def fail(self, words: str) -> None:
        if not self.future.done():
            self.future.set_exception(NotSavedError(words))

    def doubt(self, words: str) -> None:
        if not self.future.done():
            self.future.set_exception(InDoubtError(in_doubt(words)))
