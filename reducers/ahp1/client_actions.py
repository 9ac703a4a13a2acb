"""What clients of AHP 0.9 and 1.x dispatch, as actions of the record, or why it is refused.

The rules judge the result like any other action. This module only translates between the versions:
names, the channel that was meant, and answers in another form than their question's.
"""

from typing import TypeAlias, get_args

import msgspec

from session_server.reducers.ahp1.root import DEFAULT_MODEL
from session_server.reducers.batches import Batch, judged_batch
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.rules.judge import OTHER_CHANNEL
from session_server.reducers.state.client_entries import active_client, is_enabled
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    TextValue,
    Value,
)
from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.ahp1 import actions as sent
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import (
    ClientJoined,
    ClientLeft,
    MessageDrafted,
    RecordAction,
    SessionRecord,
)
from session_server.schemas.wire import reshaped

Translated: TypeAlias = tuple[RecordAction, ...]

OF_CHATS = frozenset[type](get_args(sent.ClientChatAction))
OF_SESSIONS = frozenset[type](get_args(sent.ClientSessionAction))


def own_kind(action: sent.ClientAction) -> type[RecordAction | ahp.RootConfigChanged]:
    """The type of the action that echoes this one to its sender, with the origin."""
    return OWN_KINDS[type(action)]


def plan(
    principal: Principal,
    record: SessionRecord,
    action: sent.ClientAction,
    stamp: Stamp,
    *,
    on_chat: bool,
    origin: ActionOrigin | None = None,
) -> Batch | Refusal:
    """The batch that the action becomes, or why it is refused."""
    actions = translated(record, action, on_chat=on_chat)
    if isinstance(actions, Refusal):
        return actions
    batch: list[RecordAction] = []
    for meant in actions:
        made = judged_batch(principal, record, meant, stamp, origin)
        if isinstance(made, Refusal):
            return made
        for entry in made:
            record = reduce_record(record, entry, stamp.at)
            batch.append(entry)
    return tuple(batch)


def translated(
    record: SessionRecord, action: sent.ClientAction, *, on_chat: bool
) -> Translated | Refusal:
    """The actions that a client means, on the session or on its chat."""
    # Some clients send the new title of a session to its chat.
    if not isinstance(action, ahp.TitleChanged) and type(action) not in (
        OF_CHATS if on_chat else OF_SESSIONS
    ):
        return OTHER_CHANNEL
    match action:
        case sent.StartTurn():
            return _turn_started(record, action)
        case sent.Truncate(turn_id=turn_id):
            return (ahp.Truncated(turn_id=None if turn_id is msgspec.UNSET else turn_id),)
        case sent.InputAnswerChanged():
            return _input_answer_changed(record, action)
        case sent.InputCompleted():
            return _input_completed(record, action)
        case sent.ActiveClientSet():
            return _active_client_set(record, action)
        case sent.ActiveClientRemoved():
            return _active_client_removed(record, action)
        case sent.CustomizationToggled():
            enabled = is_enabled(action.enablement)
            return (ahp.CustomizationToggled(id=action.id, enabled=enabled),)
        case _:
            return (reshaped(RENAMED[type(action)], action),)


RENAMED: dict[type, type[RecordAction]] = {
    sent.CancelTurn: ahp.TurnCancelled,
    sent.ToolCallConfirmed: ahp.ToolCallConfirmed,
    sent.ToolCallComplete: ahp.ToolCallComplete,
    sent.ToolCallResultConfirmed: ahp.ToolCallResultConfirmed,
    sent.ToolCallContentChanged: ahp.ToolCallContentChanged,
    sent.PendingMessageSet: ahp.PendingMessageSet,
    sent.PendingMessageRemoved: ahp.PendingMessageRemoved,
    sent.QueuedMessagesReordered: ahp.QueuedMessagesReordered,
    sent.DraftChanged: MessageDrafted,
    sent.ChatIsReadChanged: ahp.IsReadChanged,
    sent.ChatIsArchivedChanged: ahp.IsArchivedChanged,
    ahp.TitleChanged: ahp.TitleChanged,
    ahp.IsReadChanged: ahp.IsReadChanged,
    ahp.IsArchivedChanged: ahp.IsArchivedChanged,
    ahp.ConfigChanged: ahp.ConfigChanged,
}


OWN_KINDS: dict[type, type[RecordAction | ahp.RootConfigChanged]] = {
    **RENAMED,
    sent.StartTurn: ahp.TurnStarted,
    sent.Truncate: ahp.Truncated,
    sent.InputAnswerChanged: ahp.InputAnswerChanged,
    sent.InputCompleted: ahp.InputCompleted,
    sent.ActiveClientSet: ClientJoined,
    sent.ActiveClientRemoved: ClientLeft,
    sent.CustomizationToggled: ahp.CustomizationToggled,
    ahp.RootConfigChanged: ahp.RootConfigChanged,
}


# Turns


def _turn_started(record: SessionRecord, action: sent.StartTurn) -> Translated:
    """The message says which model and agent it is for; in a session they are set beforehand."""
    message, summary = action.message, record.public.summary
    started = ahp.TurnStarted(
        turn_id=action.turn_id,
        message=reshaped(Message, message),
        queued_message_id=action.queued_message_id,
    )
    chosen: list[RecordAction] = []
    if record.public.active_turn is None:  # otherwise the turn is refused, and nothing is chosen
        model = message.model
        if model is not None and model.id != DEFAULT_MODEL and model != summary.model:
            chosen.append(ahp.ModelChanged(model=model))
        if message.agent is not None and message.agent != summary.agent:
            chosen.append(ahp.AgentChanged(agent=message.agent))
    return (*chosen, started)


# Clients


def _active_client_set(record: SessionRecord, action: sent.ActiveClientSet) -> Translated:
    """Also the active client of 0.3.0, if there is no other."""
    current = record.public.active_client
    joined = ClientJoined(client=action.active_client)
    if current is not None and current.client_id != action.active_client.client_id:
        return (joined,)
    return (joined, ahp.ActiveClientChanged(active_client=active_client(action.active_client)))


def _active_client_removed(record: SessionRecord, action: sent.ActiveClientRemoved) -> Translated:
    current = record.public.active_client
    left = ClientLeft(client_id=action.client_id)
    if current is None or current.client_id != action.client_id:
        return (left,)
    return (left, ahp.ActiveClientChanged(active_client=None))


# Answers


def _input_answer_changed(
    record: SessionRecord, action: sent.InputAnswerChanged
) -> Translated | Refusal:
    changed = reshaped(ahp.InputAnswerChanged, action)
    request = open_request(record.public, action.request_id)
    if request is None or action.answer is None:
        return (changed,)
    answer = _converted(request, action.question_id, action.answer)
    if isinstance(answer, Refusal):
        return answer
    return (msgspec.structs.replace(changed, answer=answer),)


def _input_completed(record: SessionRecord, action: sent.InputCompleted) -> Translated | Refusal:
    completed = reshaped(ahp.InputCompleted, action)
    request = open_request(record.public, action.request_id)
    if request is None:
        return (completed,)
    answers: dict[str, Answer] = {}
    # Some clients invent an answer if a request has no questions.
    for question_id, answer in (action.answers or {}).items() if request.questions else ():
        converted = _converted(request, question_id, answer)
        if isinstance(converted, Refusal):
            return converted
        answers[question_id] = converted
    return (msgspec.structs.replace(completed, answers=answers or None),)


def _converted(request: InputRequest, question_id: str, answer: Answer) -> Answer | Refusal:
    """Converts a text to the kind of value that the question asks for."""
    question = next((q for q in request.questions or () if q.id == question_id), None)
    if question is None or isinstance(answer, Skipped) or not isinstance(answer.value, TextValue):
        return answer
    value = _value(question, answer.value)
    if value is None:
        wanted = "yes or no" if isinstance(question, BooleanQuestion) else "a number"
        return Refusal(
            code=RefusalCode.WRONG_KIND,
            message=f"{label(question)}: “{answer.value.value}” is not {wanted}.",
            request_id=request.id,
            question_id=question_id,
        )
    return msgspec.structs.replace(answer, value=value)


def _value(question: Question, text: TextValue) -> Value | None:
    """The value that the text represents, or `None`."""
    match question:
        case NumberQuestion() | IntegerQuestion():
            return _number(text.value)
        case BooleanQuestion():
            return BOOLEANS.get(text.value.strip().lower())
        case SingleSelectQuestion():
            return SelectedValue(value=text.value)
        case MultiSelectQuestion():
            return SelectedManyValue(value=(), freeform_values=(text.value,))
        case _:
            return text


BOOLEANS = {"true": BooleanValue(value=True), "false": BooleanValue(value=False)}


def _number(text: str) -> NumberValue | None:
    try:
        value: float = msgspec.json.decode(text.strip(), type=int | float)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None
    # Larger whole numbers could not be written as such.
    return NumberValue(value=value if -(2**63) <= value < 2**63 else float(value))
