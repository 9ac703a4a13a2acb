"""Who may do what: every role, and what a rule is made of."""

from typing import get_args

import msgspec
import pytest

from session_server.reducers.rules.judge import RULES, judge, judge_root
from session_server.reducers.rules.roles import OF_CHATS, as_asker
from session_server.schemas.ahp.actions import (
    Action,
    ActivityChanged,
    RootConfigChanged,
    TitleChanged,
)
from session_server.schemas.ahp.session import RootState
from session_server.schemas.errors import RefusalCode
from tests.sessions import AGENT, OWNER, PHONE, SESSION, refused, session


def test_an_owner_asks_as_its_agent_does_and_others_as_they_are() -> None:
    action = ActivityChanged(activity="Thinking")
    assert refused(session(), OWNER, action).code is RefusalCode.ROLE
    assert judge(as_asker(OWNER), session(), action) is None
    assert as_asker(OWNER).id == OWNER.id
    assert as_asker(AGENT) is AGENT
    assert as_asker(PHONE) is PHONE


@pytest.mark.proves("design.roles.one-session")
def test_a_principal_of_another_session_is_refused() -> None:
    mine = msgspec.structs.replace(OWNER, sessions=(SESSION,))
    other = msgspec.structs.replace(OWNER, sessions=("ahp-session:/2",))
    action = TitleChanged(title="New")
    assert judge(mine, session(), action) is None
    assert refused(session(), other, action).code is RefusalCode.OTHER_SESSION
    refusal = judge_root(mine, RootState(agents=()), RootConfigChanged(config={}))
    assert refusal.code is RefusalCode.OTHER_SESSION


def test_a_rule_is_for_an_action_that_exists() -> None:
    assert set(RULES) <= {*get_args(Action), *OF_CHATS}
