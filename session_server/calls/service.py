"""Calls as others use them: start one, wait for its result, abandon it, and its public view."""

import contextlib
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from session_server.calls.deliveries import Attendance, Delivery
from session_server.calls.driver import CallDriver
from session_server.host.acting import NotSavedError, RefusedError, StateWaiters, write
from session_server.host.active_clients import Askers
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.errors import CallsError, UnknownCallError
from session_server.mcp_client.revisions import Revisions
from session_server.mcp_client.server_states import ServerStates
from session_server.mcp_client.servers import Servers
from session_server.reducers.batches import Batch
from session_server.reducers.calls import rounds
from session_server.reducers.calls.starting import (
    check_caller,
    fingerprint_of_request,
    own_params,
    same_call,
    start,
)
from session_server.reducers.texts import subject_name
from session_server.schemas.codec import encode, is_too_deep
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.http import CallState, CallView
from session_server.schemas.limits import FRAME_BYTES, JSON_DEPTH
from session_server.schemas.mcp import CallMethod
from session_server.schemas.principals import Principal, Role, Stamp
from session_server.schemas.record import (
    Abandoned,
    Call,
    CallClient,
    CallCollected,
    Failed,
    Finished,
    Sent,
    SessionRecord,
    ToSend,
    Uncertain,
    Waiting,
)
from session_server.schemas.wire import Millis, Uri


def view_of(record: SessionRecord, call: Call) -> CallView:
    phase = call.phase
    return CallView(
        id=call.id,
        session=record.public.summary.resource,
        server=call.server,
        method=call.method,
        target=call.target,
        state=_STATES[type(phase)],
        round=call.round,
        started_at=call.started_at,
        turn_id=call.turn_id,
        ended_at=phase.at if isinstance(phase, Finished | Failed | Abandoned) else None,
        by=call.by,
        requests=tuple(
            request.id
            for request in record.public.input_requests or ()
            if request.meta is not None and request.meta.call == call.id
        ),
        result=phase.result if isinstance(phase, Finished) else None,
        error=phase.error if isinstance(phase, Failed) else None,
        reason=phase.reason if isinstance(phase, Abandoned) else None,
    )


_STATES: dict[type, CallState] = {
    ToSend: CallState.SENDING,
    Sent: CallState.RUNNING,
    Waiting: CallState.WAITING,
    Uncertain: CallState.UNCERTAIN,
    Finished: CallState.FINISHED,
    Failed: CallState.FAILED,
    Abandoned: CallState.ABANDONED,
}


REMEMBERED_CALLS = 10_000
TITLE_SECONDS = 3.0
"""What a call waits for a server that is just starting: how it is shown cannot be changed later."""

NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


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
        self.attendance = Attendance()
        self.driver = CallDriver(host, waiting)
        self.driver.servers = Servers(
            configs or {}, self.driver.spawn, self._states.changed, revisions
        )
        host.on_disposed.append(self.driver.forget_session)

    @property
    def askers(self) -> Askers:
        """Who waits for calls, and is known to by the people they ask."""
        return self._host.askers

    @property
    def servers(self) -> Servers:
        return self.driver.servers

    def now(self) -> Millis:
        return self._host.now()

    # Life

    def open(self) -> None:
        """Once the host has read its log, and before effects are derived from it."""
        self._states.restarted(self.servers.names)
        self.servers.start()

    async def close(self) -> None:
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
        delivery: Delivery | None = None,
        client: CallClient | None = None,
    ) -> str:
        """The id of the call, durable and on its way; or of the one that this request is already.

        `key` tells apart requests that are the same on purpose; `call_id` names the call oneself.
        With a `lease`, its maker waits for the result, and people see when it no longer does.
        Whoever gets the answer by this `delivery` is there for the call from now on. `client` is
        the MCP client that makes it.
        Refused: `RefusedError`. No such session: `CommandError`. No such server: `CallsError`.
        """
        record = self._host.record(uri)
        refusal = None if record is None else check_caller(principal, record)
        if refusal is not None:  # before anything that says which servers there are
            raise RefusedError(refusal)
        call = self._new_call(principal, server, method, params, key, call_id, client)
        call = msgspec.structs.replace(call, lease=lease)
        await self.servers[server].started(TITLE_SECONDS)
        await self.attendance.noticed()
        found = call.id

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            nonlocal found
            refusal = check_caller(principal, record)
            if refusal is not None:
                return refusal
            same = None
            if call_id is None:
                same = same_call(record, call, stamp.at, self.attendance)
            found = call.id if same is None else same.id
            if delivery is not None:
                delivery.attend(self.attendance, found)
            if same is not None:
                return ()
            return start(record, call, self._title(call), self._states.customization(server), stamp)

        await write(self._host, uri, plan, principal.author)
        self._remember(found, uri)
        return found

    async def result(self, principal: Principal, call_id: str, wait: float | None = 0) -> CallView:
        """Where the call is after at most `wait` seconds; without a number, once it has ended.

        For its maker and for owners. Whoever hands the result over says so with `collect`.
        """
        uri = self.session_of(call_id)

        def ended(record: SessionRecord) -> CallView | None:
            call = record.private.calls.get(call_id)
            if call is None:
                raise UnknownCallError(call_id)
            return None if call.is_open else view_of(record, call)

        view = self._look(principal, uri, call_id)
        is_own = view.by is not None and view.by.id == principal.id and wait != 0
        with self._host.askers.waiting(uri, call_id) if is_own else contextlib.nullcontext():
            found = await self._waiting.until(uri, ended, wait)
        return self._look(principal, uri, call_id) if found is None else found

    def hand_over(self, principal: Principal, call_id: str, delivery: Delivery) -> None:
        """The answer that holds the result is on its way."""
        delivery.attend(self.attendance, call_id)
        delivery.carry(partial(self.collect, principal, call_id))

    async def collect(self, principal: Principal, call_id: str) -> None:
        """Its maker has the result, so that the same request is a new call from now on.

        To be said after the result went out: if the process dies in between, the result is given
        again, and nothing is run twice.
        """

        def plan(record: SessionRecord, _: Stamp) -> Batch:
            call = record.private.calls.get(call_id)
            is_made_by = call is not None and call.by is not None and call.by.id == principal.id
            is_new = call is not None and not call.is_open and not call.collected
            return (CallCollected(call_id=call_id),) if is_made_by and is_new else ()

        # Where it cannot be written down, the result is given again.
        with contextlib.suppress(CommandError, NotSavedError, RefusedError, UnknownCallError):
            await write(self._host, self.session_of(call_id), plan, principal.author)

    async def abandon(self, principal: Principal, call_id: str, reason: str | None = None) -> None:
        """The result is no longer wanted; what the server has begun, it may still do."""
        uri = self.session_of(call_id)
        self._look(principal, uri, call_id)
        words = reason or f"{subject_name(principal.author)} gave it up."

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            return check_caller(principal, record) or rounds.abandon(record, call_id, words, stamp)

        await write(self._host, uri, plan, principal.author)

    def calls_of(self, principal: Principal, uri: Uri) -> tuple[CallView, ...]:
        """The calls of a session that this principal may look at, the latest first."""
        record = self._host.record(uri)
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
            fingerprint=fingerprint_of_request(principal.id, server, method, own, key),
            answer_within=None if within is None else int(within * 1000),
            client=client,
            roots=None if "roots" in (capabilities or {}) else config.roots,
            max_rounds=config.max_rounds,
        )

    def _title(self, call: Call) -> str | None:
        tool = self.servers[call.server].tools.get(call.target)
        if tool is None or call.method != "tools/call":
            return None
        return tool.title or (tool.annotations.title if tool.annotations is not None else None)

    def _has(self, uri: Uri, call_id: str) -> bool:
        record = self._host.record(uri)
        return record is not None and call_id in record.private.calls

    def _look(self, principal: Principal, uri: Uri, call_id: str) -> CallView:
        record = self._host.record(uri)
        call = None if record is None else record.private.calls.get(call_id)
        if record is None or call is None or self._host.channel(principal, uri) is None:
            raise UnknownCallError(call_id)
        if not _may_look(principal, call):
            words = "Only its maker and owners can look at a call."
            raise RefusedError(Refusal(code=RefusalCode.ROLE, message=words))
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
        raise CallsError(f"{method} needs a {name!r}.")
    if not isinstance(params.get("arguments", {}), dict):
        raise CallsError("The arguments must be an object.")
    try:
        text = encode(params)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise CallsError("The parameters hold what JSON cannot.") from None
    if len(text) > FRAME_BYTES:
        raise CallsError(f"The parameters are larger than {FRAME_BYTES} bytes.")
    if is_too_deep(text, JSON_DEPTH):
        raise CallsError(f"The parameters are nested deeper than {JSON_DEPTH} levels.")
