"""What the record keeps for later versions, and what is shown where it was not kept."""

import msgspec
import pytest

from session_server.reducers.ahp1.envelopes import Committed, envelopes, summary_changes
from session_server.reducers.ahp1.numbering import (
    ENVELOPES_PER_ENTRY,
    number,
    number_after,
    position,
)
from session_server.reducers.ahp1.root import root_action, root_envelopes, root_state
from session_server.reducers.ahp1.snapshots import (
    LAST_MOMENT,
    Variant,
    chat_state,
    moment,
    session_state,
    session_summary,
)
from session_server.reducers.batches import batch_of
from session_server.reducers.deadlines import active_client_ids, released
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.customizations import Plugin, SkillEntry, UnknownCustomization
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    InputRequest,
    MultiSelectQuestion,
    Option,
    ResponseKind,
    SingleSelectQuestion,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.ahp.session import ActiveClient, AgentInfo, ModelSelection, RootState
from session_server.schemas.ahp.tool_calls import ConfirmationReason, PendingConfirmation, Running
from session_server.schemas.ahp.turns import (
    ActiveTurn,
    MarkdownPart,
    SystemNotificationPart,
    ToolCallPart,
    Turn,
    TurnState,
    UnknownPart,
)
from session_server.schemas.ahp1.actions import AgentsChanged
from session_server.schemas.ahp1.state import (
    ChatState,
    ClientEntry,
    ErrorPart,
    InputRequestPart,
    SessionState,
)
from session_server.schemas.codec import Decoder, decode_session_record, encode
from session_server.schemas.errors import RefusalCode
from session_server.schemas.limits import NEEDED_PER_SESSION
from session_server.schemas.log_entries import Spelling
from session_server.schemas.principals import Author, Provenance, Stamp
from session_server.schemas.record import (
    ChatRecord,
    ClientJoined,
    ClientLeft,
    OutcomeRecorded,
    PlacedRequest,
    RecordAction,
    SessionRecord,
    TurnRecord,
)
from session_server.schemas.wire import ErrorInfo
from tests.reducers.ahp1.ahp1_clients import VARIANTS, Json, Mirror, on_the_wire, shown
from tests.reducers.form_actions import with_client_tool
from tests.sessions import AGENT, OWNER, asking, fold, in_turn, session, user_message

V1 = Variant(True, Spelling.PLAIN)
QUESTION = TextQuestion(id="q", message="Name?")
REQUEST = InputRequest(id="r", message="Who?", questions=(QUESTION,))
TEXT = MarkdownPart(id="p", content="Hello")
SKILL = {"id": "p", "uri": "s:/", "name": "Skill"}
ADA = Submitted(value=TextValue(value="Ada"))


def folded(record: SessionRecord, *actions: RecordAction, at: int = 100) -> SessionRecord:
    for action in actions:
        record = reduce_record(record, action, at)
        at += 10
    return record


def parts(record: SessionRecord) -> list[object]:
    turn = chat_state(record, V1).active_turn
    return list(turn.response_parts)


def mirrored(
    record: SessionRecord, *actions: RecordAction, at: int = 5, variant: Variant = V1
) -> list[Json]:
    """What a client is told of these actions; its mirror then shows what a new snapshot does."""
    mirror = Mirror(record, variant)
    entries = [Committed(i, action, at) for i, action in enumerate(actions, 1)]
    said = mirror.follow(envelopes(record, entries, variant))
    assert (mirror.chat, mirror.session) == shown(fold(record, *actions, at=at), variant)
    return said


# Where questions stand


def test_a_question_stands_where_it_was_asked_and_keeps_its_answers() -> None:
    record = folded(
        session(),
        ahp.TurnStarted(turn_id="t", message=user_message()),
        ahp.InputRequested(request=REQUEST),
        ahp.ResponsePartAdded(turn_id="t", part=TEXT),
        ahp.InputCompleted(request_id="r", response=ResponseKind.ACCEPT, answers={"q": ADA}),
        ahp.InputRequested(request=REQUEST),
    )
    answered = msgspec.structs.replace(REQUEST, answers={"q": ADA})
    assert parts(record) == [
        InputRequestPart(request=answered, response=ResponseKind.ACCEPT),
        TEXT,
        InputRequestPart(request=REQUEST),
    ]


def test_a_question_that_its_turn_leaves_open_keeps_what_was_drafted() -> None:
    draft = Draft(value=TextValue(value="Ad"))
    record = folded(
        session(),
        ahp.TurnStarted(turn_id="t", message=user_message()),
        ahp.InputRequested(request=REQUEST),
        ahp.InputAnswerChanged(request_id="r", question_id="q", answer=draft),
        ahp.TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message="!")),
    )
    (turn,) = chat_state(record, V1).turns
    drafted = msgspec.structs.replace(REQUEST, answers={"q": draft})
    assert turn.response_parts == (
        InputRequestPart(request=drafted),
        ErrorPart(error=ErrorInfo(error_type="x", message="!")),
    )
    assert (turn.started_at, turn.duration) == ("1970-01-01T00:00:00.100Z", 30)
    assert chat_state(record, V1).status == 2
    assert session_summary(record, V1).status == 2


def test_without_a_turn_a_question_has_no_place() -> None:
    record, asked = session(status=33), ahp.InputRequested(request=REQUEST)
    for variant in VARIANTS:
        mirrored(record, asked, variant=variant)
        assert chat_state(fold(record, asked), variant).active_turn is None
        mirrored(record, asked, asked, variant=variant)


def test_selects_say_whether_they_take_freeform_text() -> None:
    options = (Option(id="a", label="A"),)
    questions = (
        SingleSelectQuestion(id="1", message="?", options=options),
        MultiSelectQuestion(id="2", message="?", options=options, allow_freeform_input=True),
        QUESTION,
    )
    (part,) = on_the_wire(parts(asking(InputRequest(id="r", questions=questions))))
    told = [question.get("allowFreeformInput") for question in part["request"]["questions"]]
    assert told == [False, True, None]


def test_asking_again_without_answers_takes_them_away() -> None:
    record = asking(msgspec.structs.replace(REQUEST, answers={"q": ADA}))
    action = ahp.InputRequested(request=msgspec.structs.replace(REQUEST, answers={}))
    kinds = [envelope["action"]["type"] for envelope in mirrored(record, action)]
    assert kinds[:2] == ["chat/inputAnswerChanged", "chat/inputRequested"]


@pytest.mark.parametrize("answers", [None, {"q": ADA}])
def test_asking_again_with_answers_replaces_them(answers: dict[str, Answer] | None) -> None:
    record = asking(msgspec.structs.replace(REQUEST, answers=answers))
    other: dict[str, Answer] = {"q": Draft(value=TextValue(value="Bo"))}
    mirrored(record, ahp.InputRequested(request=msgspec.structs.replace(REQUEST, answers=other)))


def test_a_question_from_before_a_turn_does_not_wait_in_it() -> None:
    """It has no place in the turn, so no client could answer it there."""
    record = folded(
        session(),
        ahp.InputRequested(request=REQUEST),
        ahp.TurnStarted(turn_id="t", message=user_message()),
    )
    assert chat_of(record).needed == ()
    assert chat_state(record, V1).status == 8


def test_switching_one_of_several_with_the_same_id_tells_all() -> None:
    entries = (
        Plugin(id="p", uri="p:/", name="P", enabled=True),
        Plugin(id="q", uri="p:/", name="Q", enabled=True, children=(SkillEntry(**SKILL),)),
    )
    record = session(customizations=entries)
    mirrored(record, ahp.CustomizationToggled(id="p", enabled=False))


def test_what_is_shown_can_be_read_with_the_shapes_of_the_version() -> None:
    record = folded(
        session(),
        ahp.TurnStarted(turn_id="t", message=user_message()),
        ahp.InputRequested(request=REQUEST),
        ahp.CustomizationsChanged(
            customizations=(
                Plugin(id="q", uri="p:/", name="Q", enabled=True, children=(SkillEntry(**SKILL),)),
            )
        ),
        ahp.ToolCallStart(turn_id="t", tool_call_id="c", tool_name="ls", display_name="List"),
        ahp.ToolCallReady(turn_id="t", tool_call_id="c", invocation_message="?"),
    )
    chat, state = chat_state(record, V1), session_state(record, V1)
    assert Decoder[ChatState](ChatState)(encode(chat)) == chat
    assert Decoder[SessionState](SessionState)(encode(state)) == state
    assert state.input_needed is not None
    assert [entry.id for entry in state.input_needed] == ["input:r", "confirm:c"]
    later = encode(chat).replace(b'"kind":"inputRequest"', b'"kind":"later"')
    turn = Decoder[ChatState](ChatState)(later).active_turn
    assert isinstance(turn.response_parts[0], UnknownPart)


def test_a_client_that_stays_away_loses_its_entry_and_its_running_tools() -> None:
    joined = ClientJoined(client=ClientEntry(client_id="tablet", tools=()))
    record = fold(with_client_tool("tablet"), joined)
    assert active_client_ids(record) == {"laptop", "tablet"}
    batch = released(record, "tablet")
    assert [type(action) for action in batch] == [ahp.ToolCallComplete, ClientLeft]
    assert active_client_ids(fold(record, *batch)) == {"laptop"}
    assert [type(action) for action in released(record, "laptop")] == [ahp.ActiveClientChanged]
    assert released(record, "phone") == ()


# Notes


@pytest.mark.parametrize(
    ("response", "answers", "is_noted"),
    [
        (ResponseKind.ACCEPT, {"q": ADA}, False),
        (ResponseKind.DECLINE, None, True),
    ],
)
def test_the_author_is_shown_by_the_request_or_else_by_a_note(
    response: ResponseKind, answers: dict[str, Submitted] | None, is_noted: bool
) -> None:
    record = folded(in_turn(), ahp.InputRequested(request=REQUEST))
    action = ahp.InputCompleted(request_id="r", response=response, answers={**(answers or {})})
    stamp = Stamp(at=7, by=Author(id="u", name="Ada"), via=Provenance.PERSON)
    batch = batch_of(record, action, stamp)
    said = {envelope["action"]["type"] for envelope in mirrored(record, *batch, at=7)}
    assert ("chat/responsePart" in said) is is_noted
    after = fold(record, *batch, at=7)
    assert isinstance(after.public.active_turn, ActiveTurn)
    assert isinstance(after.public.active_turn.response_parts[0], SystemNotificationPart)
    assert any(isinstance(part, SystemNotificationPart) for part in parts(after)) is is_noted


def test_an_outcome_without_a_turn_or_a_note_hides_nothing() -> None:
    record = folded(in_turn(), ahp.InputRequested(request=REQUEST))
    action = ahp.InputCompleted(request_id="r", response=ResponseKind.ACCEPT, answers={"q": ADA})
    recorded, note, _ = batch_of(record, action, Stamp(at=7))
    assert isinstance(recorded, OutcomeRecorded)
    assert folded(session(), recorded).chat is None
    assert folded(in_turn(), recorded).chat is None
    spoken = folded(in_turn(), ahp.ResponsePartAdded(turn_id="t", part=TEXT), recorded)
    assert chat_of(spoken).active == chat_of(in_turn()).active
    turnless = msgspec.structs.replace(spoken, chat=ChatRecord(modified_at=1))
    assert folded(turnless, recorded, note).chat == turnless.chat
    other = ahp.ResponsePartAdded(turn_id="t", part=SystemNotificationPart(content="Other"))
    assert chat_of(folded(record, recorded, other)).active == chat_of(record).active
    assert folded(record, other, recorded).chat == chat_of(record)


@pytest.mark.proves("ahp.ahp1.upgrade")
def test_the_note_before_its_outcome_as_earlier_versions_wrote_it_is_hidden_too() -> None:
    record = folded(in_turn(), ahp.InputRequested(request=REQUEST))
    action = ahp.InputCompleted(request_id="r", response=ResponseKind.ACCEPT, answers={"q": ADA})
    recorded, note, completed = batch_of(record, action, Stamp(at=7))
    for entries in ((recorded, note, completed), (note, completed, recorded)):
        active = chat_of(folded(record, *entries)).active
        assert active.notes == (0,)
        assert not any(
            isinstance(p, SystemNotificationPart) for p in parts(folded(record, *entries))
        )
    lost = msgspec.structs.replace(folded(record, note, completed), chat=ChatRecord(modified_at=1))
    assert folded(lost, recorded).chat == lost.chat


# Tool calls


def test_a_call_that_is_confirmed_again_keeps_its_input() -> None:
    running = Running(
        tool_call_id="c",
        tool_name="ls",
        display_name="List",
        invocation_message="List",
        tool_input="in",
        confirmed=ConfirmationReason.NOT_NEEDED,
    )
    bare = msgspec.structs.replace(running, tool_call_id="d", tool_input=None)
    turn = ActiveTurn(
        id="t",
        message=user_message(),
        response_parts=(TEXT, ToolCallPart(tool_call=running), ToolCallPart(tool_call=bare)),
    )
    record = in_turn(active_turn=turn)
    ready = ahp.ToolCallReady(turn_id="t", tool_call_id="c", invocation_message="Sure?")
    other = msgspec.structs.replace(ready, tool_call_id="d")
    unknown = msgspec.structs.replace(ready, tool_call_id="zz")
    mirrored(record, ready, other, unknown)
    after = fold(record, ready, other, unknown)
    calls = [part.tool_call for part in parts(after) if isinstance(part, ToolCallPart)]
    assert [call.tool_input for call in calls if isinstance(call, PendingConfirmation)] == [
        "in",
        None,
    ]
    stranger = msgspec.structs.replace(after, chat=ChatRecord(modified_at=1))
    assert chat_of(folded(stranger, ready)).active is None


def test_a_call_that_has_not_ended_begins_with_its_start() -> None:
    pending = PendingConfirmation(
        tool_call_id="c", tool_name="ls", display_name="List", invocation_message="List"
    )
    action = ahp.ResponsePartAdded(turn_id="t", part=ToolCallPart(tool_call=pending))
    refusal = judge(AGENT, in_turn(), action)
    assert refusal.code is RefusalCode.WRONG_STATE


def test_what_waits_is_bounded() -> None:
    """So that the envelopes of one entry have room between its number and the next."""
    assert NEEDED_PER_SESSION < ENVELOPES_PER_ENTRY
    start = ahp.ToolCallStart(turn_id="t", tool_call_id="c", tool_name="ls", display_name="List")
    record = folded(in_turn(), start)
    ready = ahp.ToolCallReady(turn_id="t", tool_call_id="c", invocation_message="?")
    assert judge(AGENT, record, ready) is None
    chat = msgspec.structs.replace(
        chat_of(record), needed=tuple(f"input:{i}" for i in range(NEEDED_PER_SESSION))
    )
    refusal = judge(AGENT, msgspec.structs.replace(record, chat=chat), ready)
    assert refusal.code is RefusalCode.LIMIT


# Numbers and times


@pytest.mark.proves("ahp.ahp1.numbers")
def test_numbers_leave_room_between_entries() -> None:
    assert [number(3, 0), number(3, 5), number(3, 5_000)] == [3_072, 3_077, 4_095]
    assert number_after(3) == 4_095
    assert position(3_077) == (3, 5)
    assert number(2**43, 0) <= 2**53


def test_times_are_written_as_javascript_writes_them() -> None:
    assert moment(0) == "1970-01-01T00:00:00.000Z"
    assert moment(1_790_000_000_123) == "2026-09-21T14:13:20.123Z"
    assert moment(2**53) == moment(LAST_MOMENT) == "9999-12-31T23:59:59.999Z"


def test_a_turn_that_ends_beyond_the_calendar_ends_with_it() -> None:
    mirror = Mirror(session(), V1)
    actions = (
        ahp.TurnStarted(turn_id="t", message=user_message()),
        ahp.TurnComplete(turn_id="t"),
    )
    entries = [Committed(1, actions[0], LAST_MOMENT - 5), Committed(2, actions[1], 2**53)]
    mirror.follow(envelopes(session(), entries, V1))
    after = reduce_record(reduce_record(session(), actions[0], LAST_MOMENT - 5), actions[1], 2**53)
    assert (mirror.chat, mirror.session) == shown(after, V1)


def test_a_turn_that_ends_before_it_began_took_no_time() -> None:
    record = folded(session(), ahp.TurnStarted(turn_id="t", message=user_message()), at=100)
    ended = folded(record, ahp.TurnComplete(turn_id="t"), at=50)
    (turn,) = chat_of(ended).turns
    assert (turn.started_at, turn.duration) == (100, 0)
    assert chat_of(ended).modified_at == 100


# Records from before


@pytest.mark.proves("ahp.ahp1.upgrade")
def test_a_record_from_before_shows_what_is_known_and_goes_on() -> None:
    history = Turn(id="t0", message=user_message(), response_parts=(), state=TurnState.COMPLETE)
    turn = ActiveTurn(id="t", message=user_message(), response_parts=(TEXT,))
    owner = ActiveClient(client_id="laptop", tools=())
    old = asking(REQUEST, turns=(history,), active_turn=turn, active_client=owner)
    old = decode_session_record(encode(old))
    assert old.chat is None
    for variant in VARIANTS:
        mirror = Mirror(old, variant)
        assert mirror.chat["activeTurn"]["startedAt"] == "1970-01-01T00:00:00.001Z"
        assert [p["kind"] for p in mirror.chat["activeTurn"]["responseParts"]] == [
            "markdown",
            "inputRequest",
        ]
        assert "startedAt" not in mirror.chat["turns"][0]
        assert mirror.session["activeClients"] == [{"clientId": "laptop", "tools": []}]
        assert mirror.session["status"] == 24
        actions: tuple[RecordAction, ...] = (
            ahp.ActivityChanged(activity="Busy"),
            ahp.ResponsePartAdded(turn_id="t", part=MarkdownPart(id="p2", content="More")),
            ahp.InputCompleted(request_id="r", response=ResponseKind.ACCEPT, answers={"q": ADA}),
            ahp.TurnComplete(turn_id="t"),
            ahp.Truncated(turn_id="t0"),
        )
        entries = [Committed(i, a, 90 + 10 * i) for i, a in enumerate(actions, 1)]
        mirror.follow(envelopes(old, entries, variant))
        after = folded(old, *actions)
        assert (mirror.chat, mirror.session) == shown(after, variant)
        ended = folded(old, *actions[:4])
        assert [t.started_at for t in chat_of(ended).turns] == [None, 1]


@pytest.mark.proves("ahp.ahp1.upgrade")
def test_the_public_state_of_a_record_is_encoded_as_before() -> None:
    record = folded(session(), ahp.TurnStarted(turn_id="t", message=user_message()))
    assert record.chat is not None
    assert "chat" not in on_the_wire(record.public)
    assert "chat" not in on_the_wire(session())
    assert decode_session_record(encode(record)) == record


@pytest.mark.parametrize(
    ("record", "action"),
    [
        (in_turn(), ahp.TurnCancelled(turn_id="t")),
        (in_turn(), ahp.TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message="!"))),
        (
            session(active_client=ActiveClient(client_id="laptop", tools=())),
            ahp.ActiveClientChanged(active_client=None),
        ),
        (
            session(),
            ahp.CustomizationsChanged(customizations=(UnknownCustomization({"type": "later"}),)),
        ),
    ],
)
def test_what_a_walk_may_leave_out_is_told_too(record: SessionRecord, action: RecordAction) -> None:
    assert mirrored(record, action)


def test_an_activity_that_is_over_is_empty_in_a_list() -> None:
    busy = fold(in_turn(), ahp.ActivityChanged(activity="Busy"))
    done = fold(busy, ahp.ActivityChanged())
    changes = summary_changes(session_summary(busy, V1), session_summary(done, V1))
    assert changes.activity == ""


def test_what_changes_nothing_leaves_a_record_as_it_was() -> None:
    record = session()
    for action in (
        ahp.TurnComplete(turn_id="zz"),
        ahp.Delta(turn_id="zz", part_id="p", content="+"),
        ahp.Truncated(turn_id="zz"),
    ):
        assert reduce_record(record, action, 1) is record
    known = folded(record, ahp.TitleChanged(title="New"))
    assert folded(known, ahp.TurnComplete(turn_id="zz")) is known
    assert folded(known, ahp.Truncated(turn_id="zz")) is known
    assert [*envelopes(known, [Committed(1, ahp.TurnComplete(turn_id="zz"), 1)], V1)] == []


def test_a_record_that_does_not_fit_together_is_shown_all_the_same() -> None:
    """It cannot come about here, but nothing that is stored may stop the host."""
    placed = PlacedRequest(id="gone", position=7)
    odd = ChatRecord(modified_at=5, active=TurnRecord(requests=(placed,)), needed=("input:gone",))
    record = msgspec.structs.replace(in_turn(), chat=odd)
    assert parts(record) == []
    assert session_state(record, V1).input_needed is None
    completed = ahp.InputCompleted(request_id="gone", response=ResponseKind.CANCEL)
    assert chat_of(folded(record, completed)).active == odd.active
    ended = folded(record, ahp.TurnComplete(turn_id="t"))
    assert chat_of(ended).turns[0].started_at == record.public.summary.modified_at
    bare = msgspec.structs.replace(in_turn(), chat=ChatRecord(modified_at=5))
    turn = chat_state(bare, V1).active_turn
    assert turn.started_at == moment(5)
    assert chat_of(folded(bare, ahp.TurnComplete(turn_id="t"))).turns[0].duration == 99
    assert chat_of(folded(bare, ahp.InputRequested(request=REQUEST))).active is None


# The root


def test_the_root_shows_agents_with_a_model_and_no_terminals() -> None:
    def agent(provider: str) -> AgentInfo:
        plugin = Plugin(id="p", uri="p:/", name="P", enabled=True)
        return AgentInfo(
            provider=provider,
            display_name=provider,
            description="",
            models=(),
            customizations=(plugin,),
        )

    root = RootState(agents=(agent("demo"), agent("people")), terminals=())
    made = on_the_wire(root_state(root))
    assert [len(entry["models"]) for entry in made["agents"]] == [1, 0]
    assert "terminals" not in made
    plugin = made["agents"][0]["customizations"][0]
    assert plugin["enablement"] == [{"kind": "session", "enabled": True}]
    changed = root_action(ahp.RootAgentsChanged(agents=root.agents))
    assert isinstance(changed, AgentsChanged)
    assert on_the_wire(changed)["agents"] == made["agents"]
    assert root_action(ahp.RootTerminalsChanged(terminals=())) is None
    counted = ahp.RootActiveSessionsChanged(active_sessions=3)
    assert root_action(counted) is counted
    (envelope,) = root_envelopes(
        [Committed(1, ahp.RootTerminalsChanged(terminals=()), 5), Committed(2, counted, 6)]
    )
    assert (envelope.server_seq, envelope.channel) == (2_048, "ahp-root://")


def test_a_session_that_could_not_be_made_is_failed() -> None:
    action = ahp.CreationFailed(error=ErrorInfo(error_type="x", message="!"))
    mirrored(session(), action)
    assert on_the_wire(session_state(fold(session(), action), V1))["lifecycle"] == "failed"


def test_a_turn_shows_the_model_that_it_was_started_with() -> None:
    record = folded(
        session(),
        ahp.ModelChanged(model=ModelSelection(id="m")),
        ahp.TurnStarted(turn_id="t", message=user_message()),
        ahp.TurnComplete(turn_id="t"),
        ahp.ModelChanged(model=ModelSelection(id="n")),
    )
    (turn,) = on_the_wire(chat_state(record, V1))["turns"]
    assert turn["message"]["model"] == {"id": "m"}


def test_only_the_own_action_of_a_client_carries_its_origin() -> None:
    record = folded(in_turn(), ahp.InputRequested(request=REQUEST))
    origin = ActionOrigin(client_id=OWNER.client_id or "", client_seq=4)
    completed = ahp.InputCompleted(request_id="r", response=ResponseKind.CANCEL)
    made = [*envelopes(record, [Committed(1, completed, 5, None, origin)], V1)]
    kinds = [on_the_wire(e)["action"]["type"] for e in made if e.origin is not None]
    assert kinds == ["chat/inputCompleted"]
    assert len(made) == 3
