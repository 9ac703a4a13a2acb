"""Who may do what: every role, and what a rule is made of."""

from typing import Any, get_args

import msgspec
import pytest

from session_server.reducers.rules.judge import RULES, judge, judge_root
from session_server.reducers.rules.roles import OF_CHATS, as_asker
from session_server.schemas.ahp.actions import (
    Action,
    ActivityChanged,
    ClientSessionAction,
    HostSessionAction,
    InputAnswerChanged,
    InputCompleted,
    IsReadChanged,
    RootConfigChanged,
    TitleChanged,
)
from session_server.schemas.ahp.questions import Draft
from session_server.schemas.ahp.session import RootState
from session_server.schemas.errors import RefusalCode
from session_server.schemas.principals import Role
from tests.reducers.form_actions import FORM, ROLES, SHORT, change
from tests.sessions import AGENT, OWNER, PHONE, SESSION, asking, refused, session

ANSWERING = {InputAnswerChanged, InputCompleted, IsReadChanged}
NOT_FOR_AGENTS = {
    "Truncated",
    "ToolCallConfirmed",
    "ToolCallResultConfirmed",
    "InputAnswerChanged",
    "QueuedMessagesReordered",
    "ModelChanged",
    "AgentChanged",
    "IsArchivedChanged",
    "ConfigChanged",
    "ActiveClientChanged",
    "ActiveClientToolsChanged",
    "CustomizationToggled",
}


def example(kind: type[msgspec.Struct]) -> Any:
    """An action of this type whose validity does not matter: every field a placeholder."""
    placeholders: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.required:
            placeholders[field.name] = ()
    return kind(**placeholders)


@pytest.mark.proves(
    "design.roles.owner",
    "design.roles.agent",
    "design.roles.answerer",
    "design.roles.observer",
    "design.rules.authority-first",
)
@pytest.mark.parametrize("kind", [*get_args(ClientSessionAction), *get_args(HostSessionAction)])
def test_each_role_may_do_what_it_may_and_no_more(kind: type[msgspec.Struct]) -> None:
    """Placeholders are invalid in every way, so a refusal for the role came before all others."""
    is_client_action = kind in get_args(ClientSessionAction)
    allowed = {
        Role.OWNER: is_client_action,
        Role.AGENT: kind.__name__ not in NOT_FOR_AGENTS,
        Role.ANSWERER: kind in ANSWERING,
        Role.OBSERVER: False,
    }
    for role, principal in ROLES.items():
        if allowed[role]:
            continue
        refusal = judge(principal, session(), example(kind))
        assert refusal is not None
        assert refusal.code is RefusalCode.ROLE
        assert refusal.message.endswith(".")


@pytest.mark.proves("design.roles.owner", "design.roles.answerer", "design.roles.agent")
def test_roles_do_get_to_act() -> None:
    record = asking(FORM)
    for principal in (OWNER, PHONE):
        assert judge(principal, record, change(Draft(value=SHORT))) is None
    assert judge(OWNER, record, TitleChanged(title="New")) is None
    assert judge(AGENT, record, ActivityChanged(activity="Thinking")) is None


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
    assert refusal is not None
    assert refusal.code is RefusalCode.OTHER_SESSION


def test_a_rule_is_for_an_action_that_exists() -> None:
    assert set(RULES) <= {*get_args(Action), *OF_CHATS}
