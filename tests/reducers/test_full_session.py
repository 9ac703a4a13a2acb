"""What a session that has reached its size limit still accepts."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.batches import batch_of
from session_server.reducers.rules.full_session import makes_room
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    ResponsePartAdded,
    TitleChanged,
    TurnFailed,
)
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    Skipped,
    Submitted,
    TextValue,
)
from session_server.schemas.ahp.turns import SystemNotificationPart
from session_server.schemas.limits import (
    ANSWER_CHARS,
)
from session_server.schemas.principals import Principal
from session_server.schemas.record import (
    SessionRecord,
)
from session_server.schemas.wire import ErrorInfo
from tests.reducers.form_actions import FORGED, FORM, OSLO, complete
from tests.sessions import (
    OWNER,
    PHONE,
    accepted,
    asking,
    stamp,
)


def answer(record: SessionRecord, principal: Principal, given: Answer | None) -> SessionRecord:
    action = InputAnswerChanged(request_id="r", question_id="name", answer=given)
    return accepted(record, principal, action)


ANSWERED = asking(msgspec.structs.replace(FORM, answers={"name": Draft(value=OSLO)}))
LONG = "x" * ANSWER_CHARS


def typed(text: str, question: str = "name") -> InputAnswerChanged:
    answer = Submitted(value=TextValue(value=text), meta=FORGED)
    return InputAnswerChanged(request_id="r", question_id=question, answer=answer)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ((TitleChanged(title="x"),), True),
        ((TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message="short")),), True),
        ((TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message=LONG)),), False),
        ((ResponsePartAdded(turn_id="t", part=SystemNotificationPart(content="x")),), False),
        ((InputAnswerChanged(request_id="r", question_id="name", answer=None),), True),
        ((typed(OSLO.value),), True),
        ((typed(OSLO.value + "!"),), False),
        ((typed(OSLO.value + "!"), complete()), True),
        ((typed(LONG), complete()), False),
        ((typed(OSLO.value, "size"),), False),
        ((InputAnswerChanged(request_id="gone", question_id="name", answer=Skipped()),), False),
        ((InputAnswerChanged(request_id="r", question_id="name", answer=Skipped()),), True),
        ((), False),
    ],
)
def test_a_full_session_takes_what_ends_removes_or_replaces(
    batch: tuple[Any, ...], *, expected: bool
) -> None:
    assert makes_room(ANSWERED, batch) is expected


def test_the_answer_below_a_draft_counts_for_the_size_of_a_full_session() -> None:
    record = answer(asking(FORM), PHONE, Submitted(value=OSLO))
    over = InputAnswerChanged(request_id="r", question_id="name", answer=Draft(value=OSLO))
    assert not makes_room(record, batch_of(record, over, stamp(OWNER)))
    drafted = answer(record, OWNER, Draft(value=OSLO))
    assert makes_room(drafted, batch_of(drafted, over, stamp(OWNER)))
    cleared = InputAnswerChanged(request_id="r", question_id="name")
    assert makes_room(drafted, batch_of(drafted, cleared, stamp(OWNER)))
