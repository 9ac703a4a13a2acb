"""A connected client: commands, sessions, and the status of the connection."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from session_server.client.client_protocol import ClientProtocol, Status
from session_server.client.errors import ConnectionLost, NotUnderstood
from session_server.client.handles import Root, Session
from session_server.client.http_commands import Ask, HttpApi, ahp_questions, asked, called
from session_server.client.watching import Listing, resolve
from session_server.reducers.texts import session_uri
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    ROOT_CHANNEL,
    SESSION_PREFIX,
    CreateSessionParams,
    FetchTurnsResult,
    ForkSource,
    Params,
    RootParams,
)
from session_server.schemas.ahp.questions import OnExpiry
from session_server.schemas.ahp.session import ModelSelection, SessionSummary
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import Decoder
from session_server.schemas.errors import DecodingError
from session_server.schemas.http import NewCall, NewRequest
from session_server.schemas.limits import LEASE_SECONDS
from session_server.schemas.mcp import AskedQuestion, AskResult
from session_server.schemas.wire import Extra, Uri

T = TypeVar("T")

_decode_turns: Decoder[FetchTurnsResult] = Decoder(FetchTurnsResult)
_decode_anything: Decoder[Any] = Decoder(Any)
"""For results that are not used."""


class Client:
    """Made by `connect`. Everything here waits for a connection if there is none just now."""

    def __init__(self, protocol: ClientProtocol, api: HttpApi) -> None:
        self._protocol = protocol
        self._api = api
        self._status = protocol.status
        self._status_changed = asyncio.Event()
        protocol.on_status = self._look_at_status

    @property
    def client_id(self) -> str:
        """The label of this client in everything that it does."""
        return self._protocol.client_id

    @property
    def version(self) -> str | None:
        """The version of AHP that is spoken with this host, once it is known."""
        return self._protocol.version

    # Connection

    @property
    def status(self) -> Status:
        return self._status

    async def statuses(self) -> AsyncIterator[Status]:
        """The status now, and each time it changes; a slow reader sees the latest one."""
        shown: Status | None = None
        while True:
            if shown != self._status:
                shown = self._status
                yield shown
            elif self._protocol.error is not None:
                return
            else:
                await self._status_changed.wait()

    async def wait_until_live(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as asyncio.wait_for has it
    ) -> None:
        """Returns as soon as there is a connection; raises when there will be none any more."""
        async with asyncio.timeout(timeout):
            while not self._status.is_connected:
                if self._protocol.error is not None:
                    raise self._protocol.error
                await self._status_changed.wait()

    def _look_at_status(self) -> None:
        status = self._protocol.status
        for listing in tuple(self._protocol.listings):
            listing.look()
        if status != self._status:
            self._status = status
            self._status_changed.set()
            self._status_changed = asyncio.Event()

    # Channels

    def session(self, uri: Uri, *, chat: Uri | None = None, present: bool = False) -> Session:
        """`async with client.session(uri) as session: …`; raises `SessionNotFound`.

        Where sessions have several chats, `chat` is the one to follow, and otherwise the default
        one. With `present`, the others in the session see you among those who are there.
        """
        return Session(self._protocol, uri, chat=chat, present=present)

    def root(self) -> Root:
        """`async with client.root() as root: …`"""
        return Root(self._protocol, ROOT_CHANNEL)

    def sessions(self) -> AsyncGenerator[tuple[SessionSummary, ...], None]:
        """All sessions now, and again each time one of them changes, comes or goes."""
        return Listing(self._protocol).run()

    # Commands

    async def list_sessions(self) -> tuple[SessionSummary, ...]:
        async with aclosing(Listing(self._protocol).run()) as listing:
            return await anext(listing)

    async def create_session(
        self,
        provider: str | None = None,
        *,
        uri: Uri | None = None,
        model: str | None = None,
        working_directory: Uri | None = None,
        fork: ForkSource | None = None,
        config: Extra | None = None,
    ) -> Uri:
        """Makes a session and returns its URI; without a provider the host's first one is used.

        Raises `ConnectionLost` when the connection breaks before the answer: with a `uri` of one's
        own, trying again then either makes the session or raises `SessionExists`.
        """
        uri = uri or f"{SESSION_PREFIX}{uuid.uuid4()}"
        wanted = CreateSessionParams(
            channel=uri,
            provider=provider,
            model=None if model is None else ModelSelection(id=model),
            working_directory=working_directory,
            fork=fork,
            config=config,
        )
        await self.wait_until_live()
        await self._command(*self._protocol.dialect.create_session(wanted), _decode_anything)
        return uri

    async def dispose_session(self, uri: Uri) -> None:
        """Ends the session for everyone and deletes its history."""
        await self._command(frames.DisposeSession, Params(channel=uri), _decode_anything)

    async def fetch_turns(
        self, uri: Uri, *, before: str | None = None, limit: int | None = None
    ) -> FetchTurnsResult:
        """Older turns, oldest first: those before a turn, or the latest ones."""
        await self.wait_until_live()
        command = self._protocol.dialect.fetch_turns(uri, before, limit)
        if command is not None:
            return await self._read(*command, _decode_turns)
        async with self.session(uri) as session:
            return await self._turns(session, before, limit)

    async def _turns(
        self, session: Session, before: str | None, limit: int | None
    ) -> FetchTurnsResult:
        """Where a host shows only the latest at first, the others come as actions."""
        while True:
            turns = session.confirmed.turns
            ids = [turn.id for turn in turns]
            if before is not None and before in ids:
                turns = turns[: ids.index(before)]
            cursor = session.older_turns
            if cursor is None or (limit is not None and len(turns) >= limit):
                shown = turns if limit is None else turns[max(0, len(turns) - limit) :]
                has_more = cursor is not None or len(shown) < len(turns)
                return FetchTurnsResult(turns=shown, has_more=has_more)
            params = methods.FetchTurnsParams(channel=session.chat or session.uri, cursor=cursor)
            await self._read(methods.FetchTurns, params, _decode_anything)

    async def ask(  # noqa: PLR0913 - each can be left out
        self,
        message: str | None = None,
        questions: Iterable[str | Mapping[str, Any] | AskedQuestion] = (),
        *,
        schema: Mapping[str, Any] | None = None,
        url: str | None = None,
        session: str | None = None,
        title: str | None = None,
        expires_in: float | None = None,
        on_expiry: Literal["cancel", "defaults", "wait"] | None = None,
        key: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as asyncio.wait_for has it
    ) -> AskResult:
        """Asks people something and waits until they have answered, across restarts of the host.

        A `message` alone asks for a yes or no: `outcome` is then `accepted` or `declined`.
        `questions` are texts, or have the fields that the tool `ask_questions` takes
        (`AskedQuestion`); a JSON `schema` of a form takes their place, or a `url` to open. The
        answers are plain values by question. It is asked in `session` (a name or a URI, made if
        there is none) or in a new one. `expires_in` is the question's deadline in seconds, and
        `on_expiry` says what it brings.

        After `timeout` seconds `TimeoutError` is raised. Then, and when this is cancelled, the
        question is withdrawn. With a `key` of your own it stays open instead, and asking again with
        the same key in the same session goes on waiting. Raises `AskRefused`.
        """
        if key is not None and session is None:
            raise ValueError("A `key` needs a `session` in which the question can be found again.")
        asked_questions = ahp_questions(questions)
        wanted = NewRequest(
            message=message,
            url=url,
            questions=asked_questions or None,
            requested_schema=None if schema is None else dict(schema),
            expires_in=expires_in,
            on_expiry=None if on_expiry is None else OnExpiry(on_expiry),
            lease=LEASE_SECONDS if key is None else None,
        )
        topic = asked_questions[0].message if asked_questions else "A question"
        place = None if session is None else session_uri(session)
        return await asked(self._api, Ask(wanted, place, title or message or topic, key), timeout)

    async def call_tool(
        self,
        session: Uri,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as asyncio.wait_for has it
    ) -> dict[str, Any]:
        """The result of a tool of one of the host's MCP servers, as the server sent it.

        When the server asks, the people in the session answer, and this waits: for `timeout`
        seconds, then `TimeoutError` is raised and the call continues. Raises `CallRefused` or
        `CallFailed`.
        """
        wanted = NewCall(
            server=server, tool=tool, arguments=dict(arguments or {}), lease=LEASE_SECONDS
        )
        return await called(self._api, session, wanted, timeout)

    async def ping(self) -> float:
        """Seconds until the host has answered."""
        started = time.perf_counter()
        await self._read(frames.Ping, RootParams(channel=ROOT_CHANNEL), _decode_anything)
        return time.perf_counter() - started

    async def _read(self, frame: Any, params: Any, decode: Decoder[T]) -> T:
        """A command that changes nothing, and so may be requested again on the next connection."""
        while True:
            try:
                return await self._command(frame, params, decode)
            except ConnectionLost:
                continue

    async def _command(self, frame: Any, params: Any, decode: Decoder[T]) -> T:
        await self.wait_until_live()
        response: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._protocol.request(frame, params, partial(resolve, response))
        result = await response
        try:
            return decode(bytes(result))
        except DecodingError as error:
            raise NotUnderstood(f"The host answered something that is not AHP: {error}") from error
