"""What holds of the public reducers for any state and any action, sensible together or not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_server.reducers.state.session import reduce_root, reduce_session
from session_server.schemas.ahp.actions import MetaChanged, RootAction, SessionAction
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.codec import decode_session_state, encode
from tests.reducers.cases import plain
from tests.sessions import session
from tests.strategies import root_actions, root_states, session_actions, session_states, times

IDLE = session(meta={"mark": 1}).public


@pytest.mark.proves("design.reduce.no-op", "design.reduce.unmutated")
@example(state=IDLE, action=MetaChanged(meta={"mark": True}), at=1)
@example(state=IDLE, action=MetaChanged(meta={"mark": 1.0}), at=1)
@given(state=session_states, action=session_actions, at=times)
def test_an_action_gives_another_state_or_the_very_same(
    state: SessionState, action: SessionAction, at: int
) -> None:
    before = encode(state), encode(action)
    after = reduce_session(state, action, at)
    assert (after is state) is (plain(after) == plain(state))
    assert (encode(state), encode(action)) == before


@pytest.mark.proves("design.reduce.deterministic", "design.decode.round-trip")
@given(state=session_states, actions=st.lists(session_actions, max_size=4), at=times)
def test_any_history_ends_in_the_same_state_that_survives_encoding(
    state: SessionState, actions: list[SessionAction], at: int
) -> None:
    ends = []
    for start in (state, decode_session_state(encode(state))):
        end = start
        for action in actions:
            end = reduce_session(end, action, at)
        ends.append(encode(end))
    assert ends[0] == ends[1] == encode(decode_session_state(ends[0]))


@pytest.mark.proves("design.reduce.no-op", "design.reduce.unmutated")
@given(state=root_states, action=root_actions)
def test_an_action_gives_another_root_or_the_very_same(
    state: RootState, action: RootAction
) -> None:
    before = encode(state), encode(action)
    after = reduce_root(state, action)
    assert (after is state) is (plain(after) == plain(state))
    assert encode(reduce_root(state, action)) == encode(after)
    assert (encode(state), encode(action)) == before
