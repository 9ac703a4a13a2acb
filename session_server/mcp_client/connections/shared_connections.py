"""Connections that several calls share, and which call a question on one of them is for.

Revision 2026-07-28 needs none of this: a server asks in the result of the call. In the 2025 era it
asks on the connection. Over HTTP each call has a connection to itself. A process on stdin and
stdout holds state, so calls share it, and its questions are attributed by exclusion: of the calls
that may ask, one runs at a time; if others are running too, the question waits until they have
ended. `pool` above keeps several of them; `connections` below opens them.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

import msgspec
from mcp import MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
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
from session_server.mcp_client.connections.connection import Callbacks, Link
from session_server.mcp_client.failures import unreachable_error
from session_server.mcp_client.notifications import Notifications, Spawn, event_in
from session_server.mcp_client.sdk import plain
from session_server.schemas.limits import UNATTRIBUTED_QUESTION_SECONDS

NO_CALL = ErrorData(code=INTERNAL_ERROR, message="No call is running on this connection.")
UNATTRIBUTED = ErrorData(
    code=INTERNAL_ERROR,
    message="Several calls are running in this process, and it cannot be determined which of them"
    " asks. Call again: these tools are now run one at a time.",
)
logger = logging.getLogger("session_server.calls")

Question = dict[str, Any]
"""`method` and `params` of a request that a server makes of its client."""


class CallCallbacks(Protocol):
    """What a running call does when its server asks, logs or reports something."""

    async def ask(self, question: Question) -> dict[str, Any] | ErrorData: ...

    def logged(self, message: LoggingMessageNotificationParams) -> None: ...

    async def visited(self, elicitation_id: str) -> None:
        """The server reports that people have finished at a URL it sent them to."""
        ...


class Signal:
    """Wakes everyone who waits for something to become true."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait_for(self, is_true: Callable[[], Any]) -> None:
        while not is_true():
            await self._event.wait()


class ToolHabits:
    """Which tools of a server have asked on the connection, and which have ended without."""

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


class RunningCall:
    """One call on a connection. `waiting`: how many questions of it are with people."""

    def __init__(self, callbacks: CallCallbacks, *, may_ask: bool) -> None:
        self.callbacks = callbacks
        self.may_ask = may_ask
        self.request_id: str | None = None
        self.was_sent = False
        self.has_asked = False
        self.waiting = 0


class SharedLink:
    """A connection and the calls on it, in a task of its own until it is closed or lost.

    `has_asked`: its server has asked questions on it.
    """

    def __init__(
        self,
        config: ServerConfig,
        signal: Signal,
        notifications: Notifications,
        *,
        protocol: Revision = LEGACY,
        capabilities: Mapping[str, Any] | None = None,
        hears_changes: bool = True,
    ) -> None:
        """`capabilities`: those of clients, if not the host's own.

        Without `hears_changes` its announcements are ignored, since the main connection has them.
        """
        self.calls: list[RunningCall] = []
        self.has_asked = False
        self._abandoned: list[RunningCall] = []
        self._logging: list[tuple[CallCallbacks, str]] = []
        self._log_level: str | None = None
        self._unattributed = 0
        self._in_turn = asyncio.Lock()
        self._config = config
        self._signal = signal
        self._notifications = notifications
        self._hears_changes = hears_changes
        self._is_own = capabilities is None
        can = {"elicitation"} if capabilities is None else set(capabilities)
        if capabilities is None and config.roots is not None:
            can.add("roots")
        callbacks = Callbacks(
            elicit=self._elicit if "elicitation" in can else None,
            sample=self._sample if "sampling" in can else None,
            list_roots=self._list_roots if "roots" in can else None,
            notified=self._notified,
            capabilities=capabilities,
            answered=self._answered,
        )
        self.link = Link(config, callbacks)
        self._protocol: Revision = protocol
        self._task: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opened.add_done_callback(lambda done: done.exception())  # maybe nobody waits for it

    # Its task

    async def open(self, spawn: Spawn) -> None:
        """Closed again if it cannot be opened, or nobody waits for that any more."""
        self._task = spawn(self._run())
        try:
            await asyncio.shield(self._opened)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self.link.lost.set()
        if self._task is not None:
            if not self._opened.done():
                self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        link = self.link
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self._config.start_timeout):
                    await stack.enter_async_context(link.opened(self._protocol))
                self._opened.set_result(None)
                await link.lost.wait()
        except BaseException as error:
            if not self._opened.done():
                failure = unreachable_error(error, self._config, link.latest_response)
                self._opened.set_exception(failure)
            if not isinstance(error, Exception):
                raise
        finally:
            link.lost.set()

    # Calls

    @property
    def is_usable(self) -> bool:
        return not self.link.lost.is_set()

    @property
    def is_waiting(self) -> bool:
        """Whether a call on it waits for people."""
        return any(call.waiting for call in self.calls)

    @property
    def is_spent(self) -> bool:
        """Whether a call that was given up may still ask here, as one of the next call."""
        return bool(self._abandoned) and self.has_asked

    def admits(self, *, may_ask: bool) -> bool:
        if not self.is_usable or self._unattributed or self.is_spent:
            return False
        if self._config.url is not None:
            return not self.calls
        return not may_ask or not any(call.may_ask for call in self.calls)

    def give_up(self, call: RunningCall) -> None:
        """Nobody waits for its answer any more; the server may not know, or not care."""
        if self._config.url is not None:
            if self.has_asked:
                self.link.lost.set()
        elif call.request_id is not None and call.request_id in self.link.unanswered:
            self._abandoned.append(call)

    def free(self, call: RunningCall) -> None:
        self.calls.remove(call)
        self._signal.notify()

    def _answered(self) -> None:
        """The server has answered some call, maybe one that was given up."""
        still_running = self.link.unanswered
        self._abandoned = [call for call in self._abandoned if call.request_id in still_running]
        self._signal.notify()

    # Questions

    async def _asking_call(self) -> RunningCall | None:
        """The call that asks: the only one that has not ended since. No other begins meanwhile.

        If that does not become clear in time, the question is put to nobody; the end of its call
        may then make clear whose the next one is.
        """
        self.has_asked = True
        asking = [*self.calls, *self._abandoned]

        def running() -> list[RunningCall]:
            return [call for call in asking if call in self.calls or call in self._abandoned]

        self._unattributed += 1
        try:
            async with self._in_turn:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(UNATTRIBUTED_QUESTION_SECONDS):
                        await self._signal.wait_for(lambda: len(running()) <= 1)
        finally:
            self._unattributed -= 1
            self._signal.notify()
        if len(running()) > 1:
            for call in running():
                call.has_asked = True
        return running()[0] if len(running()) == 1 and running()[0] in self.calls else None

    async def _ask(self, method: str, params: BaseModel | None) -> dict[str, Any] | ErrorData:
        call = await self._asking_call()
        if call is None:
            return UNATTRIBUTED if self.calls else NO_CALL
        question = {"method": method, "params": {} if params is None else plain(params)}
        call.has_asked = True
        call.waiting += 1
        self._signal.notify()
        try:
            return await call.callbacks.ask(question)
        finally:
            call.waiting -= 1
            self._signal.notify()

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
        event = event_in(message)
        if event is not None:
            if self._hears_changes and not self.link.is_modern:  # 2026 has streams for it
                self._notifications.changed(event)
        elif isinstance(message, LoggingMessageNotification):
            self._logged(message.params)
        elif isinstance(message, ElicitCompleteNotification):
            for call in tuple(self.calls):
                await call.callbacks.visited(message.params.elicitation_id)
        elif isinstance(message, Exception):
            logger.warning("the MCP server %s sent something that is not MCP", self._config.name)

    # Log messages

    @contextlib.contextmanager
    def logging_to(self, callbacks: CallCallbacks, principal: str) -> Generator[None]:
        """While the block runs, this call gets what the server logs here."""
        entry = (callbacks, principal)
        self._logging.append(entry)
        try:
            yield
        finally:
            self._logging.remove(entry)

    async def set_log_level(self, level: str | None) -> None:
        """In the 2025 era; most servers log without."""
        if level in (None, self._log_level) or self.link.client.server_capabilities.logging is None:
            return
        self._log_level = level
        with contextlib.suppress(MCPError):
            await self.link.request("logging/setLevel", {"level": level})

    def _logged(self, message: LoggingMessageNotificationParams) -> None:
        """A message does not name its call: one principal never gets what may be another's."""
        principals = {principal for _, principal in self._logging}
        if len(principals) == 1 and not self._abandoned:
            for callbacks, _ in self._logging:
                callbacks.logged(message)
        else:
            self._notifications.logged(message)
