"""Who may do what: every role, with every command, every action and every address.

The tables are written down by hand. Whatever is not in them fails, so that a new action or address
has to say whose it is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import httpx2
import msgspec
import pytest
from fastapi.routing import iter_route_contexts

from session_server.app import create_app
from session_server.schemas.ahp import actions, frames
from session_server.schemas.codec import encode
from session_server.schemas.principals import Principal, Role
from tests.host.harness import SESSION, Client, hosting, joined, with_session
from tests.http.sessions import Api
from tests.identity.credentialed_clients import (
    TOKEN,
    UPGRADE,
    WITH_TOKEN,
    api,
    bearer,
    issued,
    name_of,
    new_session,
    shared,
)
from tests.schemas.wire_examples import CLIENT_ACTIONS, HOST_ACTIONS
from tests.servers import ServerProcess, serving

OWNER, AGENT, ANSWERER, OBSERVER = Role

# Actions: who may say them, by role alone

OWNERS = {OWNER}
AGENTS = {AGENT}
BOTH = {OWNER, AGENT}
PEOPLE = {OWNER, ANSWERER}

ACTIONS: dict[type, set[Role]] = {
    actions.RootConfigChanged: OWNERS,
    actions.RootAgentsChanged: set(),
    actions.RootActiveSessionsChanged: set(),
    actions.RootTerminalsChanged: set(),
    actions.TurnStarted: BOTH,
    actions.TurnCancelled: BOTH,
    actions.Truncated: OWNERS,
    actions.ToolCallConfirmed: OWNERS,
    actions.ToolCallComplete: BOTH,
    actions.ToolCallResultConfirmed: OWNERS,
    actions.ToolCallContentChanged: BOTH,
    actions.InputAnswerChanged: PEOPLE,
    actions.InputCompleted: {OWNER, AGENT, ANSWERER},
    actions.PendingMessageSet: BOTH,
    actions.PendingMessageRemoved: BOTH,
    actions.QueuedMessagesReordered: OWNERS,
    actions.TitleChanged: BOTH,
    actions.ModelChanged: OWNERS,
    actions.AgentChanged: OWNERS,
    actions.IsReadChanged: {OWNER, AGENT, ANSWERER},
    actions.IsArchivedChanged: OWNERS,
    actions.ConfigChanged: OWNERS,
    actions.ActiveClientChanged: OWNERS,
    actions.ActiveClientToolsChanged: OWNERS,
    actions.CustomizationToggled: OWNERS,
    actions.Ready: AGENTS,
    actions.CreationFailed: AGENTS,
    actions.Delta: AGENTS,
    actions.Reasoning: AGENTS,
    actions.ResponsePartAdded: AGENTS,
    actions.TurnComplete: AGENTS,
    actions.TurnFailed: AGENTS,
    actions.Usage: AGENTS,
    actions.ToolCallStart: AGENTS,
    actions.ToolCallDelta: AGENTS,
    actions.ToolCallReady: AGENTS,
    actions.InputRequested: AGENTS,
    actions.ActivityChanged: AGENTS,
    actions.MetaChanged: AGENTS,
    actions.ChangesetsChanged: AGENTS,
    actions.ServerToolsChanged: AGENTS,
    actions.CustomizationsChanged: AGENTS,
    actions.CustomizationUpdated: AGENTS,
    actions.CustomizationRemoved: AGENTS,
    actions.McpServerStateChanged: AGENTS,
}

BY_ROLE = ("role", "malformed")
"""Codes of refusals that come before the state is looked at; some shapes a role cannot even say."""


def test_every_action_is_in_the_table() -> None:
    assert set(ACTIONS) == set(get_args(actions.Action))


def in_role(role: Role) -> Principal:
    return Principal(id=f"u-{role}", role=role)


@pytest.mark.proves(
    "design.roles.owner",
    "design.roles.agent",
    "design.roles.answerer",
    "design.roles.observer",
    "design.rules.authority-first",
)
@pytest.mark.parametrize("role", Role)
async def test_every_action_is_refused_to_every_role_that_it_is_not_for(role: Role) -> None:
    async with hosting() as host:
        await with_session(host)
        someone = await joined(host, in_role(role), "device", SESSION, "ahp-root://")
        said: dict[type, set[bool]] = {}
        for action in (*CLIENT_ACTIONS, *HOST_ACTIONS):
            envelope = await someone.act(plain(action), channel_of(action))
            code = envelope["_meta"].get("code") if "rejectionReason" in envelope else None
            said.setdefault(type(action), set()).add(code not in BY_ROLE)
        assert said == {kind: {role in roles} for kind, roles in ACTIONS.items()}


def plain(action: actions.Action) -> Any:
    return msgspec.json.decode(encode(action))


def channel_of(action: actions.Action) -> str:
    return "ahp-root://" if isinstance(action, get_args(actions.RootAction)) else SESSION


async def test_actions_for_a_session_without_access_are_ignored() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        stranger = Client(host, Principal(id="s", role=OWNER, sessions=("ahp-session:/2",)))
        await stranger.initialize("stranger")
        heard, before = len(ana.received), host.record(SESSION)
        for action in CLIENT_ACTIONS:
            stranger.dispatch(plain(action), channel_of(action))
        assert await stranger.call("ping") is None
        assert host.record(SESSION) is before
        assert len(ana.received) == heard
        assert all("params" not in frame for frame in stranger.received)


# Commands: what each is answered with, for those that a role or a limit makes a difference to

FORBIDDEN, NOT_THERE = -32009, -32001


class Command(NamedTuple):
    params: dict[str, Any]
    channel: str = "ahp-root://"
    refused: tuple[Role, ...] = ()
    stranger: int | None = None
    always: int | None = None


NO_MAKERS = (ANSWERER, OBSERVER)
HANDSHAKE: dict[str, Any] = {"protocolVersions": ["0.3.0"], "clientId": "x"}
RESUMED: dict[str, Any] = {"clientId": "x", "lastSeenServerSeq": 0, "subscriptions": []}
COMPLETED: dict[str, Any] = {"kind": "x", "text": "x", "offset": 0}

COMMANDS: dict[type, Command] = {
    frames.Ping: Command({}),
    frames.Initialize: Command(HANDSHAKE, always=-32601),  # a second one
    frames.Reconnect: Command(RESUMED, always=-32601),
    frames.Subscribe: Command({}, SESSION, stranger=NOT_THERE),
    frames.FetchTurns: Command({}, SESSION, stranger=NOT_THERE),
    frames.ListSessions: Command({}),
    frames.CreateSession: Command({"provider": "people"}, "x:new", NO_MAKERS, FORBIDDEN),
    frames.DisposeSession: Command({}, SESSION, NO_MAKERS, FORBIDDEN),
    frames.Authenticate: Command({"resource": "x", "token": "y"}, always=-32008),
    frames.ResolveSessionConfig: Command({}, always=-32601),
    frames.SessionConfigCompletions: Command({"property": "x"}, always=-32601),
    frames.Completions: Command(COMPLETED, SESSION, always=-32601),
    frames.Unsubscribe: Command({}, SESSION),
    frames.PresenceUpdate: Command({}, "ahp-presence:/1"),
}


def test_every_command_is_in_the_table() -> None:
    assert set(COMMANDS) == set(get_args(frames.Command))


async def answered(client: Client, kind: Any, command: Command) -> int | None:
    """The code of the error, if it is one. A notification has no answer, and does no harm."""
    method = kind.__struct_config__.tag
    if "id" not in kind.__struct_fields__:
        params = {"channel": command.channel, **command.params}
        client.say({"jsonrpc": "2.0", "method": method, "params": params})
        assert await client.call("ping") is None
        return None
    answer = await client.call(method, command.channel, **command.params)
    return None if answer is None else answer.get("code")


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
            someone = await joined(host, who, "device")
            assert await answered(someone, kind, command) == (command.always or code), who
            assert host.record(SESSION) is not None or (kind is frames.DisposeSession and not code)


# HTTP: whom each address serves

EVERYBODY = {"owner", "agent", "answerer", "observer", "guest", "onlooker", "stranger"}
HERE = EVERYBODY - {"stranger"}
WHOLE = {"owner", "agent", "answerer", "observer"}
ANSWERING = {"owner", "answerer", "guest"}
MAKING = {"owner", "agent"}
ONLY_OWNER = {"owner"}

OPEN = re.compile(
    r"/(healthz|readyz|openapi\.json|docs|docs/assets/\{name\}|"
    r"page/\{version\}/\{name:path\}|[\w-]+\.(svg|json))?"
)
"""What anybody may fetch: whether the host runs, the page's own files, and the docs."""

ADDRESSES: dict[str, set[str]] = {
    "GET /v1/sessions": EVERYBODY,
    "POST /v1/sessions": MAKING,
    "GET /v1/sessions/{id}": HERE,
    "DELETE /v1/sessions/{id}": MAKING,
    "POST /v1/sessions/{id}/requests": MAKING,
    "GET /v1/sessions/{id}/requests": HERE,
    "GET /v1/sessions/{id}/requests/{rid}": HERE,
    "DELETE /v1/sessions/{id}/requests/{rid}": ONLY_OWNER,  # and whoever asked it: an owner, here
    "PUT /v1/sessions/{id}/requests/{rid}/answers/{qid}": ANSWERING,
    "DELETE /v1/sessions/{id}/requests/{rid}/answers/{qid}": ANSWERING,
    "POST /v1/sessions/{id}/requests/{rid}/complete": ANSWERING,
    "POST /v1/sessions/{id}/turns": MAKING,
    "DELETE /v1/sessions/{id}/turns/active": ONLY_OWNER,  # agents: unless others asked in it
    "POST /v1/sessions/{id}/calls": MAKING,
    "GET /v1/sessions/{id}/calls": HERE,
    "GET /v1/calls/{cid}": ONLY_OWNER,  # and whoever made the call
    "DELETE /v1/calls/{cid}": ONLY_OWNER,
    "GET /v1/sessions/{id}/events": HERE,
    "GET /v1/events": EVERYBODY,
    "GET /v1/sessions/{id}/export": ONLY_OWNER,
    "POST /v1/replay": ONLY_OWNER,
    "POST /v1/sessions/{id}/shares": ONLY_OWNER,
    "GET /v1/sessions/{id}/shares": ONLY_OWNER,
    "DELETE /v1/sessions/{id}/shares/{share}": ONLY_OWNER,
    "POST /v1/tokens": ONLY_OWNER,
    "GET /v1/tokens": ONLY_OWNER,
    "DELETE /v1/tokens/{token}": ONLY_OWNER,
    "GET /v1/me": EVERYBODY,
    "GET /metrics": WHOLE,
    "GET /ahp": EVERYBODY,
    "POST /mcp": MAKING | {"stranger"},
    "POST /mcp/{server}": MAKING | {"stranger"},
}

BODIES: dict[str, Any] = {
    "POST /v1/sessions/{id}/requests": {"message": "Sure?"},
    "PUT /v1/sessions/{id}/requests/{rid}/answers/{qid}": {
        "state": "draft",
        "value": {"kind": "text", "value": "x"},
    },
    "POST /v1/sessions/{id}/requests/{rid}/complete": {"response": "decline"},
    "POST /v1/sessions/{id}/turns": {"text": "Go"},
    "POST /v1/sessions/{id}/calls": {"server": "nobody", "tool": "x"},
    "POST /v1/tokens": {"name": "Bo"},
}

NOT_IN_REACH = ("sessionNotFound", "unknownCall")
"""What is out of somebody's reach is not there for them."""


def addresses() -> Iterator[str]:
    """All that the application serves; what has no methods of its own is asked for by one."""
    for route in iter_route_contexts(create_app("memory:").routes):
        path = str(route.path)
        for method in sorted(set(route.methods or ()) - {"HEAD"}) or ["GET"]:
            yield f"{'POST' if path.startswith('/mcp') else method} {path}"


def is_open(address: str) -> bool:
    method, _, path = address.partition(" ")
    return method == "GET" and OPEN.fullmatch(path) is not None


def test_every_address_is_in_the_table() -> None:
    assert {address for address in addresses() if not is_open(address)} == set(ADDRESSES)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    config = tmp_path_factory.mktemp("mcp") / "mcp.json"
    config.write_text('{"mcpServers": {"nobody": {"command": "false"}}}')
    with serving("memory:", *WITH_TOKEN, "--mcp-config", str(config)) as running:
        yield running


class Place(NamedTuple):
    """A session with an open question, and everything in it that an address can name."""

    owner: Api
    uri: str

    def names(self, address: str) -> dict[str, str]:
        """Made when asked for: what is tried may be its end."""
        names = {"id": name_of(self.uri), "qid": "name", "server": "nobody"}
        path = f"/v1/sessions/{names['id']}"
        if "{rid}" in address:
            names["rid"] = self.owner.ask(path)["id"]
        if address.endswith("/turns/active"):
            self.owner.post(f"{path}/turns", json={"text": "Go"})
            assert self.owner.get(f"{path}/requests?wait=10").json()["items"]
        if "{share}" in address:
            names["share"] = shared(self.owner, self.uri)["id"]
        if "{token}" in address:
            names["token"] = issued(self.owner, "observer")["issued"]["id"]
        if "{cid}" in address:
            called = self.owner.post(f"{path}/calls", json={"server": "nobody", "tool": "x"})
            names["cid"] = called.json()["id"]
        return names


def credentials(place: Place) -> dict[str, str]:
    """One of each: four roles, two kinds of link, and a token for another session."""
    owner, uri = place.owner, place.uri
    tokens = {role: issued(owner, role)["token"] for role in ("agent", "answerer", "observer")}
    return {
        "owner": TOKEN,
        **tokens,
        "guest": shared(owner, uri, role="answerer")["token"],
        "onlooker": shared(owner, uri, role="observer")["token"],
        "stranger": issued(owner, "owner", sessions=[new_session(owner)])["token"],
    }


class Answer(NamedTuple):
    status: int
    code: str | None

    @property
    def is_service(self) -> bool:
        """As far as it depends on who asked."""
        return self.status not in (401, 403) and self.code not in NOT_IN_REACH


def answer_to(client: Api, address: str, names: dict[str, str], token: str | None) -> Answer:
    """Only how it begins: some answers never end."""
    method, _, path = address.partition(" ")
    options: dict[str, Any] = {"json": BODIES.get(address, {})} if method in ("POST", "PUT") else {}
    headers = {"Accept": "application/json, text/event-stream", **bearer(token)}
    request = client.build_request(method, path.format(**names), headers=headers, **options)
    if token is None:
        del request.headers["Authorization"]
    if path == "/ahp":
        request.headers.update(UPGRADE)
    answer = client.send(request, stream=True)
    try:
        is_problem = answer.headers.get("content-type") == "application/problem+json"
        problem = msgspec.json.decode(answer.read()) if is_problem else {}
        return Answer(answer.status_code, problem.get("code"))
    finally:
        answer.close()


@pytest.mark.slow
@pytest.mark.proves("design.names.http")
@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_serves_whom_it_is_for_and_nobody_else(
    server: ServerProcess, address: str
) -> None:
    with api(server) as owner:
        place = Place(owner, new_session(owner, provider="demo"))
        tokens = credentials(place)
        served, answers = set(), {}
        for who, token in tokens.items():
            if address == "DELETE /v1/sessions/{id}":
                place = Place(owner, new_session(owner))
            answer = answer_to(owner, address, place.names(address), token)
            assert answer.status != 500, (who, answer)
            answers[who] = answer
            if answer.is_service:
                served.add(who)
        assert served == ADDRESSES[address], answers
        nobody = answer_to(owner, address, place.names(address), None)
        assert nobody.status == (403 if address == "GET /ahp" else 401)


@pytest.mark.parametrize("address", [address for address in addresses() if is_open(address)])
def test_what_is_open_is_open_to_all(server: ServerProcess, address: str) -> None:
    path = address.partition(" ")[2]
    if Path(path).suffix or path in ("/", "/healthz", "/readyz", "/docs"):
        assert httpx2.get(f"{server.url}{path}").status_code == 200
