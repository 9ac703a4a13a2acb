"""Rules of tool calls: the right state, the right client."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import (
    SessionAction,
    ToolCallComplete,
    ToolCallConfirmed,
    ToolCallContentChanged,
    ToolCallDelta,
    ToolCallReady,
    ToolCallResultConfirmed,
    ToolCallStart,
)
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
from session_server.schemas.ahp.turns import ActiveTurn, ToolCallPart
from session_server.schemas.errors import RefusalCode
from session_server.schemas.record import SessionRecord
from tests.sessions import (
    AGENT,
    OWNER,
    in_turn,
    refused,
    session,
    user_message,
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
    for state, call in STATES.items():
        refusal = judge(who, calling(call), action)
        assert (refusal is None) == (state in states)
        assert refusal is None or refusal.code is RefusalCode.WRONG_STATE
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
    refusal = judge(OWNER, calling(STATES[PendingConfirmation]), action)
    assert (refusal and refusal.code) == code


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
