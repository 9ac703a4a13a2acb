"""Rules of turns, their parts, tool calls, and the messages that wait for a turn."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import (
    Delta,
    PendingKind,
    PendingMessageRemoved,
    PendingMessageSet,
    SessionAction,
    ToolCallComplete,
    ToolCallConfirmed,
    ToolCallContentChanged,
    ToolCallDelta,
    ToolCallReady,
    ToolCallResultConfirmed,
    ToolCallStart,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from session_server.schemas.ahp.questions import InputRequest, RequestMeta
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.ahp.tool_calls import (
    CancellationReason,
    ClientContributor,
    Completed,
    ConfirmationOption,
    ConfirmationOptionKind,
    ConfirmationReason,
    PendingConfirmation,
    PendingResultConfirmation,
    Running,
    Streaming,
    ToolCall,
    ToolResult,
)
from session_server.schemas.ahp.turn_messages import Message, MessageOrigin, PendingMessage
from session_server.schemas.ahp.turns import ActiveTurn, ToolCallPart, Turn, TurnState
from session_server.schemas.errors import RefusalCode
from session_server.schemas.limits import ID_CHARS, QUEUED_BYTES, QUEUED_MESSAGES
from session_server.schemas.principals import Principal
from session_server.schemas.record import CallStarted, SessionRecord
from session_server.schemas.wire import ErrorInfo
from tests.reducers.call_records import call
from tests.reducers.form_actions import start, verdict
from tests.sessions import (
    AGENT,
    OWNER,
    asked_by,
    asking,
    fold,
    in_turn,
    refused,
    session,
    user_message,
)

OLD_TURN = Turn(id="old", message=user_message(), response_parts=(), state=TurnState.COMPLETE)


@pytest.mark.proves("ahp.rules.turn-active", "design.names.people")
@pytest.mark.parametrize(
    ("record", "principal", "action", "code"),
    [
        (session(), OWNER, start(), None),
        (session(lifecycle=Lifecycle.CREATING), OWNER, start(), None),
        (in_turn(), OWNER, start(), RefusalCode.TURN_ACTIVE),
        (session(provider="people"), OWNER, start(), RefusalCode.PASSIVE_SESSION),
        (session(provider="people"), AGENT, start(), None),
        (session(), OWNER, start(kind="agent"), RefusalCode.NOT_A_USER_MESSAGE),
        (session(), AGENT, start(kind="systemNotification"), None),
        (session(turns=(OLD_TURN,)), OWNER, start("old"), RefusalCode.DUPLICATE),
        (session(), OWNER, start("x" * ID_CHARS), None),
        (session(), OWNER, start("x" * (ID_CHARS + 1)), RefusalCode.LIMIT),
        (
            session(lifecycle=Lifecycle.CREATION_FAILED),
            OWNER,
            start(),
            RefusalCode.WRONG_STATE,
        ),
    ],
)
def test_starting_a_turn(
    record: SessionRecord, principal: Principal, action: TurnStarted, code: RefusalCode | None
) -> None:
    assert verdict(principal, record, action) == code


@pytest.mark.proves("ahp.rules.turn-none")
def test_only_the_active_turn_can_be_cancelled_or_grow() -> None:
    actions: tuple[SessionAction, ...] = (
        TurnCancelled(turn_id="t"),
        TurnComplete(turn_id="t"),
        Delta(turn_id="t", part_id="p", content="x"),
    )
    for action in actions:
        assert judge(AGENT, in_turn(), action) is None
        assert refused(session(), AGENT, action).code is RefusalCode.NO_TURN
        other = msgspec.structs.replace(action, turn_id="u")
        assert refused(in_turn(), AGENT, other).code is RefusalCode.NO_TURN


@pytest.mark.proves("design.requests.asker")
def test_an_agent_does_not_end_a_turn_in_which_somebody_else_asks() -> None:
    error = ErrorInfo(error_type="x", message="y")
    endings = (TurnCancelled(turn_id="t"), TurnFailed(turn_id="t", error=error))
    mine = asked_by(AGENT, InputRequest(id="mine"))
    unknown = InputRequest(id="from before askers were kept")
    theirs = asked_by(OWNER, InputRequest(id="theirs"))
    for action in endings:
        assert judge(AGENT, asking(mine, unknown), action) is None
        refusal = refused(asking(mine, theirs), AGENT, action)
        assert refusal.code is RefusalCode.NOT_YOURS
    assert judge(OWNER, asking(mine, theirs), endings[0]) is None
    assert judge(AGENT, asking(theirs), TurnComplete(turn_id="t")) is None


@pytest.mark.parametrize(("by", "code"), [(AGENT, None), (OWNER, RefusalCode.NOT_YOURS)])
def test_an_agent_ends_turns_with_calls_of_its_own_only(
    by: Principal, code: RefusalCode | None
) -> None:
    asked = asking(InputRequest(id="call:c/1/k", meta=RequestMeta(call="c")))
    record = fold(asked, CallStarted(call=call(by=by.author)))
    assert verdict(AGENT, record, TurnCancelled(turn_id="t")) == code


def test_history_is_cut_at_a_turn_that_exists() -> None:
    record = session(turns=(OLD_TURN,))
    assert judge(OWNER, record, Truncated()) is None
    assert judge(OWNER, record, Truncated(turn_id="old")) is None
    assert refused(record, OWNER, Truncated(turn_id="never")).code is RefusalCode.NO_TURN


# Messages that wait

WAITING = PendingMessage(id="m", message=user_message())


def waits(kind: PendingKind, message_id: str = "m", origin: str = "user") -> PendingMessageSet:
    message = Message(text="Later", origin=MessageOrigin(kind=origin))
    return PendingMessageSet(kind=kind, id=message_id, message=message)


def test_messages_can_wait_up_to_a_number() -> None:
    full = tuple(PendingMessage(id=str(n), message=user_message()) for n in range(QUEUED_MESSAGES))
    queued = waits(PendingKind.QUEUED)
    assert judge(OWNER, in_turn(queued_messages=full[1:]), queued) is None
    assert refused(in_turn(queued_messages=full), OWNER, queued).code is RefusalCode.LIMIT
    assert judge(OWNER, in_turn(queued_messages=full), waits(PendingKind.QUEUED, "5")) is None
    assert judge(OWNER, in_turn(queued_messages=full), waits(PendingKind.STEERING)) is None


def test_messages_that_wait_are_bounded_in_bytes_together() -> None:
    half = Message(text="x" * (QUEUED_BYTES // 2), origin=MessageOrigin(kind="user"))
    queue = (PendingMessage(id="1", message=half),)
    more = PendingMessageSet(kind=PendingKind.QUEUED, id="2", message=half)
    refusal = refused(in_turn(queued_messages=queue), OWNER, more)
    assert (refusal.code, str(QUEUED_BYTES) in refusal.message) == (RefusalCode.LIMIT, True)
    replacing = msgspec.structs.replace(more, id="1")
    assert judge(OWNER, in_turn(queued_messages=queue), replacing) is None
    removing = PendingMessageRemoved(kind=PendingKind.QUEUED, id="1")
    assert judge(OWNER, in_turn(queued_messages=queue), removing) is None


@pytest.mark.parametrize(
    ("record", "principal", "action", "code"),
    [
        (
            in_turn(),
            OWNER,
            waits(PendingKind.QUEUED, origin="tool"),
            RefusalCode.NOT_A_USER_MESSAGE,
        ),
        (in_turn(), AGENT, waits(PendingKind.QUEUED, origin="tool"), None),
        (
            session(provider="people"),
            OWNER,
            waits(PendingKind.QUEUED),
            RefusalCode.PASSIVE_SESSION,
        ),
        (in_turn(), OWNER, waits(PendingKind.QUEUED, "x" * (ID_CHARS + 1)), RefusalCode.LIMIT),
    ],
)
def test_which_messages_may_wait(
    record: SessionRecord,
    principal: Principal,
    action: PendingMessageSet,
    code: RefusalCode | None,
) -> None:
    assert verdict(principal, record, action) == code


@pytest.mark.proves("ahp.rules.pending-none")
def test_only_a_waiting_message_can_be_removed() -> None:
    steering = PendingMessageRemoved(kind=PendingKind.STEERING, id="m")
    queued = PendingMessageRemoved(kind=PendingKind.QUEUED, id="m")
    assert judge(OWNER, in_turn(steering_message=WAITING), steering) is None
    assert judge(OWNER, in_turn(queued_messages=(WAITING,)), queued) is None
    assert refused(in_turn(steering_message=WAITING), OWNER, queued).code is RefusalCode.NO_MESSAGE
    assert refused(in_turn(queued_messages=(WAITING,)), OWNER, steering).code is (
        RefusalCode.NO_MESSAGE
    )


# Tool calls

APPROVE = ConfirmationOption(id="yes", label="Run", kind=ConfirmationOptionKind.APPROVE)
DENY = ConfirmationOption(id="no", label="Don't", kind=ConfirmationOptionKind.DENY)
CALL: dict[str, Any] = {"tool_call_id": "c", "tool_name": "rm", "display_name": "Remove"}
DONE: dict[str, Any] = {
    "invocation_message": "Removing",
    "confirmed": ConfirmationReason.NOT_NEEDED,
    "success": True,
    "past_tense_message": "Removed",
}
STATES: dict[type, ToolCall] = {
    Streaming: Streaming(**CALL),
    PendingConfirmation: PendingConfirmation(
        **CALL, invocation_message="Remove?", options=(APPROVE, DENY), editable=True
    ),
    Running: Running(
        **CALL, invocation_message="Removing", confirmed=ConfirmationReason.NOT_NEEDED
    ),
    PendingResultConfirmation: PendingResultConfirmation(**CALL, **DONE),
    Completed: Completed(**CALL, **DONE),
}


def calling(call: ToolCall | None) -> SessionRecord:
    parts = () if call is None else (ToolCallPart(tool_call=call),)
    turn = ActiveTurn(id="t", message=user_message(), response_parts=parts)
    return in_turn(active_turn=turn)


ON_CALL: dict[str, Any] = {"turn_id": "t", "tool_call_id": "c"}
RESULT = ToolResult(success=True, past_tense_message="Removed")
APPROVAL = ToolCallConfirmed(**ON_CALL, approved=True, confirmed=ConfirmationReason.USER_ACTION)
DENIAL = ToolCallConfirmed(**ON_CALL, approved=False, reason=CancellationReason.DENIED)


@pytest.mark.proves("ahp.rules.tool-confirmed", "ahp.rules.tool-result-confirmed")
@pytest.mark.parametrize(
    ("action", "states"),
    [
        (ToolCallDelta(**ON_CALL, content="x"), {Streaming}),
        (ToolCallReady(**ON_CALL, invocation_message="x"), {Streaming, Running}),
        (APPROVAL, {PendingConfirmation}),
        (DENIAL, {PendingConfirmation}),
        (ToolCallResultConfirmed(**ON_CALL, approved=True), {PendingResultConfirmation}),
        (ToolCallComplete(**ON_CALL, result=RESULT), {Running, PendingConfirmation}),
        (ToolCallContentChanged(**ON_CALL, content=()), {Running}),
    ],
)
def test_a_tool_call_must_be_in_the_right_state(action: SessionAction, states: set[type]) -> None:
    confirms = isinstance(action, ToolCallConfirmed | ToolCallResultConfirmed)
    who = OWNER if confirms else AGENT
    for state, tool_call in STATES.items():
        expected = None if state in states else RefusalCode.WRONG_STATE
        assert verdict(who, calling(tool_call), action) is expected
    assert refused(calling(None), who, action).code is RefusalCode.WRONG_STATE
    assert refused(session(), who, action).code is RefusalCode.WRONG_STATE
    other = Streaming(tool_call_id="other", tool_name="x", display_name="X")
    assert refused(calling(other), who, action).message.startswith("That tool call ")


def test_a_tool_call_starts_once_and_in_its_turn() -> None:
    action = ToolCallStart(**ON_CALL, tool_name="rm", display_name="Remove")
    assert judge(AGENT, calling(None), action) is None
    assert refused(calling(STATES[Streaming]), AGENT, action).code is RefusalCode.DUPLICATE
    assert refused(session(), AGENT, action).code is RefusalCode.NO_TURN


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"selected_option_id": "yes"}, None),
        ({"edited_tool_input": "less"}, None),
        ({"selected_option_id": "no"}, RefusalCode.NO_OPTION),
        ({"selected_option_id": "maybe"}, RefusalCode.NO_OPTION),
        ({"confirmed": None}, RefusalCode.NO_VALUE),
        ({"approved": False, "reason": CancellationReason.SKIPPED}, None),
        ({"approved": False}, RefusalCode.NO_VALUE),
        ({"approved": False, "reason": CancellationReason.RESULT_DENIED}, RefusalCode.NO_VALUE),
    ],
)
def test_a_confirmation_must_make_sense(changes: dict[str, Any], code: RefusalCode | None) -> None:
    action = msgspec.structs.replace(APPROVAL, **changes)
    assert verdict(OWNER, calling(STATES[PendingConfirmation]), action) == code


def test_input_that_is_not_editable_stays() -> None:
    call = PendingConfirmation(**CALL, invocation_message="Remove?")
    action = msgspec.structs.replace(APPROVAL, edited_tool_input="less")
    assert refused(calling(call), OWNER, action).code is RefusalCode.NOT_EDITABLE
    choice = msgspec.structs.replace(APPROVAL, selected_option_id="yes")
    assert refused(calling(call), OWNER, choice).code is RefusalCode.NO_OPTION


@pytest.mark.proves("ahp.rules.tool-owner")
@pytest.mark.parametrize(
    "action",
    [ToolCallComplete(**ON_CALL, result=RESULT), ToolCallContentChanged(**ON_CALL, content=())],
)
def test_a_client_reports_only_on_its_own_tools(action: SessionAction) -> None:
    running = STATES[Running]
    mine = msgspec.structs.replace(running, contributor=ClientContributor(client_id="laptop"))
    theirs = msgspec.structs.replace(running, contributor=ClientContributor(client_id="tablet"))
    assert judge(OWNER, calling(mine), action) is None
    assert refused(calling(theirs), OWNER, action).code is RefusalCode.NOT_YOURS
    assert refused(calling(running), OWNER, action).code is RefusalCode.NOT_YOURS
    assert refused(calling(theirs), AGENT, action).code is RefusalCode.NOT_YOURS
    assert judge(AGENT, calling(running), action) is None
