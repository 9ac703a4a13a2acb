"""The mirrors of the two kinds of channels: the root, and sessions with their questions."""

from functools import partial
from typing import Any, NamedTuple, get_args

import msgspec

from session_server.client.echoes import Fate, answer_in, bare, fate_in
from session_server.client.errors import NotUnderstood, Rejected, RequestClosed
from session_server.client.mirror import Mirror, Pending, Verdict
from session_server.reducers.batches import kept_answer
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
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    InputRequest,
    Skipped,
    Submitted,
)
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.codec import decode_root_state, decode_session_state
from session_server.schemas.errors import DecodingError
from session_server.schemas.principals import (
    SHARE_PREFIX,
    Author,
    Principal,
    Provenance,
    Role,
)
from session_server.schemas.record import Outcome, PrivateState, SessionRecord
from session_server.schemas.wire import Uri

CHANGED_MEANWHILE = "This answer was changed elsewhere while you were offline; yours was not sent."
REPLACED_MEANWHILE = (
    "This answer was changed elsewhere while you were offline. Yours may have been saved before"
    " that; it was not sent again."
)
CLOSINGS = 64
"""How many closed questions a mirror remembers, in order to say who closed them."""


class Closing(NamedTuple):
    """A question that is no longer open, and the action that closed it."""

    request: InputRequest
    envelope: ActionEnvelope

    @property
    def by(self) -> Author | None:
        return None if self.envelope.meta is None else self.envelope.meta.by


def _place(action: InputAnswerChanged) -> tuple[str, str]:
    return action.request_id, action.question_id


def _reduce_session(state: SessionState, action: Any, at: int) -> SessionState:
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


def _reduce_root(state: RootState, action: Any, _at: int) -> RootState:
    return reduce_root(state, action) if isinstance(action, get_args(RootAction)) else state


class RootMirror(Mirror[RootState]):
    def __init__(self, client_id: str, state: RootState, position: int) -> None:
        super().__init__(ROOT_CHANNEL, client_id, _reduce_root, state, position)


class SessionMirror(Mirror[SessionState]):
    """Remembers who closed which question, so that a late answer can be told."""

    def __init__(self, channel: Uri, client_id: str, state: SessionState, position: int) -> None:
        super().__init__(channel, client_id, _reduce_session, state, position)
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
        return _reduce_session(state, action, pending.at)

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

        Without a replay there is no envelope to see it in. What is left is what the host says, and
        it says it with the rule that we ask here as well: what would it say if it had been us?
        """
        request = self._completing.get(pending.client_seq)
        if not pending.is_repeated or self.author is None or request is None:
            return False
        is_one_of_many = self.author.name is None and self.author.id.startswith(SHARE_PREFIX)
        if action.request_id in self.closings or is_one_of_many:
            return False  # guests without a name are all told of in the same words
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
        """What the host would say to this completion, if this had been the end of the request."""
        record = SessionRecord(public=self.confirmed, private=PrivateState(outcomes=(outcome,)))
        ourselves = Principal(id="ourselves", role=Role.OWNER)
        refusal = input_completed(ourselves, record, action)
        return None if refusal is None else refusal.message

    def _fate(self, state: SessionState, action: Action) -> Fate:
        return fate_in(state, action)


def mirror_of(client_id: str, snapshot: Snapshot) -> Mirror[Any]:
    state = state_of(snapshot)
    if isinstance(state, RootState):
        return RootMirror(client_id, state, snapshot.from_seq)
    return SessionMirror(snapshot.resource, client_id, state, snapshot.from_seq)


def state_of(snapshot: Snapshot) -> RootState | SessionState:
    raw = bytes(snapshot.state)
    try:
        if snapshot.resource == ROOT_CHANNEL:
            return decode_root_state(raw)
        return decode_session_state(raw)
    except DecodingError as error:
        raise NotUnderstood(f"The state of {snapshot.resource} is not AHP: {error}") from error
