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
from session_server.schemas.ahp.questions import Draft, Skipped, Submitted, TextValue
from session_server.schemas.ahp.turns import SystemNotificationPart
from session_server.schemas.limits import ANSWER_CHARS
from session_server.schemas.wire import ErrorInfo
from tests.reducers.form_actions import FORGED, FORM, OSLO, answer, change, complete
from tests.sessions import OWNER, PHONE, asking, stamp

ANSWERED = asking(msgspec.structs.replace(FORM, answers={"name": Draft(value=OSLO)}))
LONG = "x" * ANSWER_CHARS


def typed(text: str, question: str = "name") -> InputAnswerChanged:
    return change(Submitted(value=TextValue(value=text), meta=FORGED), question)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ((TitleChanged(title="x"),), True),
        ((TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message="short")),), True),
        ((TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message=LONG)),), False),
        ((ResponsePartAdded(turn_id="t", part=SystemNotificationPart(content="x")),), False),
        ((change(None),), True),
        ((typed(OSLO.value),), True),
        ((typed(OSLO.value + "!"),), False),
        ((typed(OSLO.value + "!"), complete()), True),
        ((typed(LONG), complete()), False),
        ((typed(OSLO.value, "size"),), False),
        ((change(Skipped(), request_id="gone"),), False),
        ((change(Skipped()),), True),
        ((), False),
    ],
)
def test_a_full_session_takes_what_ends_removes_or_replaces(
    batch: tuple[Any, ...], *, expected: bool
) -> None:
    assert makes_room(ANSWERED, batch) is expected


def test_the_answer_below_a_draft_counts_for_the_size_of_a_full_session() -> None:
    record = answer(asking(FORM), PHONE, Submitted(value=OSLO))
    over = change(Draft(value=OSLO))
    assert not makes_room(record, batch_of(record, over, stamp(OWNER)))
    drafted = answer(record, OWNER, Draft(value=OSLO))
    assert makes_room(drafted, batch_of(drafted, over, stamp(OWNER)))
    assert makes_room(drafted, batch_of(drafted, change(None), stamp(OWNER)))
