"""Rules of what a session is and has: title, configuration, clients, and who cannot act in it."""

from typing import Any, get_args

import msgspec
import pytest

from session_server.reducers.rules.input_rules import provenance_of
from session_server.reducers.rules.judge import RULES, judge, judge_root
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    ActiveClientToolsChanged,
    ActivityChanged,
    AgentChanged,
    ClientAction,
    ConfigChanged,
    CustomizationToggled,
    ModelChanged,
    ResponsePartAdded,
    RootActiveSessionsChanged,
    RootConfigChanged,
    TitleChanged,
    TurnCancelled,
    TurnComplete,
)
from session_server.schemas.ahp.customizations import Plugin, UnknownCustomization
from session_server.schemas.ahp.questions import Draft, RequestMeta
from session_server.schemas.ahp.session import (
    ActiveClient,
    AgentSelection,
    ConfigPropertySchema,
    ConfigSchema,
    Lifecycle,
    ModelSelection,
    RootConfigState,
    RootState,
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigState,
)
from session_server.schemas.ahp.turns import ActiveTurn, MarkdownPart, SystemNotificationPart
from session_server.schemas.errors import RefusalCode
from session_server.schemas.limits import ACTIVITY_CHARS, SELECTION_BYTES, TITLE_CHARS
from session_server.schemas.principals import Provenance
from tests.reducers.form_actions import (
    FORM,
    SHORT,
    asked,
    change,
    complete,
    recording,
    start,
    verdict,
)
from tests.sessions import (
    AGENT,
    OWNER,
    WATCHER,
    asked_by,
    asking,
    in_turn,
    refused,
    session,
    user_message,
)

# What a session is and has


def test_a_title_is_bounded() -> None:
    assert judge(OWNER, session(), TitleChanged(title="x" * TITLE_CHARS)) is None
    long = TitleChanged(title="x" * (TITLE_CHARS + 1))
    assert refused(session(), OWNER, long).code is RefusalCode.LIMIT


def prop(kind: Any, **fields: Any) -> SessionConfigPropertySchema:
    fields = {"session_mutable": True, **fields}
    return SessionConfigPropertySchema(type=kind, title=f"The {kind}", **fields)


SETTINGS = {
    "name": prop("string"),
    "mode": prop("string", enum=("fast", "slow")),
    "branch": prop("string", enum=("main",), enum_dynamic=True),
    "size": prop("number"),
    "flag": prop("boolean"),
    "list": prop("array", items=ConfigPropertySchema(type="string", title="Item")),
    "any": prop("array"),
    "map": prop(
        "object",
        properties={"a": ConfigPropertySchema(type="number", title="A")},
        required=("a",),
    ),
    "fixed": prop("string", session_mutable=None),
    "shown": prop("string", read_only=True),
}
CONFIGURED = session(
    config=SessionConfigState(
        schema=SessionConfigSchema(type="object", properties=SETTINGS), values={}
    )
)


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        ({}, True),
        ({"name": "x", "mode": "fast", "size": 1.5, "flag": True}, True),
        ({"branch": "feature"}, True),
        ({"list": ["a"], "any": [1, {}], "map": {"a": 1, "b": "?"}}, True),
        ({"name": 1}, False),
        ({"mode": "warp"}, False),
        ({"size": True}, False),
        ({"flag": "yes"}, False),
        ({"list": [1]}, False),
        ({"list": "a"}, False),
        ({"map": {"a": "1"}}, False),
        ({"map": {}}, False),
        ({"fixed": "x"}, False),
        ({"shown": "x"}, False),
        ({"unheard": "x"}, False),
    ],
)
def test_configuration_must_fit_its_schema(config: dict[str, Any], fits: bool) -> None:
    expected = None if fits else RefusalCode.NOT_CONFIGURABLE
    assert verdict(OWNER, CONFIGURED, ConfigChanged(config=config)) is expected


def test_a_session_without_configuration_takes_none() -> None:
    refusal = refused(session(), OWNER, ConfigChanged(config={"name": "x"}))
    assert refusal.code is RefusalCode.NOT_CONFIGURABLE


def test_the_roots_configuration_is_held_to_its_schema_too() -> None:
    properties = {"theme": ConfigPropertySchema(type="string", title="Theme")}
    config = RootConfigState(schema=ConfigSchema(type="object", properties=properties), values={})
    root = RootState(agents=(), config=config)
    assert judge_root(OWNER, root, RootConfigChanged(config={"theme": "dark"})) is None
    dark = RootConfigChanged(config={"theme": "dark"})
    counted = RootActiveSessionsChanged(active_sessions=1)
    for principal, state, action, code in (
        (OWNER, root, RootConfigChanged(config={"theme": 1}), RefusalCode.NOT_CONFIGURABLE),
        (OWNER, RootState(agents=()), dark, RefusalCode.NOT_CONFIGURABLE),
        (WATCHER, root, dark, RefusalCode.ROLE),
        (AGENT, root, counted, RefusalCode.ROLE),
        (AGENT, root, RootConfigChanged(config={}), RefusalCode.ROLE),
    ):
        refusal = judge_root(principal, state, action)
        assert refusal.code is code
    required = ConfigSchema(type="object", properties=properties, required=("theme",))
    needy = RootState(agents=(), config=RootConfigState(schema=required, values={"theme": "x"}))
    emptied = RootConfigChanged(config={}, replace=True)
    assert judge_root(OWNER, needy, emptied) is not None
    assert judge_root(OWNER, needy, RootConfigChanged(config={})) is None
    swapped = RootConfigChanged(config={"theme": "y"}, replace=True)
    assert judge_root(OWNER, needy, swapped) is None


def test_an_action_of_another_channel_is_refused() -> None:
    of_root = judge(OWNER, session(), RootConfigChanged(config={}))  # type: ignore[arg-type]
    of_session = judge_root(OWNER, RootState(agents=()), TitleChanged(title="x"))
    for refusal in (of_root, of_session):
        assert refusal.code is RefusalCode.OTHER_CHANNEL


def test_replacing_a_configuration_keeps_what_is_fixed() -> None:
    values = {"fixed": "x", "name": "y", "gone": 1}
    assert CONFIGURED.public.config is not None
    config = msgspec.structs.replace(CONFIGURED.public.config, values=values)
    record = session(config=config)
    replace = ConfigChanged(config={"name": "z"}, replace=True)
    assert refused(record, OWNER, replace).code is RefusalCode.NOT_CONFIGURABLE
    free = session(config=msgspec.structs.replace(config, values={"name": "y", "gone": 1}))
    assert judge(OWNER, free, replace) is None


def test_an_agent_takes_its_own_question_back_and_answers_nobodys() -> None:
    record = asking(asked_by(AGENT, FORM))
    assert judge(AGENT, record, complete("cancel")) is None
    assert provenance_of(AGENT, complete("cancel")) is Provenance.WITHDRAWN
    assert provenance_of(OWNER, complete("cancel")) is Provenance.PERSON
    for response in ("accept", "decline"):
        assert refused(record, AGENT, complete(response)).code is RefusalCode.ROLE
    of_call = asking(msgspec.structs.replace(FORM, meta=RequestMeta(call="c")))
    assert refused(of_call, AGENT, complete("cancel")).code is RefusalCode.ROLE


@pytest.mark.proves("design.provenance.policy")
def test_what_a_policy_does_is_never_a_persons() -> None:
    policy = msgspec.structs.replace(OWNER, is_policy=True)
    assert provenance_of(policy, complete("accept")) is Provenance.POLICY
    assert provenance_of(policy, change(Draft(value=SHORT))) is Provenance.POLICY
    withdrawing = msgspec.structs.replace(AGENT, is_policy=True)
    assert provenance_of(withdrawing, complete("cancel")) is Provenance.WITHDRAWN


def test_a_recording_can_only_be_watched() -> None:
    played = recording(asking(FORM))
    refusal = refused(played, OWNER, complete("cancel"))
    assert (refusal.code, "only be watched" in refusal.message) == (RefusalCode.WRONG_STATE, True)
    assert refused(played, WATCHER, complete("cancel")).code is RefusalCode.ROLE


def test_a_session_that_failed_asks_nothing() -> None:
    failed = session(lifecycle=Lifecycle.CREATION_FAILED)
    assert asked(FORM, failed) is RefusalCode.WRONG_STATE


def test_the_hosts_turns_are_the_hosts() -> None:
    turn = ActiveTurn(id="host:0:r", message=user_message(), response_parts=())
    record = in_turn(active_turn=turn)
    for action in (TurnComplete(turn_id=turn.id), TurnCancelled(turn_id=turn.id)):
        assert refused(record, AGENT, action).code is RefusalCode.NOT_YOURS
    assert judge(OWNER, record, TurnCancelled(turn_id=turn.id)) is None
    assert refused(session(), AGENT, start("host:1:x")).code is RefusalCode.NOT_YOURS


def test_a_part_is_added_once_and_in_its_turn() -> None:
    part = MarkdownPart(id="m", content="x")
    turn = ActiveTurn(id="t", message=user_message(), response_parts=(part,))
    add = ResponsePartAdded(turn_id="t", part=part)
    assert judge(AGENT, in_turn(), add) is None
    assert refused(in_turn(active_turn=turn), AGENT, add).code is RefusalCode.DUPLICATE
    assert refused(session(), AGENT, add).code is RefusalCode.NO_TURN
    note = ResponsePartAdded(turn_id="t", part=SystemNotificationPart(content="x"))
    assert judge(AGENT, in_turn(active_turn=turn), note) is None


def client(client_id: str) -> ActiveClient:
    return ActiveClient(client_id=client_id, tools=())


@pytest.mark.parametrize(
    ("current", "wanted", "allowed"),
    [
        (None, "laptop", True),
        (None, "phone", False),
        (None, None, True),
        ("laptop", "laptop", True),
        ("laptop", None, True),
        ("phone", "laptop", False),
        ("phone", None, False),
    ],
)
def test_a_client_is_active_by_its_own_will_alone(
    current: str | None, wanted: str | None, allowed: bool
) -> None:
    record = session(active_client=current and client(current))
    action = ActiveClientChanged(active_client=client(wanted) if wanted else None)
    assert verdict(OWNER, record, action) is (None if allowed else RefusalCode.NOT_YOURS)


def test_only_the_active_client_changes_its_tools() -> None:
    action = ActiveClientToolsChanged(tools=())
    assert judge(OWNER, session(active_client=client("laptop")), action) is None
    for other in (None, client("phone")):
        refusal = refused(session(active_client=other), OWNER, action)
        assert refusal.code is RefusalCode.NOT_YOURS


def test_only_what_is_there_can_be_switched() -> None:
    plugin = Plugin(id="p", uri="x:p", name="P", enabled=True)
    unknown = UnknownCustomization({"type": "theme", "id": "u"})
    record = session(customizations=(plugin, unknown))
    for known in ("p", "u"):
        assert judge(OWNER, record, CustomizationToggled(id=known, enabled=False)) is None
    action = CustomizationToggled(id="x", enabled=False)
    for where in (record, session()):
        assert refused(where, OWNER, action).code is RefusalCode.NO_CUSTOMIZATION


def test_every_client_action_is_either_ruled_or_always_valid() -> None:
    always_valid = set(get_args(ClientAction)) - set(RULES)
    assert {kind.__name__ for kind in always_valid} == {
        "QueuedMessagesReordered",
        "IsReadChanged",
        "IsArchivedChanged",
        "RootConfigChanged",
    }


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (ActivityChanged(activity="x" * ACTIVITY_CHARS), None),
        (ActivityChanged(), None),
        (ActivityChanged(activity="x" * (ACTIVITY_CHARS + 1)), RefusalCode.LIMIT),
    ],
)
def test_an_activity_is_as_short_as_everyone_who_gets_it_may_expect(
    action: ActivityChanged, code: RefusalCode | None
) -> None:
    assert verdict(AGENT, in_turn(), action) == code


@pytest.mark.parametrize("size", [10, SELECTION_BYTES])
def test_what_a_summary_shows_of_model_and_agent_is_bounded(size: int) -> None:
    expected = None if size < SELECTION_BYTES else RefusalCode.LIMIT
    text = "x" * size
    for action in (
        ModelChanged(model=ModelSelection(id="m", config={"key": text})),
        AgentChanged(agent=AgentSelection(uri=text)),
    ):
        assert verdict(OWNER, session(), action) == expected
    assert judge(OWNER, session(), AgentChanged(agent=None)) is None
