"""Handles on channels: what a program holds while it watches the root or a session."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, Literal, Self, TypeAlias, TypeVar
from weakref import WeakSet

import msgspec

from session_server.client.answer_values import Plain, answer_of, answers_of, asked
from session_server.client.client_protocol import ClientProtocol, Presence
from session_server.client.conversations import Conversation
from session_server.client.errors import Closed, RequestClosed
from session_server.client.mirror import Mirror, Verdict
from session_server.client.mirror_kinds import ConversationMirror, SessionMirror
from session_server.client.watching import Changes, Condition, resolve
from session_server.reducers.forms.review import reviewed as reviewed_now
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.texts import name_of, subject
from session_server.schemas.ahp.actions import (
    Action,
    InputAnswerChanged,
    InputCompleted,
    RootAction,
    SessionAction,
    TurnStarted,
)
from session_server.schemas.ahp.commands import SESSION_PREFIX, EditingPlace, Present
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import (
    Answer,
    CompletionMeta,
    InputRequest,
    ResponseKind,
    Reviewed,
    Skipped,
)
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.ahp.turn_messages import USER, Message, MessageOrigin
from session_server.schemas.ahp1.state import ChatSummary
from session_server.schemas.principals import Author
from session_server.schemas.wire import Uri

S = TypeVar("S", bound=RootState | SessionState)
A = TypeVar("A", bound=Action)

Response: TypeAlias = Literal["accept", "decline", "cancel"] | ResponseKind


class Watch(Generic[S, A]):
    """Within `async with` the channel is watched; after it, what was seen last can still be read.

    Leaving does not wait: what was dispatched and is not confirmed may or may not count. Await
    `settled()` first where that matters.
    """

    def __init__(self, protocol: ClientProtocol, uri: Uri, chat: Uri | None = None) -> None:
        self.uri = uri
        self._wanted_chat = chat
        self._protocol = protocol
        self._entered: Mirror[S] | None = None
        self._left = False
        self._changes: WeakSet[Changes[S]] = WeakSet()

    async def __aenter__(self) -> Self:
        found: asyncio.Future[Mirror[S]] = asyncio.get_running_loop().create_future()
        self._protocol.watch(self.uri, partial(resolve, found), self._wanted_chat)
        try:
            self._entered = await found
        except BaseException:
            self._protocol.unwatch(self.uri, self._wanted_chat)
            raise
        self._left = False
        return self

    async def __aexit__(self, *_: object) -> None:
        self._left = True
        for changes in tuple(self._changes):
            changes.ended(self._closed())
        self._protocol.unwatch(self.uri, self._wanted_chat)

    @property
    def _mirror(self) -> Mirror[S]:
        if self._entered is None:
            raise self._closed()
        return self._entered

    def _closed(self) -> Closed:
        return Closed(f"{self.uri} is watched inside `async with` only.")

    # What there is to see

    @property
    def confirmed(self) -> S:
        """What the host has confirmed; the same for everybody."""
        return self._mirror.confirmed

    @property
    def state(self) -> S:
        """The confirmed state with our own unconfirmed actions on top: what to show."""
        return self._mirror.state

    @property
    def position(self) -> int:
        """The `serverSeq` up to which the confirmed state is complete."""
        return self._mirror.position

    @property
    def pending(self) -> tuple[Action, ...]:
        """Our own actions that are not confirmed yet."""
        return tuple(pending.action for pending in self._mirror.pending)

    def changes(self) -> Changes[S]:
        """The changes from now on: `async for change in session.changes()`."""
        changes = Changes(self._mirror)
        self._changes.add(changes)
        return changes

    async def wait_until(
        self,
        predicate: Callable[[S], object],
        timeout: float | None = None,  # noqa: ASYNC109 - as asyncio.wait_for has it
    ) -> S:
        """The first confirmed state of which the predicate is true."""
        condition = Condition(self._mirror, lambda state: state if predicate(state) else None)
        return await condition.met(timeout)

    # Doing something

    async def dispatch(self, action: A) -> ActionEnvelope:
        """Returns the envelope once the host has accepted the action, however long that takes.

        Without a connection it waits for one, and after a broken one it is sent again unless the
        host is known to have it: it counts at least once, where the host lets it. Raises `Rejected`
        with the host's reason, or if somebody else changed the same answer while there was no
        connection; the local state is then as if nothing had happened. Raises
        `Unconfirmed` where nobody can say whether it counted and sending it again could do harm.
        Cancelling this stops the waiting, not the action.
        """
        settled: asyncio.Future[ActionEnvelope] = asyncio.get_running_loop().create_future()
        self._dispatch(action, partial(resolve, settled))
        return await settled

    def dispatch_nowait(self, action: A) -> None:
        """The same without waiting; a refusal shows as a change of cause `REJECTED`."""
        self._dispatch(action, lambda _: None)

    def _dispatch(self, action: A, judged: Callable[[Verdict], None]) -> None:
        if self._left:
            raise self._closed()
        self._protocol.dispatch(self._mirror, action, judged)

    async def settled(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Returns when the host has judged everything that we did here."""
        mirror = self._mirror
        condition = Condition(mirror, lambda _: None if mirror.pending else mirror)
        await condition.met(timeout)


class Root(Watch[RootState, RootAction]):
    """The host itself: its agents, its number of sessions, its configuration."""


class Session(Watch[SessionState, SessionAction]):
    """One session: its turns, and the questions that it asks.

    In AHP 0.9 and 1.x it is shown with one of its chats; `state` is then a `Conversation`. With
    `present`, the others in the session see that we are there.
    """

    def __init__(
        self,
        protocol: ClientProtocol,
        uri: Uri,
        *,
        chat: Uri | None = None,
        present: bool = False,
    ) -> None:
        super().__init__(protocol, uri, chat)
        has_room = present and uri.startswith(SESSION_PREFIX)
        self._presence = Presence(uri, protocol.rpc) if has_room else None

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if self._presence is not None:
            self._protocol.join(self._presence)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._presence is not None:
            self._protocol.leave(self._presence)
        await super().__aexit__()

    # Chats

    @property
    def chat(self) -> Uri | None:
        """The chat that is followed; `None` in AHP 0.3.0, and before the session has one."""
        mirror = self._mirror
        return mirror.chat if isinstance(mirror, ConversationMirror) else None

    @property
    def chats(self) -> tuple[ChatSummary, ...]:
        """All chats of the session, as AHP 0.9 and 1.x show them."""
        state = self.state
        return state.chats if isinstance(state, Conversation) else ()

    @property
    def older_turns(self) -> str | None:
        """A cursor, while the host has turns from before those in `state`."""
        state = self.confirmed
        chat = state.chat if isinstance(state, Conversation) else None
        return None if chat is None else chat.get("turnsNextCursor")

    # Presence

    @property
    def present(self) -> tuple[Present, ...]:
        """Who is here, ourselves included, one entry per connection. Empty if we are not shown."""
        return () if self._presence is None else self._presence.present

    def on_presence(self, changed: Callable[[], None]) -> None:
        """Calls this each time `present` changes."""
        if self._presence is not None:
            self._presence.on_change = changed

    def editing(self, request_id: str | None = None, question_id: str | None = None) -> None:
        """Shows others which question we are answering, for some seconds; without ids, none."""
        if self._presence is not None:
            is_place = request_id is not None and question_id is not None
            place = EditingPlace(request_id=request_id or "", question_id=question_id or "")
            self._presence.edits(place if is_place else None)

    # Questions

    @property
    def requests(self) -> tuple[InputRequest, ...]:
        """The questions that are open, apart from those that we just closed ourselves."""
        return self.state.input_requests or ()

    @property
    def author(self) -> Author | None:
        """Our author as the host reports it; known once it has confirmed an action of ours here."""
        mirror = self._mirror
        assert isinstance(mirror, SessionMirror)
        return mirror.author

    async def wait_for_request(
        self,
        match: str | Callable[[InputRequest], bool] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as asyncio.wait_for has it
    ) -> InputRequest:
        """The first open request: any, the one with this id, or one of which this is true."""

        def look(state: SessionState) -> InputRequest | None:
            requests = state.input_requests or ()
            if callable(match):
                return next((r for r in requests if match(r)), None)
            return next((r for r in requests if match in (None, r.id)), None)

        return await Condition(self._mirror, look).met(timeout)

    async def answer(
        self, request_id: str, question_id: str, value: Plain, *, draft: bool = False
    ) -> ActionEnvelope:
        """Answers one question: text, a number, a bool, the id of an option, or a list of ids.

        A draft is shared with everybody, but does not count.
        """
        cleared = _change(request_id, question_id)
        question = asked(self._open(cleared), question_id)
        return await self.dispatch(
            _change(request_id, question_id, answer_of(question, value, draft=draft))
        )

    async def skip(self, request_id: str, question_id: str) -> ActionEnvelope:
        """Skips the question: it is left without an answer on purpose."""
        return await self.dispatch(_change(request_id, question_id, Skipped()))

    async def clear(self, request_id: str, question_id: str) -> ActionEnvelope:
        """Takes an answer or a draft back."""
        return await self.dispatch(_change(request_id, question_id))

    async def complete(
        self,
        request_id: str,
        response: Response = "accept",
        answers: Mapping[str, Plain | None] | None = None,
        *,
        reviewed: Reviewed | None = None,
    ) -> ActionEnvelope:
        """Closes the request for everyone; `answers` replace earlier ones, `None` skips.

        With the result of `review` as `reviewed`, it is `Rejected` if something else would be sent.
        Raises `RequestClosed` if someone else closed it first; `by` is who.
        """
        completed = InputCompleted(
            request_id=request_id,
            response=ResponseKind(response),
            meta=None if reviewed is None else CompletionMeta(reviewed=reviewed),
        )
        request = self._open(completed)
        given = answers_of(request, answers) if answers else None
        return await self.dispatch(msgspec.structs.replace(completed, answers=given))

    def review(
        self, request_id: str, answers: Mapping[str, Plain | None] | None = None
    ) -> Reviewed:
        """What accepting with these answers would send now: `content` has the plain values."""
        request = self._open(_change(request_id, ""))
        return reviewed_now(request, answers_of(request, answers) if answers else None)

    async def start_turn(self, text: str, *, turn_id: str | None = None) -> str:
        """Sends a message to the agent; returns the id of the turn that this starts."""
        started = TurnStarted(
            turn_id=turn_id or uuid.uuid4().hex,
            message=Message(text=text, origin=MessageOrigin(kind=USER)),
        )
        await self.dispatch(started)
        return started.turn_id

    def _open(self, action: InputAnswerChanged | InputCompleted) -> InputRequest:
        request = open_request(self.state, action.request_id)
        if request is not None:
            return request
        mirror = self._mirror
        assert isinstance(mirror, SessionMirror)
        closing = mirror.closings.get(action.request_id)
        if closing is None:
            raise RequestClosed(f"No request {action.request_id!r} is open.", action)
        who = name_of(closing.by)
        message = f"Too late: “{subject(closing.request)}” was closed by {who}."
        raise RequestClosed(message, action, by=closing.by)


def _change(request_id: str, question_id: str, answer: Answer | None = None) -> InputAnswerChanged:
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)
