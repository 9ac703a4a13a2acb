"""Channels fold their entries: sessions, the root, known clients and issued tokens."""

import pytest

from session_server.reducers.state.host_channels import (
    PRIVATE_ACTIONS,
    reduce_clients,
    reduce_root_channel,
    reduce_tokens,
)
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp.actions import RootActiveSessionsChanged, TitleChanged
from session_server.schemas.http import IssuedToken, TokenKind
from session_server.schemas.limits import CLIENT_LIFETIME_MS, CLIENTS_KEPT, CLIENTS_PER_PRINCIPAL
from session_server.schemas.log_entries import (
    ClientSeen,
    KnownClients,
    SessionDisposed,
    SessionOpened,
    TokenIssued,
    TokenRevoked,
)
from session_server.schemas.principals import HOST, Role
from tests.sessions import session


def seen(client_id: str, principal_id: str = "ana") -> ClientSeen:
    return ClientSeen(client_id=client_id, principal_id=principal_id, version="0.3.0")


def issued(token_id: str, expires_at: int | None = None) -> TokenIssued:
    token = IssuedToken(
        id=token_id,
        kind=TokenKind.TOKEN,
        principal_id="agent:1",
        role=Role.OWNER,
        created_at=0,
        created_by=HOST,
        expires_at=expires_at,
    )
    return TokenIssued(token=token)


def test_a_session_begins_with_its_opening() -> None:
    opened = SessionOpened(record=session())
    record = reduce_record(None, opened, 1)
    assert record is opened.record
    assert reduce_record(record, TitleChanged(title="Oslo"), 2).public.summary.title == "Oslo"
    with pytest.raises(AssertionError, match="begins with its opening"):
        reduce_record(None, TitleChanged(title="Oslo"), 1)


def test_the_root_begins_without_agents() -> None:
    state = reduce_root_channel(None, RootActiveSessionsChanged(active_sessions=2), 1)
    assert (state.agents, state.active_sessions) == ((), 2)


def test_a_session_that_another_node_disposed_of_does_not_change_the_root() -> None:
    state = reduce_root_channel(None, RootActiveSessionsChanged(active_sessions=2), 1)
    gone = SessionDisposed(session="ahp-session:/a", last_seq=7)
    assert reduce_root_channel(state, gone, 2) is state
    assert type(gone) in PRIVATE_ACTIONS


def test_a_client_is_remembered_from_when_it_was_last_seen() -> None:
    known = reduce_clients(None, seen("laptop"), 1)
    known = reduce_clients(known, seen("phone"), 2)
    known = reduce_clients(known, seen("laptop"), 3)
    assert [(name, client.seen_at) for name, client in known.clients.items()] == [
        ("phone", 2),
        ("laptop", 3),
    ]
    later = reduce_clients(known, seen("tablet"), 3 + CLIENT_LIFETIME_MS)
    assert list(later.clients) == ["laptop", "tablet"]


def test_somebody_with_too_many_clients_loses_an_own_one() -> None:
    known = reduce_clients(None, seen("theirs", "bo"), 0)
    for number in range(CLIENTS_PER_PRINCIPAL + 1):
        known = reduce_clients(known, seen(str(number)), 1)
    assert "theirs" in known.clients
    assert "0" not in known.clients
    assert len(known.clients) == CLIENTS_PER_PRINCIPAL + 1


def test_beyond_the_number_that_is_kept_the_oldest_client_goes() -> None:
    one = reduce_clients(None, seen("0", "p0"), 1).clients["0"]
    full = KnownClients(clients={str(number): one for number in range(CLIENTS_KEPT)})
    known = reduce_clients(full, seen("new", "bo"), 1)
    assert len(known.clients) == CLIENTS_KEPT
    assert "0" not in known.clients


def test_tokens_are_kept_until_they_are_revoked_or_expire() -> None:
    tokens = reduce_tokens(None, issued("a"), 1)
    tokens = reduce_tokens(tokens, issued("b", expires_at=5), 2)
    assert set(tokens.tokens) == {"a", "b"}
    assert set(reduce_tokens(tokens, TokenRevoked(token_id="a"), 3).tokens) == {"b"}
    assert set(reduce_tokens(tokens, issued("c"), 5).tokens) == {"a", "c"}


def test_only_actions_of_the_protocol_are_public() -> None:
    assert TitleChanged not in PRIVATE_ACTIONS
    for action in (SessionOpened(record=session()), seen("a"), issued("a")):
        assert type(action) in PRIVATE_ACTIONS
