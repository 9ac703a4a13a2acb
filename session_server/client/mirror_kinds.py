"""The mirrors of the root and of sessions with their questions.

The first two classes are for AHP 0.3.0. Those for 0.9 and 1.x differ in what they keep and reduce:
a session's is there complete only with a chat of the session, which has a channel of its own.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from session_server.client.conversations import (
    Conversation,
    ShownRoot,
    after,
    conversation,
    root_after,
    shown_root,
)
from session_server.client.echoes import Fate, answer_in, bare, fate_in
from session_server.client.errors import NotUnderstood, Rejected, RequestClosed
from session_server.client.mirror import Event, Mirror, Pending, Verdict
from session_server.reducers.forms.kept_answers import kept_answer
from session_server.reducers.forms.review import decided
from session_server.reducers.rules.input_rules import input_completed
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.session import TRANSITIONS, reduce_root, reduce_session
from session_server.schemas.ahp.actions import (
    Action,
    InputAnswerChanged,
    InputCompleted,
    RootAction,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL, Snapshot
from session_server.schemas.ahp.envelopes import ActionEnvelope, ActionOrigin
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    InputRequest,
    Skipped,
    Submitted,
)
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.codec import Decoder, decode_root_state, decode_session_state, encode
from session_server.schemas.errors import DecodingError
from session_server.schemas.principals import (
    SHARE_PREFIX,
    Author,
    Principal,
    Provenance,
    Role,
)
from session_server.schemas.record import Outcome, PrivateState, SessionRecord
from session_server.schemas.wire import Extra, Uri

S = TypeVar("S")

_decode_document: Decoder[Extra] = Decoder(Extra)

CHANGED_MEANWHILE = "This answer was changed elsewhere while you were offline; yours was not sent."
REPLACED_MEANWHILE = (
    "This answer was changed elsewhere while you were offline. Yours may have been saved before"
    " that; it was not sent again."
)
CLOSINGS = 64
"""How many closed questions a mirror remembers, to report who closed them."""


class Closing(NamedTuple):
    """A question that is no longer open, and the action that closed it."""

    request: InputRequest
    envelope: ActionEnvelope

    @property
    def by(self) -> Author | None:
        return None if self.envelope.meta is None else self.envelope.meta.by


def _place(action: InputAnswerChanged) -> tuple[str, str]:
    return action.request_id, action.question_id


def _reduce_session(state: SessionState, event: Event, at: int) -> SessionState:
    action = event.action
    return reduce_session(state, action, at) if type(action) in TRANSITIONS else state


def foreseen(state: SessionState, action: InputAnswerChanged) -> InputAnswerChanged:
    """What the host makes of it: a draft covers an answer, and clearing the draft restores it."""
    kept = kept_answer(state, action)
    if kept is None or isinstance(action.answer, Submitted | Skipped):
        return action
    covering = action.answer and msgspec.structs.replace(
        action.answer, meta=AnswerMeta(covers=kept)
    )
    return msgspec.structs.replace(action, answer=covering or kept)


def _reduce_root(state: RootState, event: Event, _at: int) -> RootState:
    action = event.action
    return reduce_root(state, action) if isinstance(action, get_args(RootAction)) else state


class RootMirror(Mirror[RootState]):
    def __init__(
        self,
        client_id: str,
        state: RootState,
        position: int,
        reduce: Callable[[Any, Event, int], RootState] = _reduce_root,
    ) -> None:
        super().__init__(ROOT_CHANNEL, client_id, reduce, state, position)

    def _state_of(self, snapshots: Iterable[Snapshot]) -> RootState:
        (snapshot,) = snapshots
        return root_of(snapshot)


class SessionMirror(Mirror[SessionState]):
    """Remembers who closed which question, to explain why a late answer is refused."""

    def __init__(
        self,
        channel: Uri,
        client_id: str,
        state: SessionState,
        position: int,
        reduce: Callable[[Any, Event, int], SessionState] = _reduce_session,
    ) -> None:
        super().__init__(channel, client_id, reduce, state, position)
        self.closings: dict[str, Closing] = {}
        self.author: Author | None = None
        self._completing: dict[int, InputRequest] = {}
        self._based_on: dict[int, list[Answer | None]] = {}
        """What the host may have when an answer of ours arrives, by the number of our action."""

    def dispatch(self, pending: Pending) -> None:
        if isinstance(pending.action, InputAnswerChanged):
            self._based_on[pending.client_seq] = self._possible_answers(pending.action)
            pending.waiters.append(partial(self._answered, pending.client_seq))
        if isinstance(pending.action, InputCompleted):
            request = open_request(self.confirmed, pending.action.request_id)
            if request is not None:
                self._completing[pending.client_seq] = request
                pending.waiters.append(partial(self._completed, pending.client_seq))
        super().dispatch(pending)

    def _foreseen(self, state: SessionState, pending: Pending) -> SessionState:
        action = pending.action
        if isinstance(action, InputAnswerChanged):
            action = foreseen(state, action)
        return self._reduce(state, Event(pending.channel, action), pending.at)

    def _state_of(self, snapshots: Iterable[Snapshot]) -> SessionState:
        (snapshot,) = snapshots
        return session_of(snapshot)

    def _completed(self, client_seq: int, _: Verdict) -> None:
        self._completing.pop(client_seq, None)

    def _answered(self, client_seq: int, _: Verdict) -> None:
        self._based_on.pop(client_seq, None)

    def _possible_answers(self, action: InputAnswerChanged) -> list[Answer | None]:
        """What is confirmed now, and what our own unconfirmed changes may make of it."""
        confirmed = answer_in(self.confirmed, action)
        own = [
            pending.action.answer
            for pending in self.pending
            if isinstance(pending.action, InputAnswerChanged)
            and _place(pending.action) == _place(action)
        ]
        return [bare(answer) for answer in (confirmed, decided(confirmed), *own)]

    def _outdated(self) -> list[tuple[Pending, Rejected]]:
        found: list[tuple[Pending, Rejected]] = []
        for pending in self.pending:
            action, expected = pending.action, self._based_on.get(pending.client_seq)
            if not isinstance(action, InputAnswerChanged) or expected is None:
                continue
            now = bare(answer_in(self.confirmed, action))
            is_open = open_request(self.confirmed, action.request_id) is not None
            if is_open and now not in (*expected, bare(action.answer)):
                was_sent = pending.is_sent or pending.is_repeated
                reason = REPLACED_MEANWHILE if was_sent else CHANGED_MEANWHILE
                found.append((pending, Rejected(reason, action, is_repeated=was_sent)))
        return found

    def _note(self, known: SessionState, envelope: ActionEnvelope) -> None:
        for request in known.input_requests or ():
            if open_request(self.confirmed, request.id) is None:
                self.closings[request.id] = Closing(request, envelope)
        while len(self.closings) > CLOSINGS:
            del self.closings[next(iter(self.closings))]
        is_own = envelope.origin is not None and envelope.origin.client_id == self._client_id
        if is_own and envelope.meta is not None:
            self.author = envelope.meta.by

    def _refusal(self, pending: Pending, reason: str) -> Verdict:
        action = pending.action
        if not isinstance(action, InputAnswerChanged | InputCompleted):
            return super()._refusal(pending, reason)
        if isinstance(action, InputCompleted) and self._was_ours(pending, action, reason):
            return self._as_seen(pending)
        if open_request(self.confirmed, action.request_id) is not None:
            return super()._refusal(pending, reason)
        closing = self.closings.get(action.request_id)
        by = None if closing is None else closing.by
        return RequestClosed(reason, action, by=by, is_repeated=pending.is_repeated)

    def _was_ours(self, pending: Pending, action: InputCompleted, reason: str) -> bool:
        """Whether a repeated completion was refused only because its first copy had counted.

        Without a replay its envelope is missed. But the host's reason is known: if the same rule
        gives that reason here, after our own completion, then it was ours.
        """
        request = self._completing.get(pending.client_seq)
        if not pending.is_repeated or self.author is None or request is None:
            return False
        is_one_of_many = self.author.name is None and self.author.id.startswith(SHARE_PREFIX)
        if action.request_id in self.closings or is_one_of_many:
            return False  # guests without a name have the same text
        outcome = Outcome(
            request=request,
            response=action.response,
            by=self.author,
            via=Provenance.PERSON,
            at=pending.at,
        )
        return any(
            self._refusal_after(msgspec.structs.replace(outcome, via=via), action) == reason
            for via in (Provenance.PERSON, Provenance.POLICY)
        )

    def _refusal_after(self, outcome: Outcome, action: InputCompleted) -> str | None:
        """The host's refusal of this completion, if the request had ended with it."""
        record = SessionRecord(public=self.confirmed, private=PrivateState(outcomes=(outcome,)))
        ourselves = Principal(id="ourselves", role=Role.OWNER)
        refusal = input_completed(ourselves, record, action)
        return None if refusal is None else refusal.message

    def _fate(self, state: SessionState, action: Action) -> Fate:
        return fate_in(state, action)


def root_of(snapshot: Snapshot) -> RootState:
    return _decoded(decode_root_state, snapshot)


def session_of(snapshot: Snapshot) -> SessionState:
    return _decoded(decode_session_state, snapshot)


def _decoded(decode: Callable[[bytes], S], snapshot: Snapshot) -> S:
    try:
        return decode(bytes(snapshot.state))
    except DecodingError as error:
        raise NotUnderstood(f"The state of {snapshot.resource} is not AHP: {error}") from error


# AHP 0.9 and 1.x


def document_of(snapshot: Snapshot) -> Extra:
    return _decoded(_decode_document, snapshot)


def _document(event: Event) -> Extra:
    if event.document is not None:
        return event.document
    return _decode_document(encode(event.action))


def _reduce_shown_root(state: ShownRoot, event: Event, _at: int) -> ShownRoot:
    return root_after(state, _document(event))


def _reduce_conversation(state: Conversation, event: Event, _at: int) -> Conversation:
    return after(state, event.channel, _document(event))


class ShownRootMirror(RootMirror):
    def __init__(self, client_id: str, snapshot: Snapshot) -> None:
        state = shown_root(document_of(snapshot))
        super().__init__(client_id, state, snapshot.from_seq, _reduce_shown_root)

    def _state_of(self, snapshots: Iterable[Snapshot]) -> RootState:
        (snapshot,) = snapshots
        return shown_root(document_of(snapshot))


class ConversationMirror(SessionMirror):
    """Follows the session's default chat, or the one that was asked for."""

    def __init__(self, client_id: str, snapshot: Snapshot, chat: Uri | None = None) -> None:
        uri = snapshot.resource
        state = conversation(uri, document_of(snapshot), None)
        super().__init__(uri, client_id, state, snapshot.from_seq, _reduce_conversation)
        self._chat = chat

    @property
    def chat(self) -> Uri | None:
        """The chat that is followed, or will be."""
        state = self.confirmed
        assert isinstance(state, Conversation)
        followed = next((uri for uri in self.positions if uri != self.channel), None)
        first = state.chats[0].resource if state.chats else None
        return followed or self._chat or state.session.get("defaultChat") or first

    def lacking(self) -> Uri | None:
        return None if self.chat in self.positions else self.chat

    def snapshot(self, channel: Uri) -> Snapshot:
        """What is confirmed of a channel, for another mirror of it."""
        state = self.confirmed
        assert isinstance(state, Conversation)
        document = state.session if channel == self.channel else state.chat
        position = self.positions[channel]
        return Snapshot(resource=channel, state=msgspec.Raw(encode(document)), from_seq=position)

    def resume(self, snapshots: Iterable[Snapshot]) -> None:
        """A chat that is not among them does not exist any more."""
        self.positions = {self.channel: self.positions[self.channel]}
        super().resume(snapshots)

    def _state_of(self, snapshots: Iterable[Snapshot]) -> SessionState:
        """Of the chat and the session, one may be left out: it is as it was."""
        documents = {snapshot.resource: document_of(snapshot) for snapshot in snapshots}
        state = self.confirmed
        assert isinstance(state, Conversation)
        session = documents.pop(self.channel, state.session)
        kept = state.chat if len(self.positions) > 1 else None
        (chat,) = documents.values() or (kept,)
        return conversation(self.channel, session, chat)

    def _foreseen(self, state: SessionState, pending: Pending) -> SessionState:
        """The expected result, or `None` if this state does not allow a prediction."""
        try:
            return super()._foreseen(state, pending)
        except NotUnderstood:
            return state

    def _settles(self, envelope: ActionEnvelope, pending: Pending) -> bool:
        """Hosts may change what they echo, but never whose it is."""
        origin = ActionOrigin(client_id=self._client_id, client_seq=pending.client_seq)
        return envelope.origin == origin
