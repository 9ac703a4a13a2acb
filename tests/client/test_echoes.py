"""What can be told from a snapshot about actions whose envelopes were missed."""

import pytest

from session_server.client.echoes import (
    Delivery,
    delivery_in,
    is_closing,
    is_deferred_echo,
    is_echo,
    is_superseded,
)
from session_server.schemas.ahp.actions import (
    Action,
    Delta,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    PendingKind,
    PendingMessageRemoved,
    PendingMessageSet,
    ResponsePartAdded,
    SessionAction,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.ahp.questions import (
    AnswerMeta,
    CompletionMeta,
    Draft,
    InputRequest,
    RequestMeta,
    ResponseKind,
    Reviewed,
    Submitted,
    TextValue,
)
from session_server.schemas.ahp.turn_messages import PendingMessage
from session_server.schemas.ahp.turns import MarkdownPart, Turn, TurnState
from session_server.schemas.principals import Author
from session_server.schemas.record import SessionRecord
from tests.client.model_clients import completed, draft, request, submitted
from tests.sessions import OWNER, accepted, asking, in_turn, session, user_message

MARK = AnswerMeta(by=Author(id="u"), at=5)
MARKED = Draft(value=TextValue(value="x"), meta=MARK)
ANSWER = Submitted(value=TextValue(value="y"), meta=MARK)
ANSWERED = asking(InputRequest(id="r1", questions=request("r1").questions, answers={"q1": ANSWER}))
CLEARED = InputAnswerChanged(request_id="r1", question_id="q1")
REVIEWED = InputCompleted(
    request_id="r1",
    response=ResponseKind.ACCEPT,
    meta=CompletionMeta(reviewed=Reviewed(content={"q1": "x"})),
)


def turn(turn_id: str, state: TurnState = TurnState.COMPLETE) -> Turn:
    return Turn(id=turn_id, message=user_message(), response_parts=(), state=state)


def message(text: str = "later") -> PendingMessageSet:
    return PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message(text))


WAITING = (PendingMessage(id="p", message=user_message("later")),)


@pytest.mark.parametrize(
    ("sent", "received", "same"),
    [
        (draft("x"), InputAnswerChanged(request_id="r1", question_id="q1", answer=MARKED), True),
        (draft("x"), draft("y"), False),
        (draft("x"), submitted("x"), False),
        (draft("x"), draft("x", "q2"), False),
        (
            InputCompleted(
                request_id="r1",
                response=ResponseKind.ACCEPT,
                answers={"q1": Submitted(value=TextValue(value="x"))},
            ),
            InputCompleted(
                request_id="r1",
                response=ResponseKind.ACCEPT,
                answers={"q1": Submitted(value=TextValue(value="x"), meta=MARK)},
            ),
            True,
        ),
        (completed(), completed(response=ResponseKind.DECLINE), False),
        (REVIEWED, InputCompleted(request_id="r1", response=ResponseKind.ACCEPT), True),
        (CLEARED, InputAnswerChanged(request_id="r1", question_id="q1", answer=ANSWER), True),
        (CLEARED, InputAnswerChanged(request_id="r1", question_id="q2"), False),
        (CLEARED, completed(), False),
        (
            InputRequested(request=InputRequest(id="r", meta=RequestMeta(call="forged"))),
            InputRequested(request=InputRequest(id="r")),
            True,
        ),
        (TitleChanged(title="a"), TurnComplete(turn_id="a"), False),
    ],
)
def test_an_echo_is_known_by_what_we_sent(sent: Action, received: Action, same: bool) -> None:
    assert is_echo(sent, received) is same


def test_a_held_completion_is_settled_by_the_hosts_own_one() -> None:
    assert is_deferred_echo(TurnComplete(turn_id="t"), TurnComplete(turn_id="t"))
    assert not is_deferred_echo(TurnComplete(turn_id="t"), TurnComplete(turn_id="u"))
    assert not is_deferred_echo(TitleChanged(title="a"), TitleChanged(title="a"))


@pytest.mark.parametrize(
    ("record", "action", "delivery"),
    [
        (asking(request("r1")), draft("x"), Delivery.REPEAT),
        (asking(request("r2")), draft("x"), Delivery.REPEAT),
        (
            asking(
                InputRequest(id="r1", questions=request("r1").questions, answers={"q1": MARKED})
            ),
            draft("x"),
            Delivery.DONE,
        ),
        (
            asking(request("r1")),
            InputAnswerChanged(request_id="r1", question_id="q1"),
            Delivery.DONE,
        ),
        (ANSWERED, CLEARED, Delivery.UNKNOWN),
        (asking(request("r2")), CLEARED, Delivery.REPEAT),
        (accepted(asking(request("r1")), OWNER, draft("x")), CLEARED, Delivery.REPEAT),
        (asking(request("r1")), completed(), Delivery.REPEAT),
        (asking(), completed(), Delivery.REPEAT),
        (in_turn(), TurnStarted(turn_id="t", message=user_message()), Delivery.DONE),
        (
            session(turns=(turn("t"),)),
            TurnStarted(turn_id="t", message=user_message()),
            Delivery.DONE,
        ),
        (session(), TurnStarted(turn_id="t", message=user_message()), Delivery.REPEAT),
        (
            session(turns=(turn("t", TurnState.CANCELLED),)),
            TurnCancelled(turn_id="t"),
            Delivery.DONE,
        ),
        (session(turns=(turn("t"),)), TurnCancelled(turn_id="t"), Delivery.REPEAT),
        (in_turn(), TurnCancelled(turn_id="t"), Delivery.REPEAT),
        (session(turns=(turn("a"),)), Truncated(turn_id="a"), Delivery.DONE),
        (session(turns=(turn("a"), turn("b"))), Truncated(turn_id="a"), Delivery.UNKNOWN),
        (in_turn(turns=(turn("a"),)), Truncated(turn_id="a"), Delivery.UNKNOWN),
        (session(), Truncated(), Delivery.DONE),
        (session(turns=(turn("a"),)), Truncated(), Delivery.UNKNOWN),
        (session(queued_messages=WAITING), message(), Delivery.DONE),
        (session(steering_message=WAITING[0]), message(), Delivery.DONE),
        (session(queued_messages=WAITING), message("other"), Delivery.UNKNOWN),
        (session(), message(), Delivery.UNKNOWN),
        (session(), PendingMessageRemoved(kind=PendingKind.QUEUED, id="p"), Delivery.DONE),
        (
            session(queued_messages=WAITING),
            PendingMessageRemoved(kind=PendingKind.QUEUED, id="p"),
            Delivery.REPEAT,
        ),
        (in_turn(), Delta(turn_id="t", part_id="p", content="x"), Delivery.UNKNOWN),
        (
            in_turn(),
            ResponsePartAdded(turn_id="t", part=MarkdownPart(id="p", content="")),
            Delivery.UNKNOWN,
        ),
        (session(), TitleChanged(title="a"), Delivery.REPEAT),
    ],
)
def test_a_snapshot_tells_what_can_be_seen_in_it(
    record: SessionRecord, action: SessionAction, delivery: Delivery
) -> None:
    assert delivery_in(record.public, action) is delivery


def test_a_draft_gives_way_to_a_later_one_but_not_to_its_clearing() -> None:
    """The clearing alone would take away the answer below the draft."""
    assert is_superseded(draft("x"), draft("xy"))
    assert is_superseded(draft("x"), submitted("xy"))
    assert not is_superseded(draft("x"), CLEARED)
    assert not is_superseded(CLEARED, draft("x"))
    assert not is_superseded(submitted("x"), draft("xy"))
    assert is_closing(CLEARED, draft("x"))
    assert is_closing(completed(), draft("x"))
    assert not is_closing(draft("x"), draft("xy"))
    assert not is_closing(CLEARED, draft("x", "q2"))
    assert not is_closing(CLEARED, completed())
