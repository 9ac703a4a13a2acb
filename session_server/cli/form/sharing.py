"""A form and its session: what is written here is shared, and what others do arrives here."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from session_server.cli.form.fields import Field, Form
from session_server.client import Change, ClientError, Rejected, RequestClosed, Session
from session_server.reducers.forms.review import reviewed
from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted, TurnCancelled
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import (
    Answer,
    CompletionMeta,
    ResponseKind,
)
from session_server.schemas.ahp.session import SessionState

DRAFT_SECONDS = 0.15
"""Keys that come faster than this are shared together."""


TYPING_SECONDS = 3.0
"""How often typing is reported to others."""


class Ending(NamedTuple):
    """`response` is ours; without one, someone else closed it (`envelope`) or we left."""

    response: ResponseKind | None = None
    envelope: ActionEnvelope | None = None
    is_left: bool = False
    error: ClientError | None = None


class Sharing:
    """`on_change` asks to redraw the form, `on_end` is called once with how it ended."""

    def __init__(
        self,
        session: Session,
        form: Form,
        on_change: Callable[[], None],
        on_end: Callable[[Ending], None],
    ) -> None:
        self._session = session
        self._form = form
        self._on_change = on_change
        self._on_end = on_end
        self.is_over = False
        self._is_ending = False
        self._closed_by: ActionEnvelope | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._drafted: Field | None = None
        self._reported = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    # What is written here

    def changed(self, field: Field) -> None:
        """Shared a moment later, together with what follows."""
        if self._timer is not None and self._drafted is not field:
            self.flush()
        self.drop_draft()
        self._report_typing(field)
        self._drafted = field
        self._timer = asyncio.get_running_loop().call_later(DRAFT_SECONDS, self.flush)

    def flush(self) -> None:
        """Shares now what was to be shared in a moment."""
        if self._timer is None or self._drafted is None:
            return
        self.drop_draft()
        if not self._drafted.can_send:
            return
        try:
            self.dispatch(self._drafted, self._drafted.unsent_answer())
        except ValueError:
            return  # half a number is not a draft

    def _report_typing(self, field: Field) -> None:
        """Others see who is answering what; the host forgets it if it is not repeated."""
        now = asyncio.get_running_loop().time()
        if field is not self._drafted or now >= self._reported + TYPING_SECONDS:
            self._reported = now
            self._session.editing(self._form.request.id, field.question.id)

    def drop_draft(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def dispatch(self, field: Field, answer: Answer | None) -> None:
        action = InputAnswerChanged(
            request_id=self._form.request.id, question_id=field.question.id, answer=answer
        )

        async def share() -> None:
            try:
                envelope = await self._session.dispatch(action)
            except RequestClosed:
                field.failed()  # how it ended is seen by following the session
            except Rejected as error:
                field.refused(error.reason)
            except ClientError as error:
                field.failed()
                self._form.error = str(error)
            else:
                assert isinstance(envelope.action, InputAnswerChanged)
                field.confirmed(envelope.action.answer)
                self._look(self._session.state)  # someone else may have changed it since
            self._on_change()

        field.sent(answer)
        self._spawn(share())

    def end(self, response: ResponseKind, answers: dict[str, Answer] | None) -> None:
        """Accepts, declines or cancels, once; a refusal leads back into the form."""
        if self._is_ending:
            return
        self._is_ending = True
        self.drop_draft()
        request = self._form.request
        action = InputCompleted(
            request_id=request.id,
            response=response,
            answers=answers,
            meta=CompletionMeta(reviewed=reviewed(request, answers)),
        )

        async def complete() -> None:
            try:
                await self._session.dispatch(action)
            except RequestClosed:
                self.over(Ending(envelope=self._closed_by))  # someone else closed it first
            except ClientError as error:
                self._is_ending = False
                self._form.error = str(error)
                self._form.go_to(len(self._form.fields))
                self._on_change()
            else:
                self.over(Ending(response))

        self._spawn(complete())

    def over(self, ending: Ending) -> None:
        if not self.is_over:
            self.is_over = True
            self._on_end(ending)

    # What others do

    async def follow(self) -> None:
        try:
            async for change in self._session.changes():
                self._see(change)
        except ClientError as error:
            self.over(Ending(error=error))

    def _look(self, state: SessionState) -> bool:
        """Takes over the request as it is in this state; whether it is open there."""
        request = open_request(state, self._form.request.id)
        if request is not None:
            self._form.seen(request, open_request(self._session.confirmed, request.id))
        return request is not None

    def _see(self, change: Change[SessionState]) -> None:
        if self._look(change.after):
            self._on_change()
            return
        match change.envelope:
            case ActionEnvelope(
                action=InputCompleted(request_id=self._form.request.id) | TurnCancelled()
            ):
                self._closed_by = change.envelope
            case _:
                pass
        if not self._is_ending:
            self.over(Ending(envelope=self._closed_by))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
