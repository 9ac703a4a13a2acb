"""Calls as others use them: start one, wait for its result, abandon it, and its public view."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from session_server.calls.driver import GRACE_SECONDS, CallDriver, logger
from session_server.calls.requesters import DepartureCheck, Requester, Requesters
from session_server.host.async_api import StateWaiters, write
from session_server.host.host import Host
from session_server.host.timers import Tasks
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.configured_servers import Servers
from session_server.mcp_client.revisions import Revisions
from session_server.mcp_client.server_states import ServerStates
from session_server.reducers.batches import Batch, title_change
from session_server.reducers.calls import rounds
from session_server.reducers.calls.presentation import view_of
from session_server.reducers.calls.starting import (
    call_fingerprint,
    check_caller,
    own_params,
    same_call,
    start,
)
from session_server.reducers.texts import subject_name
from session_server.schemas.codec import encode, is_too_deep
from session_server.schemas.errors import (
    CommandError,
    InvalidCallError,
    NotSavedError,
    Refusal,
    RefusalCode,
    RefusedError,
    UnknownCallError,
)
from session_server.schemas.http import CallView
from session_server.schemas.limits import FRAME_BYTES, JSON_DEPTH
from session_server.schemas.mcp import CallMethod
from session_server.schemas.principals import HOST, Principal, Role, Stamp
from session_server.schemas.record import (
    Call,
    CallClient,
    CallCollected,
    SessionRecord,
)
from session_server.schemas.wire import Uri

REMEMBERED_CALLS = 10_000
COLLECT_SECONDS = 0.05
"""What clients of a session fetch within this time is written down together: a commit less for
nearly every call. Not with several nodes.
"""

TITLE_SECONDS = 3.0
"""What a call waits for a server that is just starting: how it is shown cannot be changed later."""

NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Collection:
    """Results that clients of one session have fetched: by the id of the call, who has.

    `writing` ends once they are written down, or cannot be.
    """

    writing: asyncio.Task[None]

    def __init__(self) -> None:
        self.fetched_by: dict[str, set[str]] = {}
        self.is_due = asyncio.Event()


Title = Callable[[SessionRecord, Call], str | None]
"""A new title of the session, given the call; nothing if it is to keep the one that it has."""


class Calls:
    def __init__(
        self,
        host: Host,
        waiting: StateWaiters,
        configs: Mapping[str, ServerConfig] | None = None,
        revisions: Revisions | None = None,
    ) -> None:
        self._host = host
        self._waiting = waiting
        self._states = ServerStates(host)
        self._where: dict[str, Uri] = {}
        self._collections: dict[Uri, Collection] = {}
        self.requesters = Requesters()
        tasks = Tasks("the calls", logger)
        self.servers = Servers(configs or {}, tasks.spawn, self._states.changed, revisions)
        self.driver = CallDriver(host, waiting, self.servers, tasks)
        host.loaded.on_loaded.append(self._states.loaded)
        host.on_disposed.append(self.driver.forget_session)

    # Life

    def open(self) -> None:
        """Once the host has read its log, and before effects are derived from it."""
        self._states.restarted(self.servers.names)
        self.servers.start()

    async def close(self) -> None:
        collections = tuple(self._collections.values())
        for collection in collections:
            collection.is_due.set()
        if collections:
            await asyncio.wait([each.writing for each in collections], timeout=GRACE_SECONDS)
        await self.driver.close()

    # Making calls

    async def start(  # noqa: PLR0913  # the request, and four things about it by name
        self,
        principal: Principal,
        uri: Uri,
        server: str,
        method: CallMethod,
        params: Mapping[str, Any],
        *,
        key: str | None = None,
        call_id: str | None = None,
        lease: float | None = None,
        requester: Requester | None = None,
        client: CallClient | None = None,
        title: Title | None = None,
    ) -> str:
        """The id of the call, durable and on its way; or of the one that this request is already.

        `key` tells apart requests that are the same on purpose; `call_id` names the call oneself.
        With a `lease`, its maker waits for the result, and people see when it no longer does.
        `requester` is connected for the call from now on. `client` is the MCP client that makes it.
        `title`: what the session is called from now on, written with a call that is new.
        Refused: `RefusedError`. No such session: `CommandError`. Else: `InvalidCallError`.
        """
        refusal = check_caller(principal, uri)
        if refusal is not None:  # before anything that says which servers or sessions there are
            raise RefusedError(refusal)
        call = self._new_call(principal, server, method, params, key, call_id, client)
        call = msgspec.structs.replace(call, lease=lease)
        await self.servers[server].main.started(TITLE_SECONDS)
        departure = DepartureCheck(self.requesters)
        found = call.id

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            nonlocal found
            same = same_call(record, call, stamp.at) if call_id is None else None
            if same is not None:
                if departure.request_wait(same.id):
                    return ()
                same = same_call(record, call, stamp.at, self.requesters)
            found = call.id if same is None else same.id
            if requester is not None:
                requester.join(self.requesters, found)
            if same is not None:
                return ()
            shown, listed = self._title(call), self._states.customization(server)
            batch = start(record, call, shown, listed, stamp)
            if isinstance(batch, Refusal) or not batch or title is None:
                return batch
            return (*batch, *title_change(record, title(record, call)))

        await self.driver.start(uri, call, plan, principal.author)
        if await departure.wait_if_requested():
            await self.driver.start(uri, call, plan, principal.author)
        self._remember(found, uri)
        return found

    async def result(self, principal: Principal, call_id: str, wait: float | None = 0) -> CallView:
        """Where the call is after at most `wait` seconds; without a number, once it has ended.

        For its maker and for owners. When it was handed over, `collect` is to be called.
        """
        uri = self.session_of(call_id)

        def ended(record: SessionRecord) -> CallView | None:
            call = record.private.calls.get(call_id)
            if call is None:
                raise UnknownCallError(call_id)
            return None if call.is_open else view_of(record, call)

        view = await self._look(principal, uri, call_id)
        is_own = view.by is not None and view.by.id == principal.id and wait != 0
        with self._host.askers.waiting(uri, call_id) if is_own else contextlib.nullcontext():
            found = await self._waiting.until(uri, ended, wait)
        return await self._look(principal, uri, call_id) if found is None else found

    def hand_over(self, principal: Principal, call_id: str, requester: Requester) -> None:
        """The response that follows holds the result."""
        requester.join(self.requesters, call_id)
        requester.when_fetched(partial(self.collect, principal, call_id))

    async def collect(self, principal: Principal, call_id: str) -> None:
        """Its maker has the result, so that the same request is a new call from now on.

        To be called after the result was written: if the process dies in between, the result is
        given again, and nothing is run twice.
        """
        try:
            uri = self.session_of(call_id)
        except UnknownCallError:
            return
        collection = self._collections.get(uri)
        if collection is None:
            collection = self._collections[uri] = Collection()
            if self._host.nodes is None:
                self.driver.clock.call_later(COLLECT_SECONDS, collection.is_due.set)
            else:  # another node, where the same request may come next, knows only what is logged
                collection.is_due.set()
            collection.writing = self.driver.spawn(self._write_collection(uri, collection))
        collection.fetched_by.setdefault(call_id, set()).add(principal.id)
        await asyncio.wait([collection.writing])

    async def _write_collection(self, uri: Uri, collection: Collection) -> None:
        def plan(record: SessionRecord, _: Stamp) -> Batch:
            calls = record.private.calls
            return tuple(
                CallCollected(call_id=call_id)
                for call_id, principals in collection.fetched_by.items()
                if (call := calls.get(call_id)) is not None
                and (call.by is not None and call.by.id in principals)
                and not (call.is_open or call.collected)
            )

        await collection.is_due.wait()
        del self._collections[uri]
        # Where it cannot be written down, the results are given again.
        with contextlib.suppress(CommandError, NotSavedError, RefusedError):
            await write(self._host, uri, plan, HOST)

    async def abandon(self, principal: Principal, call_id: str, reason: str | None = None) -> None:
        """The result is no longer wanted; what the server has begun, it may still do."""
        uri = self.session_of(call_id)
        await self._look(principal, uri, call_id)
        why = reason or f"{subject_name(principal.author)} gave it up."

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            return check_caller(principal, uri) or rounds.abandon(record, call_id, why, stamp)

        await write(self._host, uri, plan, principal.author)

    async def calls_of(self, principal: Principal, uri: Uri) -> tuple[CallView, ...]:
        """The calls of a session that this principal may look at, the latest first."""
        record = await self._record(uri)
        if record is None or self._host.channel(principal, uri) is None:
            raise UnknownCallError(uri)
        calls = reversed(record.private.calls.values())
        return tuple(view_of(record, call) for call in calls if _may_look(principal, call))

    def session_of(self, call_id: str) -> Uri:
        uri = self._where.get(call_id)
        if uri is not None and self._has(uri, call_id):
            return uri
        self._where.pop(call_id, None)
        for other in self._host.sessions:
            if self._has(other, call_id):
                self._remember(call_id, other)
                return other
        raise UnknownCallError(call_id)

    def _remember(self, call_id: str, uri: Uri) -> None:
        """Only to find it faster; the sessions know it anyway."""
        if len(self._where) >= REMEMBERED_CALLS:
            self._where.clear()
        self._where[call_id] = uri

    # What it is made of

    def _new_call(
        self,
        principal: Principal,
        server: str,
        method: CallMethod,
        params: Mapping[str, Any],
        key: str | None,
        call_id: str | None,
        client: CallClient | None,
    ) -> Call:
        config = self.servers[server].config
        own = own_params(params)
        check_params(method, own)
        within = config.answer_within
        capabilities = None if client is None else client.capabilities
        if capabilities is not None:  # a client that can do other things makes another call
            key = f"{key or ''}{encode(sorted(capabilities.items())).decode()}"
        return Call(
            id=call_id or f"call-{self._host.new_id()}",
            server=server,
            method=method,
            params=own,
            turn_id="",
            started_at=0,
            by=principal.author,
            repeatable=method != "tools/call",
            private_arguments=config.private_arguments_of(str(own[NAMES[method]])),
            fingerprint=call_fingerprint(principal.id, server, method, own, key),
            answer_within=None if within is None else int(within * 1000),
            client=client,
            roots=None if "roots" in (capabilities or {}) else config.roots,
            max_rounds=config.max_rounds,
        )

    def _title(self, call: Call) -> str | None:
        tool = self.servers[call.server].main.tools.get(call.target)
        if tool is None or call.method != "tools/call":
            return None
        return tool.title or (tool.annotations.title if tool.annotations is not None else None)

    async def _record(self, uri: Uri) -> SessionRecord | None:
        channel = await self._host.loaded.loaded(uri)
        return None if channel is None else channel.committed

    def _has(self, uri: Uri, call_id: str) -> bool:
        channel = self._host.sessions.get(uri)
        if channel is None:
            return False
        if channel.outline is not None:
            return call_id in channel.outline.calls
        return channel.committed is not None and call_id in channel.committed.private.calls

    async def _look(self, principal: Principal, uri: Uri, call_id: str) -> CallView:
        record = await self._record(uri)
        call = None if record is None else record.private.calls.get(call_id)
        if record is None or call is None or self._host.channel(principal, uri) is None:
            raise UnknownCallError(call_id)
        if not _may_look(principal, call):
            message = "Only its maker and owners can look at a call."
            raise RefusedError(Refusal(code=RefusalCode.ROLE, message=message))
        return view_of(record, call)


def id_of_step(uri: Uri, turn_id: str, key: str) -> str:
    """The id of the call that a step of a turn makes: the same after a restart."""
    step = msgspec.json.encode((uri, turn_id, key))
    return f"call-{hashlib.sha256(step).hexdigest()[:32]}"


def _may_look(principal: Principal, call: Call) -> bool:
    is_own = call.by is not None and call.by.id == principal.id
    return is_own or principal.role is Role.OWNER


def check_params(method: CallMethod, params: Mapping[str, Any]) -> None:
    name = NAMES[method]
    if not isinstance(params.get(name), str) or not params[name]:
        raise InvalidCallError(f"{method} needs a {name!r}.")
    if not isinstance(params.get("arguments", {}), dict):
        raise InvalidCallError("The arguments must be an object.")
    try:
        text = encode(params)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InvalidCallError(
            "The parameters contain values that JSON cannot represent."
        ) from None
    if len(text) > FRAME_BYTES:
        raise InvalidCallError(f"The parameters are larger than {FRAME_BYTES} bytes.")
    if is_too_deep(text, JSON_DEPTH):
        raise InvalidCallError(f"The parameters are nested deeper than {JSON_DEPTH} levels.")
