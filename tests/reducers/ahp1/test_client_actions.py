"""What clients of AHP 0.9 and 1.x dispatch, as actions of the record."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_server.reducers.ahp1.client_actions import own_kind, plan, translated
from session_server.reducers.batches import Batch
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.client_entries import is_enabled
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.customizations import ClientPlugin
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
    Value,
)
from session_server.schemas.ahp.session import ActiveClient, AgentSelection, ModelSelection
from session_server.schemas.ahp1 import actions as sent
from session_server.schemas.ahp1.methods import DispatchAction
from session_server.schemas.ahp1.state import Enablement
from session_server.schemas.codec import decode_ahp1_frame
from session_server.schemas.errors import DecodingError, Refusal, RefusalCode
from session_server.schemas.limits import ACTIVE_CLIENTS_PER_SESSION, DRAFT_BYTES
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import ClientJoined, ClientLeft, MessageDrafted, SessionRecord
from tests.reducers.ahp1.ahp1_clients import chosen_message, client
from tests.sessions import OWNER, PHONE, asking, fold, in_turn, session

TRACE = Path(__file__).resolve().parents[4] / "shared" / "ahp1" / "vscode-trace.json"
OPTIONS = (Option(id="red", label="Red"), Option(id="blue", label="Blue"))
FORM = InputRequest(
    id="r1",
    questions=(
        TextQuestion(id="name", message="Name?"),
        IntegerQuestion(id="how-many", message="How many?"),
        NumberQuestion(id="share", message="Share?"),
        BooleanQuestion(id="sure", message="Sure?"),
        SingleSelectQuestion(
            id="one-of", message="Which?", options=OPTIONS, allow_freeform_input=True
        ),
        MultiSelectQuestion(
            id="some-of", message="Which?", options=OPTIONS, allow_freeform_input=True
        ),
    ),
)
STAMP = Stamp(at=9)


def planned(
    record: SessionRecord,
    action: sent.ClientAction,
    principal: Principal = OWNER,
    *,
    on_chat: bool = True,
) -> Batch | Refusal:
    return plan(principal, record, action, STAMP, on_chat=on_chat)


def refused(
    record: SessionRecord, action: sent.ClientAction, *who: Principal, **where: bool
) -> RefusalCode:
    refusal = planned(record, action, *who, **where)
    assert isinstance(refusal, Refusal)
    return refusal.code


def made(batch: Batch | Refusal) -> Batch:
    assert not isinstance(batch, Refusal), batch
    return batch


def after(record: SessionRecord, batch: Batch | Refusal) -> SessionRecord:
    return fold(record, *made(batch), at=STAMP.at)


def completed(question_id: str, value: Value) -> Any:
    action = sent.InputCompleted(
        request_id="r1",
        response=ResponseKind.ACCEPT,
        answers={question_id: Submitted(value=value)},
    )
    return translated(asking(FORM), action, on_chat=True)


@pytest.mark.proves("ahp.ahp1.answers")
@pytest.mark.parametrize(
    ("question_id", "text", "value"),
    [
        ("name", "3", TextValue(value="3")),
        ("how-many", "3", NumberValue(value=3)),
        ("how-many", " -3 ", NumberValue(value=-3)),
        ("share", "0.5", NumberValue(value=0.5)),
        ("share", "1e400", None),
        ("share", "99999999999999999999", NumberValue(value=1e20)),
        ("sure", "True", BooleanValue(value=True)),
        ("sure", "false", BooleanValue(value=False)),
        ("one-of", "mauve", SelectedValue(value="mauve")),
        ("one-of", "red", SelectedValue(value="red")),
        ("some-of", "c", SelectedManyValue(value=(), freeform_values=("c",))),
        ("how-many", "three", None),
        ("how-many", "", None),
        ("how-many", "\ud800", None),
        ("sure", "maybe", None),
    ],
)
def test_text_becomes_what_the_question_asks_for(
    question_id: str, text: str, value: Value | None
) -> None:
    outcome = completed(question_id, TextValue(value=text))
    if value is None:
        assert isinstance(outcome, Refusal)
        assert outcome.code is RefusalCode.WRONG_KIND
        assert (outcome.request_id, outcome.question_id) == ("r1", question_id)
        assert "is not" in outcome.message
    else:
        (action,) = outcome
        assert action.answers == {question_id: Submitted(value=value)}


@pytest.mark.proves("ahp.ahp1.answers")
def test_answers_of_the_right_kind_stay_as_they_are() -> None:
    (action,) = completed("sure", BooleanValue(value=True))
    assert action.answers == {"sure": Submitted(value=BooleanValue(value=True))}


@pytest.mark.proves("ahp.ahp1.answers")
def test_the_answer_to_a_question_that_a_client_invented_is_dropped() -> None:
    record = asking(InputRequest(id="r1", message="Go on?"))
    answers = {"answer": Submitted(value=TextValue(value="yes"))}
    action = sent.InputCompleted(request_id="r1", response=ResponseKind.ACCEPT, answers=answers)
    record = after(record, planned(record, action))
    assert record.private.outcomes[0].answers is None
    assert record.public.input_requests is None


@pytest.mark.proves("ahp.ahp1.answers")
def test_a_draft_is_converted_too_and_a_skip_or_a_clearing_is_not() -> None:
    def changed(answer: Any) -> Any:
        action = sent.InputAnswerChanged(request_id="r1", question_id="how-many", answer=answer)
        return translated(asking(FORM), action, on_chat=True)

    (drafted,) = changed(Draft(value=TextValue(value="4")))
    assert drafted.answer == Draft(value=NumberValue(value=4))
    assert isinstance(changed(Draft(value=TextValue(value="four"))), Refusal)
    (skipped,) = changed(Skipped())
    assert skipped.answer == Skipped()
    (cleared,) = changed(None)
    assert cleared.answer is None


def test_answers_to_what_is_not_open_are_left_to_the_rules() -> None:
    answer = Draft(value=TextValue(value="4"))
    change = sent.InputAnswerChanged(request_id="zz", question_id="q", answer=answer)
    assert refused(asking(FORM), change) is RefusalCode.NO_REQUEST
    completion = sent.InputCompleted(request_id="zz", response=ResponseKind.CANCEL)
    assert refused(asking(FORM), completion) is RefusalCode.NO_REQUEST
    other = sent.InputAnswerChanged(request_id="r1", question_id="zz", answer=answer)
    assert refused(asking(FORM), other) is RefusalCode.NO_QUESTION


def test_a_message_chooses_the_model_and_the_agent_of_its_turn() -> None:
    start = sent.StartTurn(
        turn_id="t1", started_at="2026-10-01T10:00:00Z", message=chosen_message("m", "a:/1")
    )
    batch = made(planned(session(), start))
    assert [type(action) for action in batch] == [
        ahp.ModelChanged,
        ahp.AgentChanged,
        ahp.TurnStarted,
    ]
    record = after(session(), batch)
    assert record.public.summary.model == ModelSelection(id="m")
    assert record.public.summary.agent == AgentSelection(uri="a:/1")
    ended = after(record, planned(record, sent.CancelTurn(turn_id="t1")))
    again = sent.StartTurn(turn_id="t2", started_at="x", message=start.message)
    assert [type(action) for action in made(planned(ended, again))] == [ahp.TurnStarted]


def test_the_model_that_stands_for_none_is_not_chosen() -> None:
    start = sent.StartTurn(turn_id="t1", started_at="x", message=chosen_message("default"))
    assert [type(action) for action in made(planned(session(), start))] == [ahp.TurnStarted]


def test_a_turn_that_is_refused_chooses_nothing() -> None:
    start = sent.StartTurn(turn_id="t1", started_at="x", message=chosen_message("m"))
    assert refused(in_turn(), start) is RefusalCode.TURN_ACTIVE


@pytest.mark.parametrize(
    ("action", "on_chat"),
    [
        (sent.CancelTurn(turn_id="t"), False),
        (ahp.IsReadChanged(is_read=True), True),
        (sent.ChatIsReadChanged(is_read=True), False),
        (ahp.RootConfigChanged(config={}), False),
        (ahp.RootConfigChanged(config={}), True),
    ],
)
def test_an_action_for_another_kind_of_channel_is_refused(
    action: sent.ClientAction, on_chat: bool
) -> None:
    assert refused(in_turn(), action, on_chat=on_chat) is RefusalCode.OTHER_CHANNEL


@pytest.mark.parametrize("on_chat", [True, False])
def test_a_title_may_be_sent_to_the_chat(on_chat: bool) -> None:
    record = after(session(), planned(session(), ahp.TitleChanged(title="New"), on_chat=on_chat))
    assert record.public.summary.title == "New"


def test_truncating_tells_absent_from_null() -> None:
    (whole,) = made(translated(session(), sent.Truncate(), on_chat=True))
    assert whole == ahp.Truncated()
    (part,) = made(translated(session(), sent.Truncate(turn_id="t"), on_chat=True))
    assert part == ahp.Truncated(turn_id="t")
    frame = {
        "jsonrpc": "2.0",
        "method": "dispatchAction",
        "params": {
            "channel": "ahp-chat:/1",
            "clientSeq": 1,
            "action": {"type": "chat/truncated", "turnId": None},
        },
    }
    with pytest.raises(DecodingError, match="turnId"):
        decode_ahp1_frame(json.dumps(frame))


# Clients


@pytest.mark.proves("ahp.ahp1.clients")
def test_several_clients_are_active_and_the_first_is_the_one_that_0_3_0_shows() -> None:
    record = session()
    for who in (OWNER, PHONE_OWNER):
        joining = sent.ActiveClientSet(active_client=client(who.client_id))
        record = after(record, planned(record, joining, who, on_chat=False))
    assert [entry.client_id for entry in chat_of(record).clients] == ["laptop", "phone"]
    assert record.public.active_client.client_id == "laptop"
    leaving = sent.ActiveClientRemoved(client_id="laptop")
    record = after(record, planned(record, leaving, OWNER, on_chat=False))
    assert [entry.client_id for entry in chat_of(record).clients] == ["phone"]
    assert record.public.active_client is None
    gone = sent.ActiveClientRemoved(client_id="phone")
    record = after(record, planned(record, gone, PHONE_OWNER, on_chat=False))
    assert chat_of(record).clients == ()


PHONE_OWNER = Principal(id="u-bo", role=OWNER.role, client_id="phone")


@pytest.mark.proves("ahp.ahp1.clients")
def test_an_entry_says_more_than_0_3_0_keeps_of_it() -> None:
    joining = sent.ActiveClientSet(active_client=client(tools=("ls",)))
    record = after(session(), planned(session(), joining, on_chat=False))
    assert chat_of(record).clients == (client(tools=("ls",)),)
    kept = record.public.active_client
    assert kept is not None
    plugin = ClientPlugin(id="p", uri="p:/", name="P", nonce="1", enabled=True)
    assert kept.customizations == (plugin,)


def test_what_0_3_0_says_of_the_active_client_shows_in_later_versions() -> None:
    def changed(record: SessionRecord, who: str | None, *tools: str) -> SessionRecord:
        plugin = ClientPlugin(id="p", uri="p:/", name="P", enabled=False)
        entry = ActiveClient(client_id=who or "", tools=(), customizations=(plugin,))
        action = ahp.ActiveClientChanged(active_client=None if who is None else entry)
        return reduce_record(record, action, 5)

    record = changed(session(), "a")
    (entry,) = chat_of(record).clients
    assert entry.customizations[0].enablement == (Enablement(kind="session", enabled=False),)
    assert [c.client_id for c in chat_of(changed(record, "b")).clients] == ["b"]
    assert chat_of(changed(record, None)).clients == ()


def test_a_client_speaks_only_for_itself() -> None:
    for action in (
        sent.ActiveClientSet(active_client=client("other")),
        sent.ActiveClientRemoved(client_id="other"),
    ):
        assert refused(session(), action, on_chat=False) is RefusalCode.NOT_YOURS


def test_the_number_of_active_clients_is_bounded() -> None:
    record = session()
    for i in range(ACTIVE_CLIENTS_PER_SESSION):
        record = reduce_record(record, ClientJoined(client=client(f"c{i}")), 1)
    joining = sent.ActiveClientSet(active_client=client())
    assert refused(record, joining, on_chat=False) is RefusalCode.LIMIT
    fewer = reduce_record(record, ClientLeft(client_id="c0"), 1)
    assert made(planned(fewer, joining, on_chat=False))


@pytest.mark.parametrize(
    "action", [sent.DraftChanged(), sent.ActiveClientSet(active_client=client())]
)
def test_only_owners_may(action: sent.ClientAction) -> None:
    on_chat = isinstance(action, sent.DraftChanged)
    assert refused(session(), action, PHONE, on_chat=on_chat) is RefusalCode.ROLE


def test_a_name_that_cannot_be_seen_is_not_kept() -> None:
    entry = client()
    hidden = sent.ActiveClientSet(
        active_client=type(entry)(client_id="laptop", tools=(), display_name="a\u202eb")
    )
    record = after(session(), planned(session(), hidden, on_chat=False))
    assert chat_of(record).clients[0].display_name != "a\u202eb"
    unnamed = type(entry)(client_id="laptop", tools=())
    joining = sent.ActiveClientSet(active_client=unnamed)
    assert chat_of(after(record, planned(record, joining, on_chat=False))).clients == (unnamed,)


# Drafts of messages


def test_a_draft_of_a_message_is_kept_and_dropped() -> None:
    drafted = sent.DraftChanged(draft=chosen_message("m"))
    record = after(session(), planned(session(), drafted))
    assert chat_of(record).draft == chosen_message("m")
    record = after(record, planned(record, sent.DraftChanged()))
    assert chat_of(record).draft is None


def test_a_draft_is_a_users_and_bounded() -> None:
    large = chosen_message()
    large = type(large)(text="x" * DRAFT_BYTES, origin=large.origin)
    forged = type(large)(text="x", origin=type(large.origin)(kind="agent"))
    for draft, code in ((large, RefusalCode.LIMIT), (forged, RefusalCode.NOT_A_USER_MESSAGE)):
        assert refused(session(), sent.DraftChanged(draft=draft)) is code


@pytest.mark.parametrize(
    ("scopes", "is_on"),
    [
        ([], True),
        ([("global", False)], False),
        ([("global", False), ("session", True)], True),
        ([("workspace", False), ("global", True)], False),
    ],
)
def test_the_innermost_scope_counts(scopes: list[tuple[Any, bool]], is_on: bool) -> None:
    given = tuple(Enablement(kind=kind, enabled=enabled) for kind, enabled in scopes)
    assert is_enabled(given) is is_on


def test_every_action_of_clients_has_one_that_is_its_own() -> None:
    assert own_kind(sent.DraftChanged()) is MessageDrafted
    assert own_kind(sent.CancelTurn(turn_id="t")) is ahp.TurnCancelled
    assert own_kind(sent.ChatIsReadChanged(is_read=True)) is ahp.IsReadChanged


@pytest.mark.skipif(not TRACE.is_file(), reason="the trace is not at hand")
def test_what_vs_code_dispatches_can_be_decoded() -> None:
    """All but what is meant for terminals, which have no channel here."""
    for request in json.loads(TRACE.read_text())["requests"]:
        action = request["params"].get("action", {"type": "terminal/"})
        if request["method"] == "dispatchAction" and not action["type"].startswith("terminal/"):
            frame = {"jsonrpc": "2.0", "method": "dispatchAction", "params": request["params"]}
            assert isinstance(decode_ahp1_frame(json.dumps(frame)), DispatchAction)
