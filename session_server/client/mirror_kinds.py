"""The mirrors of the root and of sessions with their questions.

The first two classes are for AHP 0.3.0. Those for 0.9 and 1.x differ in what they keep and reduce:
a session's is there complete only with a chat of the session, which has a channel of its own.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar, get_args

import msgspec

from session_server.client.conversations import (
    Conversation,
    ShownRoot,
    after,
    conversation,
    root_after,
    shown_root,
)
from session_server.client.echoes import Delivery, answer_in, bare, delivery_in, is_same_question
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
from session_server.schemas.ahp.commands import Snapshot
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

OURSELVES = Principal(id="ourselves", role=Role.OWNER)


class Closing(NamedTuple):
    """A question that is no longer open, and who closed it, where the host says so."""

    request: InputRequest
    by: Author | None


def predicted(state: SessionState, action: InputAnswerChanged) -> InputAnswerChanged:
    """What the host makes of it: a draft covers an answer, and clearing the draft restores it."""
    kept = kept_answer(state, action)
    if kept is None or isinstance(action.answer, Submitted | Skipped):
        return action
    covering = action.answer and msgspec.structs.replace(
        action.answer, meta=AnswerMeta(covers=kept)
    )
    return msgspec.structs.replace(action, answer=covering or kept)


class RootMirror(Mirror[RootState]):
    def _state_of(self, snapshots: Iterable[Snapshot]) -> RootState:
        (snapshot,) = snapshots
        return _decoded(decode_root_state, snapshot)

    def _reduce(self, state: RootState, event: Event, at: int) -> RootState:  # noqa: ARG002
        action = event.action
        return reduce_root(state, action) if isinstance(action, get_args(RootAction)) else state


class SessionMirror(Mirror[SessionState]):
    """Remembers who closed which question, to explain why a late answer is refused."""

    def __init__(self, client_id: str, snapshot: Snapshot) -> None:
        super().__init__(client_id, snapshot)
        self.closings: dict[str, Closing] = {}
        self.author: Author | None = None

    def dispatch(self, pending: Pending) -> None:
        if isinstance(pending.action, InputAnswerChanged):
            pending.based_on = self._possible_answers(pending.action)
        if isinstance(pending.action, InputCompleted):
            pending.completing = open_request(self.confirmed, pending.action.request_id)
        super().dispatch(pending)

    def _predicted(self, state: SessionState, pending: Pending) -> SessionState:
        action = pending.action
        if isinstance(action, InputAnswerChanged):
            action = predicted(state, action)
        return self._reduce(state, Event(pending.channel, action), pending.at)

    def _state_of(self, snapshots: Iterable[Snapshot]) -> SessionState:
        (snapshot,) = snapshots
        return _decoded(decode_session_state, snapshot)

    def _reduce(self, state: SessionState, event: Event, at: int) -> SessionState:
        action = event.action
        return reduce_session(state, action, at) if type(action) in TRANSITIONS else state

    def _possible_answers(self, action: InputAnswerChanged) -> tuple[Answer | None, ...]:
        """What is confirmed now, and what our own unconfirmed changes may make of it."""
        confirmed = answer_in(self.confirmed, action)
        own = (
            pending.action.answer
            for pending in self.pending
            if isinstance(pending.action, InputAnswerChanged)
            and is_same_question(pending.action, action)
        )
        return tuple(bare(answer) for answer in (confirmed, decided(confirmed), *own))

    def _outdated(self) -> list[tuple[Pending, Rejected]]:
        found: list[tuple[Pending, Rejected]] = []
        for pending in self.pending:
            action = pending.action
            if not isinstance(action, InputAnswerChanged):
                continue
            now = bare(answer_in(self.confirmed, action))
            is_open = open_request(self.confirmed, action.request_id) is not None
            if is_open and now not in (*pending.based_on, bare(action.answer)):
                was_sent = pending.is_sent or pending.is_repeated
                reason = REPLACED_MEANWHILE if was_sent else CHANGED_MEANWHILE
                found.append((pending, Rejected(reason, action, is_repeated=was_sent)))
        return found

    def _note(self, known: SessionState, envelope: ActionEnvelope) -> None:
        by = None if envelope.meta is None else envelope.meta.by
        for request in known.input_requests or ():
            if open_request(self.confirmed, request.id) is None:
                self.closings[request.id] = Closing(request, by)
        while len(self.closings) > CLOSINGS:
            del self.closings[next(iter(self.closings))]
        is_own = envelope.origin is not None and envelope.origin.client_id == self._client_id
        if is_own and envelope.meta is not None:
            self.author = by

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
        request = pending.completing
        if not pending.is_repeated or self.author is None or request is None:
            return False
        is_one_of_many = self.author.name is None and self.author.id.startswith(SHARE_PREFIX)
        if action.request_id in self.closings or is_one_of_many:
            return False  # guests without a name have the same text
        for via in (Provenance.PERSON, Provenance.POLICY):
            outcome = Outcome(
                request=request, response=action.response, by=self.author, via=via, at=pending.at
            )
            record = SessionRecord(public=self.confirmed, private=PrivateState(outcomes=(outcome,)))
            refusal = input_completed(OURSELVES, record, action)
            if refusal is not None and refusal.message == reason:
                return True
        return False

    def _delivery(self, state: SessionState, action: Action) -> Delivery:
        return delivery_in(state, action)


def _decoded(decode: Callable[[bytes], S], snapshot: Snapshot) -> S:
    try:
        return decode(bytes(snapshot.state))
    except DecodingError as error:
        raise NotUnderstood(f"The state of {snapshot.resource} is not AHP: {error}") from error


# AHP 0.9 and 1.x


def _document_of(snapshot: Snapshot) -> Extra:
    return _decoded(_decode_document, snapshot)


def _document(event: Event) -> Extra:
    if event.document is not None:
        return event.document
    return _decode_document(encode(event.action))


class ShownRootMirror(Mirror[ShownRoot]):
    def _state_of(self, snapshots: Iterable[Snapshot]) -> ShownRoot:
        (snapshot,) = snapshots
        return shown_root(_document_of(snapshot))

    def _reduce(self, state: ShownRoot, event: Event, at: int) -> ShownRoot:  # noqa: ARG002
        return root_after(state, _document(event))


class ConversationMirror(SessionMirror):
    """Follows the session's default chat, or the one that was asked for."""

    def __init__(self, client_id: str, snapshot: Snapshot, chat: Uri | None = None) -> None:
        super().__init__(client_id, snapshot)
        self._chat = chat

    @property
    def _conversation(self) -> Conversation:
        assert isinstance(self.confirmed, Conversation)
        return self.confirmed

    @property
    def chat(self) -> Uri | None:
        """The chat that is followed, or will be."""
        state = self._conversation
        followed = next((uri for uri in self.positions if uri != self.channel), None)
        first = state.chats[0].resource if state.chats else None
        return followed or self._chat or state.session.get("defaultChat") or first

    def lacking(self) -> Uri | None:
        return None if self.chat in self.positions else self.chat

    def snapshot(self, channel: Uri) -> Snapshot:
        """What is confirmed of a channel, for another mirror of it."""
        state = self._conversation
        document = state.session if channel == self.channel else state.chat
        position = self.positions[channel]
        return Snapshot(resource=channel, state=msgspec.Raw(encode(document)), from_seq=position)

    def resume(self, snapshots: Iterable[Snapshot]) -> None:
        """A chat that is not among them does not exist any more."""
        self.positions = {self.channel: self.positions[self.channel]}
        super().resume(snapshots)

    def _state_of(self, snapshots: Iterable[Snapshot]) -> SessionState:
        """Of the chat and the session, one may be left out: it is as it was."""
        documents = {snapshot.resource: _document_of(snapshot) for snapshot in snapshots}
        session = documents.pop(self.channel, None)
        if session is None:
            session = self._conversation.session
        kept = self._conversation.chat if len(self.positions) > 1 else None
        (chat,) = documents.values() or (kept,)
        return conversation(self.channel, session, chat)

    def _reduce(self, state: SessionState, event: Event, at: int) -> SessionState:  # noqa: ARG002
        assert isinstance(state, Conversation)
        return after(state, event.channel, _document(event))

    def _predicted(self, state: SessionState, pending: Pending) -> SessionState:
        """The expected result, or `None` if this state does not allow a prediction."""
        try:
            return super()._predicted(state, pending)
        except NotUnderstood:
            return state

    def _settles(self, envelope: ActionEnvelope, pending: Pending) -> bool:
        """Hosts may change what they echo, but never whose it is."""
        origin = ActionOrigin(client_id=self._client_id, client_seq=pending.client_seq)
        return envelope.origin == origin
