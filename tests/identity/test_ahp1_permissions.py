"""Who may do what with AHP 0.9 and 1.x: every role, with every action and every command.

As in `test_permissions`, the tables are written down by hand, and what is not in them fails.
"""

from typing import Any, get_args

import pytest

from session_server.host.connection.ahp1_commands import AHP1_COMMANDS
from session_server.reducers.ahp1.uris import chat_uri
from session_server.schemas.ahp import actions, frames
from session_server.schemas.ahp1 import actions as sent
from session_server.schemas.ahp1 import methods
from session_server.schemas.principals import Principal, Role
from tests.ahp.client import ROOT
from tests.host.ahp1 import CHAT, VSCODE, opened
from tests.host.harness import SESSION, hosting, with_session
from tests.identity.test_permissions import (
    ACTIONS,
    AGENT,
    ANSWERER,
    BOTH,
    BY_ROLE,
    FORBIDDEN,
    NO_MAKERS,
    NOT_THERE,
    OBSERVER,
    OWNER,
    OWNERS,
    PEOPLE,
    Command,
    answered,
    in_role,
)

pytestmark = pytest.mark.proves("ahp.ahp1.roles")

NOT_FOUND = -32008
TOOL = {"turnId": "t", "toolCallId": "c"}
MESSAGE = {"text": "Go", "origin": {"kind": "user"}}
ANSWER = {"state": "draft", "value": {"kind": "text", "value": "x"}}
ME = {"clientId": "device", "tools": []}

EXAMPLES: dict[type, tuple[dict[str, Any], set[Role]]] = {
    sent.StartTurn: ({"turnId": "t", "startedAt": "2026-11-17", "message": MESSAGE}, BOTH),
    sent.CancelTurn: ({"turnId": "t"}, BOTH),
    sent.Truncate: ({}, OWNERS),
    sent.ToolCallConfirmed: ({**TOOL, "approved": True, "confirmed": "user-action"}, OWNERS),
    sent.ToolCallComplete: (
        {**TOOL, "result": {"success": True, "pastTenseMessage": "Done"}},
        BOTH,
    ),
    sent.ToolCallResultConfirmed: ({**TOOL, "approved": True}, OWNERS),
    sent.ToolCallContentChanged: ({**TOOL, "content": []}, BOTH),
    sent.InputAnswerChanged: ({"requestId": "r", "questionId": "q", "answer": ANSWER}, PEOPLE),
    sent.InputCompleted: ({"requestId": "r", "response": "accept"}, {OWNER, AGENT, ANSWERER}),
    sent.PendingMessageSet: ({"kind": "queued", "id": "m", "message": MESSAGE}, BOTH),
    sent.PendingMessageRemoved: ({"kind": "queued", "id": "m"}, BOTH),
    sent.QueuedMessagesReordered: ({"order": []}, OWNERS),
    sent.DraftChanged: ({"draft": MESSAGE}, OWNERS),
    sent.ChatIsReadChanged: ({"isRead": True}, {OWNER, AGENT, ANSWERER}),
    sent.ChatIsArchivedChanged: ({"isArchived": True}, OWNERS),
    actions.TitleChanged: ({"title": "New"}, BOTH),
    actions.IsReadChanged: ({"isRead": True}, {OWNER, AGENT, ANSWERER}),
    actions.IsArchivedChanged: ({"isArchived": True}, OWNERS),
    actions.ConfigChanged: ({"config": {"x": 1}}, OWNERS),
    sent.ActiveClientSet: ({"activeClient": ME}, OWNERS),
    sent.ActiveClientRemoved: ({"clientId": "device"}, OWNERS),
    sent.CustomizationToggled: (
        {"id": "p", "enablement": [{"kind": "session", "enabled": True}]},
        OWNERS,
    ),
    actions.RootConfigChanged: ({"config": {"x": 1}}, {*Role}),
}
"""An example of each action, and who may send it. Settings that the host does not have change
nothing, so everybody's are echoed: clients send them when they connect."""


def test_every_action_is_in_the_table() -> None:
    assert set(EXAMPLES) == set(get_args(sent.ClientAction))


def test_a_role_may_do_the_same_in_every_version() -> None:
    for kind, (_, roles) in EXAMPLES.items():
        if kind in ACTIONS and kind is not actions.RootConfigChanged:
            assert roles == ACTIONS[kind]


def channel_of(kind: type) -> str:
    if kind is actions.RootConfigChanged:
        return ROOT
    return CHAT if kind in get_args(sent.ClientChatAction) else SESSION


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
@pytest.mark.parametrize("role", Role)
async def test_every_action_is_refused_to_every_role_that_it_is_not_for(
    role: Role, version: str
) -> None:
    async with hosting() as host:
        await with_session(host)
        channels = (SESSION, CHAT, ROOT)
        someone = await opened(host, "device", *channels, version=version, principal=in_role(role))
        said: dict[type, bool] = {}
        for kind, (fields, _) in EXAMPLES.items():
            action = {"type": kind.__struct_config__.tag, **fields}  # type: ignore[attr-defined]
            envelope = await someone.echo(someone.dispatch(action, channel_of(kind)))
            code = envelope["_meta"].get("code") if "rejectionReason" in envelope else None
            said[kind] = code not in BY_ROLE
        assert said == {kind: role in roles for kind, (_, roles) in EXAMPLES.items()}


@pytest.mark.parametrize("role", Role)
async def test_actions_of_the_host_are_refused_to_everybody(role: Role) -> None:
    """What agents may say in 0.3.0 they say in 0.3.0."""
    async with hosting() as host:
        await with_session(host)
        someone = await opened(host, "device", SESSION, CHAT, ROOT, principal=in_role(role))
        before, position = host.record(SESSION), host.position
        own = {kind.__struct_config__.tag for kind in EXAMPLES}  # type: ignore[attr-defined]
        for kind in get_args(sent.HostAction):
            tag = kind.__struct_config__.tag
            if tag in own:
                continue
            for channel in (SESSION, CHAT, ROOT):
                envelope = await someone.echo(someone.dispatch({"type": tag}, channel))
                assert envelope["_meta"]["code"] == "malformed", tag
        assert (host.record(SESSION), host.position) == (before, position)


async def test_actions_for_a_session_without_access_are_ignored() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        limited = Principal(id="s", role=OWNER, sessions=("ahp-session:/2",))
        stranger = await opened(host, "stranger", ROOT, principal=limited, clientInfo=VSCODE)
        heard, seen, before = len(ana.received), len(stranger.received), host.record(SESSION)
        for kind, (fields, _) in EXAMPLES.items():
            action = {"type": kind.__struct_config__.tag, **fields}  # type: ignore[attr-defined]
            for channel in (SESSION, "people:/1", CHAT, chat_uri("people:/1"), "ahp-chat:/1"):
                stranger.dispatch(action, channel)
        assert await stranger.call("ping") is None
        assert host.record(SESSION) is before
        assert len(ana.received) == heard
        assert len(stranger.received) == seen + 1
        listed = await stranger.call("listSessions")
        assert listed["items"] == []


# Commands

COMMANDS: dict[type, Command] = {
    frames.Ping: Command({}),
    frames.Subscribe: Command({}, CHAT, stranger=NOT_FOUND),
    frames.Unsubscribe: Command({}, CHAT),
    frames.DisposeSession: Command({}, "people:/1", NO_MAKERS, FORBIDDEN),
    frames.PresenceUpdate: Command({}, "ahp-presence:/1"),
    methods.CreateSession: Command({"provider": "people"}, "people:/new", NO_MAKERS, FORBIDDEN),
    methods.ListSessions: Command({}),
    methods.FetchTurns: Command({}, CHAT, stranger=NOT_FOUND),
    methods.ResolveSessionConfig: Command({}),
    methods.Completions: Command({"kind": "x", "text": "x", "offset": 0}, SESSION),
}


def test_every_command_is_in_the_table() -> None:
    assert set(COMMANDS) == set(AHP1_COMMANDS)


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
async def test_every_command_is_answered_as_role_and_reach_allow(kind: Any) -> None:
    command = COMMANDS[kind]
    limited = Principal(id="s", role=OWNER, sessions=("ahp-session:/2",))
    expected: dict[Principal, int | None] = {limited: command.stranger}
    for role in Role:
        expected[in_role(role)] = FORBIDDEN if role in command.refused else None
    for who, code in expected.items():
        async with hosting() as host:
            await with_session(host)
            someone = await opened(host, "device", principal=who)
            assert await answered(someone, kind, command) == code, who
            assert (host.record(SESSION) is None) == (kind is frames.DisposeSession and not code)


@pytest.mark.parametrize("channel", [SESSION, "people:/1", "ahp-chat:/1", chat_uri("people:/1")])
async def test_no_name_leads_a_stranger_to_a_session(channel: str) -> None:
    async with hosting() as host:
        await with_session(host)
        limited = Principal(id="s", role=OBSERVER, sessions=("ahp-session:/2",))
        stranger = await opened(host, "device", channel, principal=limited, clientInfo=VSCODE)
        assert stranger.mirrors == {}
        assert (await stranger.call("subscribe", channel))["code"] in (NOT_THERE, NOT_FOUND)
        result = await stranger.call("disposeSession", channel)
        assert result["code"] == FORBIDDEN
