"""What may be asked for is bounded, and the refusal says the number."""

from typing import Any

import msgspec
import pytest

from session_server.schemas.http import NewRequest
from session_server.schemas.limits import ACTIVITY_CHARS, DEADLINE_SECONDS
from session_server.schemas.mcp import AskQuestions, NotifyStatus

QUESTION = {"id": "q", "question": "?"}


def test_a_status_is_one_line() -> None:
    assert msgspec.convert({"status": "x" * ACTIVITY_CHARS}, NotifyStatus).status
    with pytest.raises(msgspec.ValidationError, match=f"length <= {ACTIVITY_CHARS}"):
        msgspec.convert({"status": "x" * (ACTIVITY_CHARS + 1)}, NotifyStatus)


@pytest.mark.parametrize(
    ("shape", "name", "besides"),
    [
        (NewRequest, "expiresIn", {}),
        (AskQuestions, "deadlineSeconds", {"questions": [QUESTION]}),
    ],
    ids=["HTTP", "tool"],
)
def test_a_deadline_is_within_a_year(shape: Any, name: str, besides: dict[str, Any]) -> None:
    msgspec.convert({**besides, name: DEADLINE_SECONDS}, shape)
    for seconds, bound in ((DEADLINE_SECONDS + 1, f"<= {DEADLINE_SECONDS}"), (0, "> 0")):
        with pytest.raises(msgspec.ValidationError, match=bound):
            msgspec.convert({**besides, name: seconds}, shape)
