"""Connections to a 2025-era server, and which call a question on one of them is for.

Revision 2026-07-28 needs none of this: a server asks in the result of the call. In the 2025 era it
asks on the connection. Over HTTP each call has a connection to itself. A process on stdin and
stdout holds state, so calls share it, and its questions are attributed by exclusion: of the calls
that may ask, one runs at a time; if others are running too, the question waits until they have
ended. Above it `servers` chooses the revision; below it are `links`.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
from mcp import MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.subscriptions import ServerEvent
from mcp_types import (
    INTERNAL_ERROR,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitCompleteNotification,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    Tool,
)
from pydantic import BaseModel

from session_server.mcp_client.config import LEGACY, ServerConfig
from session_server.mcp_client.config import Protocol as Revision
from session_server.mcp_client.connections import Answering, KeptLink, Link
from session_server.mcp_client.errors import UnreachableError
from session_server.mcp_client.notifications import tidings_in
from session_server.schemas.limits import (
    CAPABILITY_SETS,
    CAPABILITY_SETS_PER_PRINCIPAL,
    UNATTRIBUTED_QUESTION_SECONDS,
)

NO_CALL = ErrorData(code=INTERNAL_ERROR, message="No call is under way here.")
UNATTRIBUTED = ErrorData(
    code=INTERNAL_ERROR,
    message="Several calls are running in this process, and none of them can be told to be the one"
    " that asks. Call again: these tools are now run one at a time.",
)
CANCEL_SECONDS = 3.0
"""What a server gets to answer a call that was cancelled, before its process is replaced."""

ASKING = ("elicitation", "sampling", "roots")

logger = logging.getLogger("session_server.calls")

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
Question = dict[str, Any]
"""`method` and `params` of a request that a server makes of its client."""


class Asker(Protocol):
    """Whom the server's questions are for, while a call is under way."""

    async def ask(self, question: Question) -> dict[str, Any] | ErrorData: ...

    def logged(self, message: LoggingMessageNotificationParams) -> None: ...

    async def visited(self, elicitation_id: str) -> None:
        """The server reports that a URL it sent people to is done with."""
        ...


class Changes:
    """Wakes everybody who waits for something to become true."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait_for(self, is_true: Callable[[], Any]) -> None:
        while not is_true():
            await self._event.wait()


class Habits:
    """What the tools of a server were seen doing: asking on the connection, or never yet."""

    def __init__(self) -> None:
        self._asking: set[str] = set()
        self._quiet: set[str] = set()

    def may_ask(self, name: str, tool: Tool | None) -> bool:
        """Prompts, resources and tools marked read-only hardly ever do; so not until they have."""
        if name in self._asking:
            return True
        marks = None if tool is None else tool.annotations
        is_read_only = marks is not None and bool(marks.read_only_hint)
        return not is_read_only and name not in (*self._quiet, "prompts/get", "resources/read")

    def asked(self, name: str) -> None:
        self._asking.add(name)

    def ended_without_asking(self, name: str) -> None:
        self._quiet.add(name)


class Seat:
    """One call on a connection. `waiting`: how many questions of it are with people."""

    def __init__(self, asker: Asker, name: str, *, may_ask: bool) -> None:
        self.asker = asker
        self.name = name
        self.may_ask = may_ask
        self.request_id: str | None = None
        self.was_sent = False
        self.has_asked = False
        self.waiting = 0


class Slot:
    """A kept connection, and the calls on it. `has_asked`: its server has put questions on it."""

    def __init__(
        self,
        name: str,
        config: ServerConfig,
        changes: Changes,
        *,
        protocol: Revision = LEGACY,
        capabilities: Mapping[str, Any] | None = None,
        heard: Callable[[ServerEvent], None] | None = None,
    ) -> None:
        self.calls: list[Seat] = []
        self.has_asked = False
        self._left: list[Seat] = []
        self._hearing: list[tuple[Asker, str]] = []
        self._log_level: str | None = None
        self._unattributed = 0
        self._in_turn = asyncio.Lock()
        self._name = name
        self._config = config
        self._changes = changes
        self._heard = heard
        self._is_own = capabilities is None
        can = {"elicitation"} if capabilities is None else set(capabilities)
        if capabilities is None and config.roots is not None:
            can.add("roots")
        answering = Answering(
            elicit=self._elicit if "elicitation" in can else None,
            sample=self._sample if "sampling" in can else None,
            list_roots=self._list_roots if "roots" in can else None,
            notified=self._notified,
            capabilities=capabilities,
            answered=self._answered,
        )
        self.link = Link(config, answering)
        self.kept = KeptLink(self.link, protocol)

    # Calls

    @property
    def is_usable(self) -> bool:
        return not self.link.lost.is_set()

    @property
    def is_waiting(self) -> bool:
        """Whether a call on it waits for people."""
        return any(seat.waiting for seat in self.calls)

    @property
    def is_spent(self) -> bool:
        """Whether a call that was given up may still ask here, as one of the next call."""
        return bool(self._left) and self.has_asked

    def admits(self, *, may_ask: bool) -> bool:
        if not self.is_usable or self._unattributed or self.is_spent:
            return False
        if self._config.url is not None:
            return not self.calls
        return not may_ask or not any(seat.may_ask for seat in self.calls)

    def take(self, seat: Seat) -> None:
        self.calls.append(seat)

    def give_up(self, seat: Seat) -> None:
        """Nobody waits for its answer any more; the server may not know, or not care."""
        if self._config.url is not None:
            if self.has_asked:
                self.link.lost.set()
        elif seat.request_id is not None and seat.request_id in self.link.unanswered:
            self._left.append(seat)

    def free(self, seat: Seat) -> None:
        self.calls.remove(seat)
        self._changes.notify()

    def _answered(self) -> None:
        """The server has answered some call, maybe one that was given up."""
        self._left = [seat for seat in self._left if seat.request_id in self.link.unanswered]
        self._changes.notify()

    # Questions

    async def _whose(self) -> Seat | None:
        """The call that asks: the only one that has not ended since. No other begins meanwhile.

        If that does not become clear in time, the question is put to nobody; the end of its call
        may then make clear whose the next one is.
        """
        self.has_asked = True
        asking = [*self.calls, *self._left]

        def running() -> list[Seat]:
            return [seat for seat in asking if seat in self.calls or seat in self._left]

        self._unattributed += 1
        try:
            async with self._in_turn:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(UNATTRIBUTED_QUESTION_SECONDS):
                        await self._changes.wait_for(lambda: len(running()) <= 1)
        finally:
            self._unattributed -= 1
            self._changes.notify()
        if len(running()) > 1:
            for seat in running():
                seat.has_asked = True
        return running()[0] if len(running()) == 1 and running()[0] in self.calls else None

    async def _ask(self, method: str, params: BaseModel | None) -> dict[str, Any] | ErrorData:
        seat = await self._whose()
        if seat is None:
            return UNATTRIBUTED if self.calls else NO_CALL
        plain = (
            {}
            if params is None
            else params.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        seat.has_asked = True
        seat.waiting += 1
        self._changes.notify()
        try:
            return await seat.asker.ask({"method": method, "params": plain})
        finally:
            seat.waiting -= 1
            self._changes.notify()

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        del context
        answer = await self._ask("elicitation/create", params)
        return answer if isinstance(answer, ErrorData) else ElicitResult.model_validate(answer)

    async def _sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        del context
        answer = await self._ask("sampling/createMessage", params)
        if isinstance(answer, ErrorData):
            return answer
        is_many = isinstance(answer.get("content"), list)
        shape = CreateMessageResultWithTools if is_many else CreateMessageResult
        return shape.model_validate(answer)

    async def _list_roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        """The host's own roots stand in the configuration; those of a client it has to give."""
        del context
        if self._is_own:
            roots = msgspec.to_builtins(self._config.roots or ())
            return ListRootsResult.model_validate({"roots": roots})
        answer = await self._ask("roots/list", None)
        return answer if isinstance(answer, ErrorData) else ListRootsResult.model_validate(answer)

    async def _notified(self, message: IncomingMessage) -> None:
        event = tidings_in(message)
        if event is not None and self._heard is not None and not self.link.is_modern:
            self._heard(event)
        elif isinstance(message, LoggingMessageNotification):
            self._logged(message.params)
        elif isinstance(message, ElicitCompleteNotification):
            for seat in tuple(self.calls):
                await seat.asker.visited(message.params.elicitation_id)
        elif isinstance(message, Exception):
            logger.warning("the MCP server %s sent something that is not MCP", self._name)

    # Log messages

    @contextlib.contextmanager
    def hearing(self, asker: Asker, principal: str) -> Generator[None]:
        """While the block runs, this call gets what the server logs here."""
        entry = (asker, principal)
        self._hearing.append(entry)
        try:
            yield
        finally:
            self._hearing.remove(entry)

    async def set_log_level(self, level: str | None) -> None:
        """In the 2025 era; most servers log without."""
        if level in (None, self._log_level) or self.link.client.server_capabilities.logging is None:
            return
        self._log_level = level
        with contextlib.suppress(MCPError):
            await self.link.request("logging/setLevel", {"level": level})

    def _logged(self, message: LoggingMessageNotificationParams) -> None:
        """A message does not name its call: one principal never gets what may be another's."""
        principals = {principal for _, principal in self._hearing}
        if len(principals) == 1 and not self._left:
            for asker, _ in self._hearing:
                asker.logged(message)


class Line:
    """A connection as one leg of a call sees it."""

    def __init__(
        self,
        link: Link,
        tools: Mapping[str, Tool],
        capabilities: Mapping[str, Any] | None = None,
        seat: Seat | None = None,
    ) -> None:
        self.link = link
        self._tools = tools
        self._capabilities = capabilities
        self._seat = seat

    @property
    def can_sample(self) -> bool:
        """Whether somebody answers what the server asks of a model."""
        return self._capabilities is not None and "sampling" in self._capabilities

    def is_repeatable(self, tool: str) -> bool:
        """Whether the server says that running this tool twice is harmless."""
        return is_repeatable(self._tools.get(tool))

    async def request(
        self, method: str, params: Mapping[str, Any], progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        capabilities = self._capabilities if self.link.is_modern else None
        named = None
        if self._seat is not None:
            self._seat.was_sent = True
            named = self._seat.request_id
        return await self.link.request(method, params, progress, capabilities, named)


def is_repeatable(tool: Tool | None) -> bool:
    marks = None if tool is None else tool.annotations
    return marks is not None and bool(marks.read_only_hint or marks.idempotent_hint)


class Pool:
    """The connections that declare the same capabilities: the host's own, or those of clients."""

    def __init__(
        self,
        name: str,
        config: ServerConfig,
        changes: Changes,
        spawn: Spawn,
        capabilities: Mapping[str, Any] | None = None,
        heard: Callable[[ServerEvent], None] | None = None,
    ) -> None:
        """`revive` is called when there is none; it may bring one that is kept elsewhere.

        `heard` is told what clients' own connections announce; the host listens on its main one.
        """
        self.slots: list[Slot] = []
        self.users: Counter[str] = Counter()
        self.revive: Callable[[], Coroutine[Any, Any, object]] = _nothing
        self._name = name
        self._config = config
        self._changes = changes
        self._spawn = spawn
        self._capabilities = capabilities
        self._heard = None if capabilities is None else heard
        self._can_ask = capabilities is None or any(kind in capabilities for kind in ASKING)
        self._opening = 0
        self._ids = itertools.count(1)

    @contextlib.asynccontextmanager
    async def lend(
        self, asker: Asker, name: str, tool: Tool | None, habits: Habits, principal: str
    ) -> AsyncGenerator[tuple[Slot, Seat]]:
        self.users[principal] += 1
        try:

            def may_ask() -> bool:
                return self._can_ask and habits.may_ask(name, tool)

            slot = await self._free_slot(may_ask)
            seat = Seat(asker, name, may_ask=may_ask())
            if self._config.url is None:
                seat.request_id = f"call-{next(self._ids)}"
            slot.take(seat)
            try:
                yield slot, seat
            except BaseException:
                slot.give_up(seat)
                raise
            else:
                if seat.was_sent and not seat.has_asked:
                    habits.ended_without_asking(name)
            finally:
                if seat.has_asked:
                    habits.asked(name)
                slot.free(seat)
                self._drop_lost()
        finally:
            self.users[principal] -= 1
            self.users += Counter()  # forgets those that are zero

    async def close(self) -> None:
        await asyncio.gather(*(slot.kept.close() for slot in self.slots))

    async def check(self) -> None:
        """Raises why none can be opened."""
        if not any(slot.is_usable for slot in self.slots):
            await self._open()

    async def link(self) -> Link:
        """For what asks nobody anything: any connection, whatever calls are on it."""
        await self.check()
        return next(slot.link for slot in self.slots if slot.is_usable)

    async def _free_slot(self, may_ask: Callable[[], bool]) -> Slot:
        """One that is there, one more if there may be, or the next that is free."""
        while True:
            self._drop_lost()
            if not self.slots:
                await self.revive()
            slot = self._admitting(may_ask=may_ask())
            if slot is not None:
                return slot
            spent = self._spent()
            if spent is not None:
                await self._replace(spent)
            elif self._has_room():
                await self._open()
            else:
                await self._changes.wait_for(
                    lambda: self._admitting(may_ask=may_ask()) or self._spent() or self._has_room()
                )

    def _admitting(self, *, may_ask: bool) -> Slot | None:
        return next((slot for slot in self.slots if slot.admits(may_ask=may_ask)), None)

    def _has_room(self) -> bool:
        """A process more, which has none of the others' state, only if people keep all waiting."""
        usable = [slot for slot in self.slots if slot.is_usable]
        if len(usable) + self._opening >= self._config.most_connections:
            return False
        is_process = self._config.url is None
        return not is_process or (not self._opening and all(slot.is_waiting for slot in usable))

    def _spent(self) -> Slot | None:
        return next((s for s in self.slots if s.is_usable and s.is_spent and not s.calls), None)

    async def _replace(self, spent: Slot) -> None:
        """Unless the server soon answers what was cancelled: then nothing of it is left."""
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._changes.wait_for(lambda: not spent.is_spent or not spent.is_usable)
        except TimeoutError:
            spent.link.lost.set()

    def _drop_lost(self) -> None:
        for slot in tuple(self.slots):
            if not slot.is_usable and not slot.calls:
                self.slots.remove(slot)
                self._changes.notify()

    async def _open(self) -> None:
        self._opening += 1
        slot = Slot(
            self._name,
            self._config,
            self._changes,
            capabilities=self._capabilities,
            heard=self._heard,
        )
        try:
            await slot.kept.open(self._spawn)
            self.slots.append(slot)
        except BaseException:
            await slot.kept.close()
            raise
        finally:
            self._opening -= 1
            self._changes.notify()


async def _nothing() -> None: ...


class Pools:
    """By capabilities: a 2025-era server hears of these once, when the connection is opened.

    The host's own pool is always there; of those of clients, the least used makes room.
    """

    def __init__(
        self,
        name: str,
        config: ServerConfig,
        changes: Changes,
        spawn: Spawn,
        most: int = CAPABILITY_SETS,
        heard: Callable[[ServerEvent], None] | None = None,
    ) -> None:
        self._new: Callable[[Mapping[str, Any] | None], Pool] = partial(
            Pool, name, config, changes, spawn, heard=heard
        )
        self._most = most
        self._of_clients: dict[bytes, Pool] = {}
        self.own = self._new(None)

    async def of(self, capabilities: Mapping[str, Any] | None, principal: str) -> Pool:
        if capabilities is None:
            return self.own
        key = msgspec.json.encode(capabilities, order="deterministic")
        chosen = self._of_clients.pop(key, None)
        if chosen is None:
            self._check_share(principal)
            await self._make_room()
            chosen = self._new(capabilities)
        self._of_clients[key] = chosen  # the latest used stands last
        return chosen

    async def close(self) -> None:
        await asyncio.gather(self.own.close(), *(one.close() for one in self._of_clients.values()))

    def _check_share(self, principal: str) -> None:
        used = sum(principal in one.users for one in self._of_clients.values())
        if used >= CAPABILITY_SETS_PER_PRINCIPAL:
            raise UnreachableError(
                f"clients of yours with {used} different sets of capabilities are using it;"
                " try again later"
            )

    async def _make_room(self) -> None:
        if len(self._of_clients) < self._most:
            return
        idle = next((key for key, one in self._of_clients.items() if not one.users), None)
        if idle is None:
            raise UnreachableError(
                f"clients with {self._most} different sets of capabilities are using it;"
                " try again later"
            )
        await self._of_clients.pop(idle).close()


def declared(config: ServerConfig, asker: Asker | None = None) -> Answering:
    """What a connection for one request declares; revision 2026-07-28 asks nothing on it."""

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ErrorData:
        del context, params
        return ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")

    async def list_roots(context: ClientRequestContext) -> ErrorData:
        del context
        return ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")

    async def notified(message: IncomingMessage) -> None:
        if asker is not None and isinstance(message, LoggingMessageNotification):
            asker.logged(message.params)

    return Answering(
        elicit=elicit,
        list_roots=None if config.roots is None else list_roots,
        notified=notified,
    )
