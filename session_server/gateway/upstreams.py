"""Connections to one configured server on behalf of clients who answer for themselves.

There is one for each set of capabilities, for a server may only ask what its client can answer. A
2025-era server does not say which call it asks for, so each call has a connection to itself.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any, Protocol

import msgspec
from mcp.client.session import ClientRequestContext
from mcp_types import (
    INTERNAL_ERROR,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
)
from pydantic import BaseModel

from session_server.calls.config import ServerConfig
from session_server.calls.errors import UnreachableError
from session_server.calls.links import Answering, KeptLink, Link
from session_server.calls.servers import Servers
from session_server.calls.slots import Line
from session_server.schemas.limits import CAPABILITY_SETS, CAPABILITY_SETS_PER_PRINCIPAL

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
Question = dict[str, Any]
"""`method` and `params` of a request that a server makes of its client."""


class Asker(Protocol):
    async def ask(self, question: Question) -> dict[str, Any] | ErrorData: ...


class Slot:
    """A connection, and whom the questions on it are for."""

    def __init__(self, config: ServerConfig, capabilities: Mapping[str, Any]) -> None:
        self.asker: Asker | None = None
        self.link = Link(
            config,
            Answering(
                elicit=self._elicit if "elicitation" in capabilities else None,
                sample=self._sample if "sampling" in capabilities else None,
                list_roots=self._list_roots if "roots" in capabilities else None,
                capabilities=capabilities,
            ),
        )
        self.kept = KeptLink(self.link, config.start_timeout)
        self._is_open = False

    async def open(self, spawn: Spawn) -> None:
        """Once; where it fails, the link is lost."""
        if not self._is_open:
            self._is_open = True
            await self.kept.open(spawn)

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
        del context
        answer = await self._ask("roots/list", None)
        return answer if isinstance(answer, ErrorData) else ListRootsResult.model_validate(answer)

    async def _ask(self, method: str, params: BaseModel | None) -> dict[str, Any] | ErrorData:
        if self.asker is None:
            return ErrorData(code=INTERNAL_ERROR, message="No call is under way here.")
        plain = (
            {}
            if params is None
            else params.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        return await self.asker.ask({"method": method, "params": plain})


class CapabilitySet:
    """All connections that declare the same."""

    def __init__(self, config: ServerConfig, capabilities: Mapping[str, Any], spawn: Spawn) -> None:
        self._config = config
        self._capabilities = capabilities
        self._spawn = spawn
        self._slots: list[Slot] = []
        self._moved = asyncio.Condition()
        self._shared: Slot | None = None
        self.users: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def lend(self, main: Link, asker: Asker, principal: str) -> AsyncGenerator[Link]:
        self.users[principal] += 1
        try:
            if not main.is_modern:
                async with self._own(asker) as link:
                    yield link
            elif self._config.url is None:
                yield await self._common()
            else:
                slot = Slot(self._config, self._capabilities)
                async with slot.link.opened(like=main) as link:
                    yield link
        finally:
            self.users[principal] -= 1
            self.users += Counter()  # forgets those that are zero

    async def close(self) -> None:
        shared = () if self._shared is None else (self._shared,)
        await asyncio.gather(*(slot.kept.close() for slot in (*self._slots, *shared)))

    async def _common(self) -> Link:
        """Revision 2026-07-28 tells requests apart, so one process serves them all."""
        async with self._moved:
            if self._shared is None or self._shared.link.lost.is_set():
                self._shared = None
                slot = Slot(self._config, self._capabilities)
                await slot.open(self._spawn)
                self._shared = slot
            return self._shared.link

    @contextlib.asynccontextmanager
    async def _own(self, asker: Asker) -> AsyncGenerator[Link]:
        async with self._moved:
            await self._moved.wait_for(self._has_room)
            slot = self._free() or self._new()
            slot.asker = asker
        try:
            await slot.open(self._spawn)
            yield slot.link
        finally:
            async with self._moved:
                slot.asker = None
                self._moved.notify_all()

    def _free(self) -> Slot | None:
        idle = (s for s in self._slots if s.asker is None and not s.link.lost.is_set())
        return next(idle, None)

    def _new(self) -> Slot:
        slot = Slot(self._config, self._capabilities)
        self._slots.append(slot)
        return slot

    def _has_room(self) -> bool:
        self._slots = [s for s in self._slots if s.asker is not None or not s.link.lost.is_set()]
        return self._free() is not None or len(self._slots) < self._config.connections


class Upstream:
    def __init__(
        self, servers: Servers, name: str, spawn: Spawn, most: int = CAPABILITY_SETS
    ) -> None:
        self._server = servers[name]
        self._spawn = spawn
        self._most = most
        self._sets: dict[bytes, CapabilitySet] = {}

    @contextlib.asynccontextmanager
    async def lend(
        self, capabilities: Mapping[str, Any], asker: Asker, principal: str
    ) -> AsyncGenerator[Link]:
        """A connection that declares these capabilities, for one leg of a principal's call."""
        main = await self._server.ready()
        chosen = await self._set(capabilities, principal)
        async with chosen.lend(main, asker, principal) as link:
            yield link

    async def is_repeatable(self, method: str, target: str) -> bool:
        """Whether running it twice is harmless, as far as the server says."""
        if method != "tools/call":
            return True
        return Line(await self._server.ready(), self._server.tools).is_repeatable(target)

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._sets.values()))

    async def _set(self, capabilities: Mapping[str, Any], principal: str) -> CapabilitySet:
        key = msgspec.json.encode(capabilities, order="deterministic")
        chosen = self._sets.pop(key, None)
        if chosen is None:
            self._check_share(principal)
            await self._make_room()
            chosen = CapabilitySet(self._server.config, capabilities, self._spawn)
        self._sets[key] = chosen  # the latest used stands last
        return chosen

    def _check_share(self, principal: str) -> None:
        used = sum(principal in one.users for one in self._sets.values())
        if used >= CAPABILITY_SETS_PER_PRINCIPAL:
            raise UnreachableError(
                f"clients of yours with {used} different sets of capabilities are using it;"
                " try again later"
            )

    async def _make_room(self) -> None:
        if len(self._sets) < self._most:
            return
        idle = next((key for key, one in self._sets.items() if not one.users), None)
        if idle is None:
            raise UnreachableError(
                f"clients with {self._most} different sets of capabilities are using it;"
                " try again later"
            )
        await self._sets.pop(idle).close()
