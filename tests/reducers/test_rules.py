"""Every rule: what is refused, with which code, and what is allowed right beside it."""

from typing import Any, get_args

import msgspec
import pytest

from session_server.reducers.input_rules import provenance_of
from session_server.reducers.rules import RULES, judge, judge_root
from session_server.schemas.actions import (
    Action,
    ActiveClientChanged,
    ActiveClientToolsChanged,
    ActivityChanged,
    AgentChanged,
    ClientAction,
    ClientSessionAction,
    ConfigChanged,
    CustomizationToggled,
    Delta,
    HostSessionAction,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    IsReadChanged,
    ModelChanged,
    PendingKind,
    PendingMessageRemoved,
    PendingMessageSet,
    ResponsePartAdded,
    RootActiveSessionsChanged,
    RootConfigChanged,
    SessionAction,
    TitleChanged,
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
    TurnStarted,
)
from session_server.schemas.config import (
    ConfigPropertySchema,
    ConfigSchema,
    RootConfigState,
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigState,
)
from session_server.schemas.customizations import Plugin, UnknownCustomization
from session_server.schemas.limits import (
    ID_CHARS,
    OPEN_REQUESTS_PER_SESSION,
    OPTIONS_PER_QUESTION,
    QUESTIONS_PER_REQUEST,
    QUEUED_MESSAGES,
    TITLE_CHARS,
)
from session_server.schemas.messages import Message, MessageOrigin, PendingMessage
from session_server.schemas.principals import Principal, Provenance, Role
from session_server.schemas.questions import (
    BooleanQuestion,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    RequestMeta,
    ResponseKind,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.record import SessionRecord
from session_server.schemas.refusals import Refusal, RefusalCode
from session_server.schemas.root import RootState
from session_server.schemas.session import ActiveClient, Lifecycle, ModelSelection
from session_server.schemas.tool_calls import (
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
from session_server.schemas.turns import (
    ActiveTurn,
    MarkdownPart,
    SystemNotificationPart,
    ToolCallPart,
    Turn,
    TurnState,
)
from tests.sessions import (
    AGENT,
    OWNER,
    PEOPLE,
    PHONE,
    SESSION,
    WATCHER,
    accepted,
    asking,
    in_turn,
    refused,
    session,
    user_message,
)

ROLES = {role: next(p for p in PEOPLE if p.role is role) for role in Role}

ANSWERING = {InputAnswerChanged, InputCompleted, IsReadChanged}
NOT_FOR_AGENTS = {
    "Truncated",
    "ToolCallConfirmed",
    "ToolCallResultConfirmed",
    "InputAnswerChanged",
    "QueuedMessagesReordered",
    "ModelChanged",
    "AgentChanged",
    "IsArchivedChanged",
    "ConfigChanged",
    "ActiveClientChanged",
    "ActiveClientToolsChanged",
    "CustomizationToggled",
}


def example(kind: type[msgspec.Struct]) -> Any:
    """An action of this type whose validity does not matter: every field a placeholder."""
    placeholders: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.required:
            placeholders[field.name] = ()
    return kind(**placeholders)


@pytest.mark.proves(
    "design.roles.owner",
    "design.roles.agent",
    "design.roles.answerer",
    "design.roles.observer",
    "design.rules.authority-first",
)
@pytest.mark.parametrize("kind", [*get_args(ClientSessionAction), *get_args(HostSessionAction)])
def test_each_role_may_do_what_it_may_and_no_more(kind: type[msgspec.Struct]) -> None:
    """Placeholders are invalid in every way, so a refusal for the role came before all others."""
    is_client_action = kind in get_args(ClientSessionAction)
    allowed = {
        Role.OWNER: is_client_action,
        Role.AGENT: kind.__name__ not in NOT_FOR_AGENTS,
        Role.ANSWERER: kind in ANSWERING,
        Role.OBSERVER: False,
    }
    for role, principal in ROLES.items():
        if allowed[role]:
            continue
        refusal = judge(principal, session(), example(kind))
        assert refusal is not None
        assert refusal.code is RefusalCode.ROLE
        assert refusal.message.endswith(".")


@pytest.mark.proves("design.roles.owner", "design.roles.answerer", "design.roles.agent")
def test_roles_do_get_to_act() -> None:
    record = asking(InputRequest(id="r", questions=(TextQuestion(id="q", message="?"),)))
    draft = InputAnswerChanged(
        request_id="r", question_id="q", answer=Draft(value=TextValue(value="x"))
    )
    for principal in (OWNER, PHONE):
        assert judge(principal, record, draft) is None
    assert judge(OWNER, record, TitleChanged(title="New")) is None
    assert judge(AGENT, record, ActivityChanged(activity="Thinking")) is None


@pytest.mark.proves("design.roles.one-session")
def test_a_principal_of_another_session_is_refused() -> None:
    mine = msgspec.structs.replace(OWNER, sessions=(SESSION,))
    other = msgspec.structs.replace(OWNER, sessions=("ahp-session:/2",))
    action = TitleChanged(title="New")
    assert judge(mine, session(), action) is None
    assert refused(session(), other, action).code is RefusalCode.OTHER_SESSION
    refusal = judge_root(mine, RootState(agents=()), RootConfigChanged(config={}))
    assert refusal is not None
    assert refusal.code is RefusalCode.OTHER_SESSION


@pytest.mark.proves("ahp.rules.reason")
def test_every_refusal_has_a_code_and_a_sentence() -> None:
    refusal = refused(session(), OWNER, TurnCancelled(turn_id="t"))
    assert refusal == Refusal(code=RefusalCode.NO_TURN, message="That turn is not in progress.")


def test_a_rule_is_for_an_action_that_exists() -> None:
    assert set(RULES) <= set(get_args(Action))


# Turns


def start(turn_id: str = "new", kind: str = "user") -> TurnStarted:
    message = Message(text="Go", origin=MessageOrigin(kind=kind))
    return TurnStarted(turn_id=turn_id, message=message)


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
    refusal = judge(principal, record, action)
    assert (refusal and refusal.code) == code


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


def test_history_is_cut_at_a_turn_that_exists() -> None:
    record = session(turns=(OLD_TURN,))
    assert judge(OWNER, record, Truncated()) is None
    assert judge(OWNER, record, Truncated(turn_id="old")) is None
    assert refused(record, OWNER, Truncated(turn_id="never")).code is RefusalCode.NO_TURN


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


# Input requests

FORM = InputRequest(
    id="r",
    message="Deploy",
    questions=(
        TextQuestion(id="name", message="Name?", required=True, min=2),
        IntegerQuestion(id="size", message="Size?"),
    ),
)
SHORT = TextValue(value="x")
LONG = TextValue(value="xyz")


def change(answer: Any, question_id: str = "name", request_id: str = "r") -> InputAnswerChanged:
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)


@pytest.mark.proves(
    "ahp.rules.answer-no-request",
    "ahp.rules.answer-no-question",
    "ahp.rules.answer-no-value",
    "ahp.rules.answer-kind",
    "ahp.rules.answer-cleared",
    "ahp.rules.draft-lenient",
)
@pytest.mark.parametrize(
    ("action", "code"),
    [
        (change(Draft(value=SHORT)), None),
        (change(Submitted(value=LONG)), None),
        (change(Skipped()), None),
        (change(None), None),
        (change(None, question_id="size"), None),
        (change(Draft(value=SHORT), request_id="s"), RefusalCode.NO_REQUEST),
        (change(None, request_id="s"), RefusalCode.NO_REQUEST),
        (change(Draft(value=SHORT), question_id="colour"), RefusalCode.NO_QUESTION),
        (change(None, question_id="colour"), RefusalCode.NO_QUESTION),
        (change(Draft()), RefusalCode.NO_VALUE),
        (change(Submitted()), RefusalCode.NO_VALUE),
        (change(Draft(value=NumberValue(value=1))), RefusalCode.WRONG_KIND),
        (change(Submitted(value=SHORT)), RefusalCode.TOO_SHORT),
    ],
)
def test_changing_an_answer(action: InputAnswerChanged, code: RefusalCode | None) -> None:
    refusal = judge(PHONE, asking(FORM), action)
    assert (refusal and refusal.code) == code
    if refusal is not None:
        assert refusal.request_id == action.request_id
        assert refusal.question_id in (action.question_id, None)


def complete(response: str = "accept", **answers: Any) -> InputCompleted:
    return InputCompleted(request_id="r", response=ResponseKind(response), answers=answers or None)


def answered(**answers: Any) -> SessionRecord:
    return asking(msgspec.structs.replace(FORM, answers=answers))


@pytest.mark.proves(
    "ahp.rules.complete-answers",
    "ahp.rules.complete-no-request",
    "ahp.rules.complete-required",
    "ahp.rules.complete-brings-all",
    "ahp.rules.complete-merges",
    "ahp.rules.complete-without-answers",
)
@pytest.mark.parametrize(
    ("record", "action", "code"),
    [
        (asking(FORM), complete(name=Submitted(value=LONG)), None),
        (answered(name=Submitted(value=LONG)), complete(), None),
        (asking(FORM), complete("decline"), None),
        (asking(FORM), complete("cancel"), None),
        (asking(), complete(), RefusalCode.NO_REQUEST),
        (asking(FORM), complete(), RefusalCode.REQUIRED),
        (answered(name=Draft(value=LONG)), complete(), RefusalCode.REQUIRED),
        (answered(name=Skipped()), complete(), RefusalCode.REQUIRED),
        (asking(FORM), complete(name=Draft(value=LONG)), RefusalCode.REQUIRED),
        (asking(FORM), complete(name=Submitted(value=SHORT)), RefusalCode.TOO_SHORT),
        (asking(FORM), complete(name=Draft(value=SHORT)), RefusalCode.TOO_SHORT),
        (asking(FORM), complete("decline", name=Submitted(value=SHORT)), RefusalCode.TOO_SHORT),
        (asking(FORM), complete("cancel", colour=Skipped()), RefusalCode.NO_QUESTION),
        # A later, better answer wins, and so does a later, worse one.
        (answered(name=Draft(value=SHORT)), complete(name=Submitted(value=LONG)), None),
        (answered(name=Submitted(value=LONG)), complete(name=Skipped()), RefusalCode.REQUIRED),
        # A draft never goes over an answer.
        (answered(name=Submitted(value=LONG)), complete(name=Draft(value=LONG)), None),
        # A request that was replaced may hold an answer that no longer fits.
        (answered(name=Submitted(value=SHORT)), complete(), RefusalCode.TOO_SHORT),
        (answered(name=Submitted(value=SHORT)), complete("decline"), None),
    ],
)
def test_completing_a_request(
    record: SessionRecord, action: InputCompleted, code: RefusalCode | None
) -> None:
    refusal = judge(PHONE, record, action)
    assert (refusal and refusal.code) == code


@pytest.mark.proves("ahp.rules.complete-lost", "design.calls.one-winner")
def test_who_comes_second_is_told_who_was_first() -> None:
    record = accepted(asking(FORM), OWNER, complete(name=Submitted(value=LONG)))
    for late in (complete("decline"), change(Draft(value=SHORT))):
        refusal = refused(record, PHONE, late)
        assert refusal.code is RefusalCode.ALREADY_COMPLETED
        assert refusal.message == "Too late: Ana answered “Deploy”."


def asked(request: InputRequest, record: SessionRecord | None = None) -> RefusalCode | None:
    refusal = judge(AGENT, record or in_turn(), InputRequested(request=request))
    return refusal and refusal.code


def flags(count: int) -> tuple[BooleanQuestion, ...]:
    return tuple(BooleanQuestion(id=str(n), message="?") for n in range(count))


def options(count: int) -> tuple[Option, ...]:
    return tuple(Option(id=str(n), label="x") for n in range(count))


@pytest.mark.proves("design.limits.questions")
@pytest.mark.parametrize(
    ("questions", "code"),
    [
        (FORM.questions, None),
        ((), None),
        (flags(QUESTIONS_PER_REQUEST), None),
        (flags(QUESTIONS_PER_REQUEST + 1), RefusalCode.LIMIT),
        (flags(1) * 2, RefusalCode.DUPLICATE),
        ((BooleanQuestion(id="x" * (ID_CHARS + 1), message="?"),), RefusalCode.LIMIT),
        ((NumberQuestion(id="n", message="?", min=2, max=1),), RefusalCode.BAD_FORM),
        (
            (SingleSelectQuestion(id="s", message="?", options=options(OPTIONS_PER_QUESTION)),),
            None,
        ),
        (
            (SingleSelectQuestion(id="s", message="?", options=options(OPTIONS_PER_QUESTION + 1)),),
            RefusalCode.LIMIT,
        ),
        (
            (MultiSelectQuestion(id="s", message="?", options=options(1) * 2),),
            RefusalCode.DUPLICATE,
        ),
        ((SingleSelectQuestion(id="s", message="?", options=()),), RefusalCode.BAD_FORM),
        (
            (SingleSelectQuestion(id="s", message="?", options=(), allow_freeform_input=True),),
            None,
        ),
    ],
)
def test_what_may_be_asked(questions: Any, code: RefusalCode | None) -> None:
    assert asked(InputRequest(id="new", questions=questions)) == code


def test_answers_that_come_with_a_question_must_fit_it() -> None:
    good = msgspec.structs.replace(FORM, answers={"name": Draft(value=SHORT)})
    bad = msgspec.structs.replace(FORM, answers={"size": Draft(value=SHORT)})
    assert asked(good) is None
    assert asked(bad) is RefusalCode.WRONG_KIND


def test_open_questions_are_bounded_and_ids_are_used_once() -> None:
    many = [InputRequest(id=str(n)) for n in range(OPEN_REQUESTS_PER_SESSION)]
    assert asked(InputRequest(id="new"), asking(*many[1:])) is None
    assert asked(InputRequest(id="new"), asking(*many)) is RefusalCode.LIMIT
    assert asked(InputRequest(id="0", message="again"), asking(*many)) is None
    done = accepted(asking(FORM), OWNER, complete("decline"))
    assert asked(FORM, done) is RefusalCode.DUPLICATE


def test_an_agent_cannot_replace_the_question_of_a_call() -> None:
    of_call = InputRequest(id="call:c/1/k", meta=RequestMeta(call="c"))
    for record in (asking(of_call), in_turn()):
        assert asked(InputRequest(id="call:c/1/k"), record) is RefusalCode.NOT_YOURS
    with_deadline = InputRequest(id="mine", meta=RequestMeta(expires_at=5))
    assert asked(InputRequest(id="mine"), asking(with_deadline)) is None


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
    refusal = judge(principal, record, action)
    assert (refusal and refusal.code) == code


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


# What a session is and has


def test_a_title_is_bounded() -> None:
    assert judge(OWNER, session(), TitleChanged(title="x" * TITLE_CHARS)) is None
    long = TitleChanged(title="x" * (TITLE_CHARS + 1))
    assert refused(session(), OWNER, long).code is RefusalCode.LIMIT


@pytest.mark.proves("ahp.rules.change-deferred")
def test_a_change_of_model_or_agent_is_never_refused() -> None:
    for record in (session(), in_turn()):
        assert judge(OWNER, record, ModelChanged(model=ModelSelection(id="m"))) is None
        assert judge(OWNER, record, AgentChanged()) is None


def prop(kind: Any, **fields: Any) -> SessionConfigPropertySchema:
    fields = {"session_mutable": True, **fields}
    return SessionConfigPropertySchema(type=kind, title=f"The {kind}", **fields)


SETTINGS = {
    "name": prop("string"),
    "mode": prop("string", enum=("fast", "slow")),
    "branch": prop("string", enum=("main",), enum_dynamic=True),
    "size": prop("number"),
    "flag": prop("boolean"),
    "list": prop("array", items=ConfigPropertySchema(type="string", title="Item")),
    "any": prop("array"),
    "map": prop(
        "object",
        properties={"a": ConfigPropertySchema(type="number", title="A")},
        required=("a",),
    ),
    "fixed": prop("string", session_mutable=None),
    "shown": prop("string", read_only=True),
}
CONFIGURED = session(
    config=SessionConfigState(
        schema=SessionConfigSchema(type="object", properties=SETTINGS), values={}
    )
)


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        ({}, True),
        ({"name": "x", "mode": "fast", "size": 1.5, "flag": True}, True),
        ({"branch": "feature"}, True),
        ({"list": ["a"], "any": [1, {}], "map": {"a": 1, "b": "?"}}, True),
        ({"name": 1}, False),
        ({"mode": "warp"}, False),
        ({"size": True}, False),
        ({"flag": "yes"}, False),
        ({"list": [1]}, False),
        ({"list": "a"}, False),
        ({"map": {"a": "1"}}, False),
        ({"map": {}}, False),
        ({"fixed": "x"}, False),
        ({"shown": "x"}, False),
        ({"unheard": "x"}, False),
    ],
)
def test_configuration_must_fit_its_schema(config: dict[str, Any], fits: bool) -> None:
    refusal = judge(OWNER, CONFIGURED, ConfigChanged(config=config))
    assert (refusal is None) == fits
    assert refusal is None or refusal.code is RefusalCode.NOT_CONFIGURABLE


def test_a_session_without_configuration_takes_none() -> None:
    refusal = refused(session(), OWNER, ConfigChanged(config={"name": "x"}))
    assert refusal.code is RefusalCode.NOT_CONFIGURABLE


def test_the_roots_configuration_is_held_to_its_schema_too() -> None:
    properties = {"theme": ConfigPropertySchema(type="string", title="Theme")}
    config = RootConfigState(schema=ConfigSchema(type="object", properties=properties), values={})
    root = RootState(agents=(), config=config)
    assert judge_root(OWNER, root, RootConfigChanged(config={"theme": "dark"})) is None
    for state, values in ((root, {"theme": 1}), (RootState(agents=()), {"theme": "dark"})):
        refusal = judge_root(OWNER, state, RootConfigChanged(config=values))
        assert refusal is not None
        assert refusal.code is RefusalCode.NOT_CONFIGURABLE
    by_role = judge_root(WATCHER, root, RootConfigChanged(config={"theme": "dark"}))
    assert by_role is not None
    assert by_role.code is RefusalCode.ROLE
    for action in (RootActiveSessionsChanged(active_sessions=1), RootConfigChanged(config={})):
        by_agent = judge_root(AGENT, root, action)
        assert by_agent is not None
        assert by_agent.code is RefusalCode.ROLE
    required = ConfigSchema(type="object", properties=properties, required=("theme",))
    needy = RootState(agents=(), config=RootConfigState(schema=required, values={"theme": "x"}))
    emptied = RootConfigChanged(config={}, replace=True)
    assert judge_root(OWNER, needy, emptied) is not None
    assert judge_root(OWNER, needy, RootConfigChanged(config={})) is None
    swapped = RootConfigChanged(config={"theme": "y"}, replace=True)
    assert judge_root(OWNER, needy, swapped) is None


def test_an_action_of_another_channel_is_refused() -> None:
    of_root = judge(OWNER, session(), RootConfigChanged(config={}))  # type: ignore[arg-type]
    of_session = judge_root(OWNER, RootState(agents=()), TitleChanged(title="x"))
    for refusal in (of_root, of_session):
        assert refusal is not None
        assert refusal.code is RefusalCode.OTHER_CHANNEL


def test_replacing_a_configuration_keeps_what_is_fixed() -> None:
    values = {"fixed": "x", "name": "y", "gone": 1}
    assert CONFIGURED.public.config is not None
    config = msgspec.structs.replace(CONFIGURED.public.config, values=values)
    record = session(config=config)
    replace = ConfigChanged(config={"name": "z"}, replace=True)
    assert refused(record, OWNER, replace).code is RefusalCode.NOT_CONFIGURABLE
    free = session(config=msgspec.structs.replace(config, values={"name": "y", "gone": 1}))
    assert judge(OWNER, free, replace) is None


def test_an_agent_takes_its_own_question_back_and_answers_nobodys() -> None:
    record = asking(FORM)
    assert judge(AGENT, record, complete("cancel")) is None
    assert provenance_of(AGENT, complete("cancel")) is Provenance.WITHDRAWN
    assert provenance_of(OWNER, complete("cancel")) is Provenance.PERSON
    for response in ("accept", "decline"):
        assert refused(record, AGENT, complete(response)).code is RefusalCode.ROLE
    of_call = asking(msgspec.structs.replace(FORM, meta=RequestMeta(call="c")))
    assert refused(of_call, AGENT, complete("cancel")).code is RefusalCode.ROLE


@pytest.mark.proves("design.provenance.policy")
def test_what_a_policy_does_is_never_a_persons() -> None:
    policy = msgspec.structs.replace(OWNER, is_policy=True)
    assert provenance_of(policy, complete("accept")) is Provenance.POLICY
    assert provenance_of(policy, change(Draft(value=SHORT))) is Provenance.POLICY
    withdrawing = msgspec.structs.replace(AGENT, is_policy=True)
    assert provenance_of(withdrawing, complete("cancel")) is Provenance.WITHDRAWN


def test_a_recording_can_only_be_watched() -> None:
    record = asking(FORM)
    private = msgspec.structs.replace(record.private, is_recording=True)
    recording = msgspec.structs.replace(record, private=private)
    refusal = refused(recording, OWNER, complete("cancel"))
    assert (refusal.code, "only be watched" in refusal.message) == (RefusalCode.WRONG_STATE, True)
    assert refused(recording, WATCHER, complete("cancel")).code is RefusalCode.ROLE


def test_a_session_that_failed_asks_nothing() -> None:
    failed = session(lifecycle=Lifecycle.CREATION_FAILED)
    assert asked(FORM, failed) is RefusalCode.WRONG_STATE


def test_the_hosts_turns_are_the_hosts() -> None:
    turn = ActiveTurn(id="host:0:r", message=user_message(), response_parts=())
    record = in_turn(active_turn=turn)
    for action in (TurnComplete(turn_id=turn.id), TurnCancelled(turn_id=turn.id)):
        assert refused(record, AGENT, action).code is RefusalCode.NOT_YOURS
    assert judge(OWNER, record, TurnCancelled(turn_id=turn.id)) is None
    assert refused(session(), AGENT, start("host:1:x")).code is RefusalCode.NOT_YOURS


def test_a_part_is_added_once_and_in_its_turn() -> None:
    part = MarkdownPart(id="m", content="x")
    turn = ActiveTurn(id="t", message=user_message(), response_parts=(part,))
    add = ResponsePartAdded(turn_id="t", part=part)
    assert judge(AGENT, in_turn(), add) is None
    assert refused(in_turn(active_turn=turn), AGENT, add).code is RefusalCode.DUPLICATE
    assert refused(session(), AGENT, add).code is RefusalCode.NO_TURN
    note = ResponsePartAdded(turn_id="t", part=SystemNotificationPart(content="x"))
    assert judge(AGENT, in_turn(active_turn=turn), note) is None


def client(client_id: str) -> ActiveClient:
    return ActiveClient(client_id=client_id, tools=())


@pytest.mark.parametrize(
    ("current", "wanted", "allowed"),
    [
        (None, "laptop", True),
        (None, "phone", False),
        (None, None, True),
        ("laptop", "laptop", True),
        ("laptop", None, True),
        ("phone", "laptop", False),
        ("phone", None, False),
    ],
)
def test_a_client_is_active_by_its_own_will_alone(
    current: str | None, wanted: str | None, allowed: bool
) -> None:
    record = session(active_client=current and client(current))
    action = ActiveClientChanged(active_client=client(wanted) if wanted else None)
    refusal = judge(OWNER, record, action)
    assert (refusal is None) == allowed
    assert refusal is None or refusal.code is RefusalCode.NOT_YOURS


def test_only_the_active_client_changes_its_tools() -> None:
    action = ActiveClientToolsChanged(tools=())
    assert judge(OWNER, session(active_client=client("laptop")), action) is None
    for other in (None, client("phone")):
        refusal = refused(session(active_client=other), OWNER, action)
        assert refusal.code is RefusalCode.NOT_YOURS


def test_only_what_is_there_can_be_switched() -> None:
    plugin = Plugin(id="p", uri="x:p", name="P", enabled=True)
    unknown = UnknownCustomization({"type": "theme", "id": "u"})
    record = session(customizations=(plugin, unknown))
    for known in ("p", "u"):
        assert judge(OWNER, record, CustomizationToggled(id=known, enabled=False)) is None
    action = CustomizationToggled(id="x", enabled=False)
    for where in (record, session()):
        assert refused(where, OWNER, action).code is RefusalCode.NO_CUSTOMIZATION


def test_every_client_action_is_either_ruled_or_always_valid() -> None:
    always_valid = set(get_args(ClientAction)) - set(RULES)
    assert {kind.__name__ for kind in always_valid} == {
        "QueuedMessagesReordered",
        "ModelChanged",
        "AgentChanged",
        "IsReadChanged",
        "IsArchivedChanged",
        "RootConfigChanged",
    }
