"""How a session begins, what it may be called, and pages of its turns."""

import pytest

from session_server.reducers.state.opening import (
    check_selections,
    check_uri,
    is_recording,
    opening_record,
    page_of_turns,
    readiness,
    retitled,
)
from session_server.schemas.ahp.actions import TurnComplete, TurnStarted
from session_server.schemas.ahp.commands import CreateSessionParams, ForkSource
from session_server.schemas.ahp.session import Lifecycle, ModelSelection
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import ID_CHARS
from session_server.schemas.record import PrivateState, SessionRecord
from tests.sessions import AGENT, fold, session, stamp, user_message

NEW = "ahp-session:/new"


def with_turns(*turn_ids: str) -> SessionRecord:
    record = session()
    for turn_id in turn_ids:
        started = TurnStarted(turn_id=turn_id, message=user_message())
        record = fold(record, started, TurnComplete(turn_id=turn_id))
    return record


def fork_of(turn_id: str) -> CreateSessionParams:
    source = ForkSource(session="ahp-session:/1", turn_id=turn_id)
    return CreateSessionParams(channel=NEW, fork=source)


@pytest.mark.parametrize("uri", ["ahp-session:/1", "vscode:/abc", "anything:x"])
def test_any_scheme_of_a_clients_own_is_a_session_uri(uri: str) -> None:
    check_uri(uri)


@pytest.mark.parametrize(
    "uri", ["", "x", ":x", "x:", "ahp-root://", "AHP-chat:/1", "session-server:tokens"]
)
def test_other_addresses_and_reserved_schemes_are_refused(uri: str) -> None:
    with pytest.raises(CommandError) as refused:
        check_uri(uri)
    assert refused.value.rpc_code is ErrorCode.INVALID_PARAMS
    with pytest.raises(CommandError):
        check_uri("x:" + "y" * ID_CHARS)


def test_a_model_that_is_too_large_is_refused() -> None:
    check_selections(CreateSessionParams(channel=NEW, model=ModelSelection(id="m")))
    with pytest.raises(CommandError):
        check_selections(CreateSessionParams(channel=NEW, model=ModelSelection(id="m" * 100_000)))


def test_a_new_session_is_being_created_and_has_no_turns() -> None:
    record = opening_record(CreateSessionParams(channel=NEW), "demo", 7, None, "{}")
    assert record.public.lifecycle is Lifecycle.CREATING
    assert record.public.turns == ()
    assert record.public.summary.created_at == record.public.summary.modified_at == 7
    assert record.private.opened_with == "{}"
    assert readiness(record, stamp(AGENT)) != ()
    assert readiness(session(), stamp(AGENT)) == ()


def test_a_fork_has_the_turns_up_to_the_named_one_and_the_title() -> None:
    source = retitled(with_turns("a", "b", "c"), "Plans")
    forked = opening_record(fork_of("b"), "demo", 7, source)
    assert [turn.id for turn in forked.public.turns] == ["a", "b"]
    assert forked.public.summary.title == "Plans"


@pytest.mark.parametrize(
    ("turn_id", "code"),
    [("active", ErrorCode.TURN_IN_PROGRESS), ("none", ErrorCode.INVALID_PARAMS)],
)
def test_a_turn_that_has_not_ended_cannot_be_forked(turn_id: str, code: ErrorCode) -> None:
    source = fold(with_turns("a"), TurnStarted(turn_id="active", message=user_message()))
    with pytest.raises(CommandError) as refused:
        opening_record(fork_of(turn_id), "demo", 7, source)
    assert refused.value.rpc_code is code


def test_a_title_has_no_characters_that_cannot_be_seen() -> None:
    record = session()
    assert retitled(record, None) is record
    assert retitled(record, "Oslo\u202e").public.summary.title == "Oslo"


def test_pages_of_turns_end_before_the_named_one() -> None:
    turns = with_turns("a", "b", "c").public.turns
    assert page_of_turns(turns, None, 2) == (turns[1:], True)
    assert page_of_turns(turns, "b", 2) == (turns[:1], False)
    assert page_of_turns(turns, "unknown", 2) == ((), False)


def test_only_a_session_that_was_played_back_is_a_recording() -> None:
    played = SessionRecord(public=session().public, private=PrivateState(is_recording=True))
    assert is_recording(played)
    assert not is_recording(session())
    assert not is_recording(None)
