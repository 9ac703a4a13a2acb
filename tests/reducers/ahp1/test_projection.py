"""Mirrors of AHP 0.9 and 1.0 agree with the host: on any walk, from any snapshot, on both channels.

The walks are those of `test_invariants`: people, agents, calls and crashes at random, and with them
clients of the later versions.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_server.reducers.ahp1.envelopes import (
    PROJECTIONS,
    Committed,
    envelopes,
    summary_changes,
)
from session_server.reducers.ahp1.numbering import number_after, position
from session_server.reducers.ahp1.snapshots import Variant, session_summary
from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.host_channels import PRIVATE_ACTIONS
from session_server.reducers.state.record import reduce_record
from session_server.reducers.state.session import reduce_session
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.customizations import (
    Directory,
    McpReady,
    McpServer,
    McpStopped,
    Plugin,
    SkillEntry,
    UnknownChildCustomization,
    UnknownCustomization,
)
from session_server.schemas.ahp.session import (
    ActiveClient,
    Changeset,
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigState,
)
from session_server.schemas.ahp.tool_calls import (
    ClientContributor,
    Completed,
    ConfirmationOption,
    ConfirmationOptionKind,
    ConfirmationReason,
    TextContent,
    ToolDefinition,
)
from session_server.schemas.ahp.turns import (
    ContentRefPart,
    MarkdownPart,
    ReasoningPart,
    SystemNotificationPart,
    ToolCallPart,
    UnknownPart,
    UsageInfo,
)
from session_server.schemas.ahp1.methods import Envelope
from session_server.schemas.codec import decode_session_record, encode
from session_server.schemas.log_entries import Spelling
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Markdown
from tests.ahp.ahp1_schemas import validator, with_schemas
from tests.effort import tries
from tests.reducers import test_invariants as walks
from tests.reducers.ahp1.ahp1_clients import VARIANTS, Mirror, on_the_wire, shown
from tests.reducers.cases import canonical
from tests.sessions import AGENT, OWNER, user_message

DONE = Completed(
    tool_call_id="done",
    tool_name="ls",
    display_name="List",
    invocation_message="List",
    confirmed=ConfirmationReason.NOT_NEEDED,
    success=True,
    past_tense_message="Listed",
)
PARTS = (
    MarkdownPart(id="p1", content="Text"),
    MarkdownPart(id="p2", content=""),
    ReasoningPart(id="p3", content="Because"),
    ContentRefPart(uri="file:///a"),
    SystemNotificationPart(content=Markdown(markdown="*Note*")),
    ToolCallPart(tool_call=DONE),
    UnknownPart({"kind": "error", "error": {"errorType": "x", "message": "!"}}),
    UnknownPart({"kind": "inputRequest", "request": {"id": "forged"}}),
)
SERVER = McpServer(id="mcp", uri="mcp:/", name="S", enabled=True, state=McpReady())
SKILL = SkillEntry(id="skill", uri="s:/", name="Skill")
CUSTOMIZATIONS = (
    Plugin(id="plugin", uri="p:/", name="P", enabled=True, children=(SKILL, SERVER)),
    Plugin(id="bare", uri="p:/", name="P", enabled=False),
    Directory(
        id="directory",
        uri="d:/",
        name="D",
        enabled=True,
        contents="skill",
        writable=False,
        children=(UnknownChildCustomization({"type": "later", "id": "later"}),),
    ),
    SERVER,
    Plugin(id="mcp", uri="p:/", name="Same id as the server", enabled=True),
    UnknownCustomization({"type": "later", "id": "later"}),
)
OPTION = ConfirmationOption(id="o", label="Yes", kind=ConfirmationOptionKind.APPROVE)
MODE = SessionConfigPropertySchema(type="string", title="Mode", session_mutable=True)
CONFIG = SessionConfigState(
    schema=SessionConfigSchema(type="object", properties={"mode": MODE}), values={"mode": "a"}
)


def some_customization(dice: Random) -> Any:
    return dice.choice(CUSTOMIZATIONS)


def some_agent_action(dice: Random, record: SessionRecord) -> ahp.SessionAction:
    """What the other walks leave out: all that agents say of turns, tools and the session."""
    turn = record.public.active_turn
    if turn is None and dice.random() < 0.5:
        return ahp.TurnStarted(turn_id=f"w{dice.randrange(9_999)}", message=user_message())
    turn_id = "none" if turn is None else turn.id
    tool: dict[str, Any] = {"turn_id": turn_id, "tool_call_id": dice.choice(("x", "x", "y"))}
    makers: tuple[Callable[[], ahp.SessionAction], ...] = (
        lambda: ahp.ResponsePartAdded(turn_id=turn_id, part=dice.choice(PARTS)),
        lambda: ahp.ResponsePartAdded(turn_id=turn_id, part=dice.choice(PARTS)),
        lambda: ahp.Delta(turn_id=turn_id, part_id=dice.choice(("p1", "p3")), content="+"),
        lambda: ahp.Reasoning(turn_id=turn_id, part_id=dice.choice(("p1", "p3")), content="+"),
        lambda: ahp.Usage(turn_id=turn_id, usage=UsageInfo(output_tokens=dice.randrange(9))),
        lambda: ahp.ToolCallStart(
            **tool,
            tool_name="open",
            display_name="Open",
            contributor=dice.choice((None, ClientContributor(client_id=OWNER.client_id or ""))),
            meta={"a": 1},
        ),
        lambda: ahp.ToolCallComplete(
            **tool,
            result=walks.RESULT,
            requires_result_confirmation=dice.choice((None, True)),
            meta={"d": 1},
        ),
        ahp.Ready,
        lambda: ahp.ToolCallDelta(**tool, content="{", invocation_message="Opening", meta={"b": 1}),
        lambda: ahp.ToolCallReady(
            **tool,
            invocation_message="Open it",
            tool_input=dice.choice((None, "in")),
            confirmed=dice.choice((None, ConfirmationReason.SETTING)),
            options=dice.choice((None, (OPTION,))),
            editable=True,
            meta={"c": 1},
        ),
        lambda: ahp.ToolCallContentChanged(**tool, content=(TextContent(text="so far"),)),
        lambda: ahp.ActivityChanged(activity=dice.choice((None, "Thinking"))),
        lambda: ahp.MetaChanged(meta=dice.choice((None, {"k": 1}))),
        lambda: ahp.ChangesetsChanged(
            changesets=dice.choice(
                (None, (Changeset(label="C", uri_template="c:/{x}", change_kind="git"),))
            )
        ),
        lambda: ahp.ServerToolsChanged(tools=(ToolDefinition(name="ls"),)),
        lambda: ahp.CustomizationsChanged(
            customizations=tuple(dice.sample(CUSTOMIZATIONS, dice.randrange(4)))
        ),
        lambda: ahp.CustomizationUpdated(customization=some_customization(dice)),
        lambda: ahp.CustomizationRemoved(id=dice.choice(("plugin", "skill", "mcp"))),
        lambda: ahp.McpServerStateChanged(id="mcp", state=McpStopped(), channel="mcp:/c"),
    )
    return dice.choice(makers)()


def some_owner_action(dice: Random, record: SessionRecord) -> ahp.SessionAction:
    """What a client of 0.3.0 says, as far as the other walks leave it out."""
    turn = record.public.active_turn
    tool: dict[str, Any] = {
        "turn_id": "none" if turn is None else turn.id,
        "tool_call_id": dice.choice(("x", "y")),
    }
    me = ActiveClient(client_id=OWNER.client_id or "", tools=(), display_name="Pad")
    makers: tuple[Callable[[], ahp.SessionAction], ...] = (
        lambda: ahp.ActiveClientChanged(active_client=dice.choice((None, me))),
        lambda: ahp.ActiveClientToolsChanged(tools=(ToolDefinition(name="t"),)),
        lambda: ahp.IsArchivedChanged(is_archived=dice.random() < 0.5),
        lambda: ahp.QueuedMessagesReordered(order=("n",)),
        lambda: ahp.TitleChanged(title=dice.choice("ab")),
        lambda: ahp.ConfigChanged(
            config={"mode": dice.choice("ab")}, replace=dice.choice((None, True))
        ),
        lambda: ahp.CustomizationToggled(
            id=dice.choice(("plugin", "directory", "mcp")), enabled=dice.random() < 0.5
        ),
        lambda: ahp.ToolCallConfirmed(
            **tool,
            approved=True,
            confirmed=ConfirmationReason.USER_ACTION,
            edited_tool_input=dice.choice((None, "edited")),
            selected_option_id=dice.choice((None, "o")),
        ),
        lambda: ahp.ToolCallResultConfirmed(**tool, approved=dice.random() < 0.5),
    )
    return dice.choice(makers)()


class MirroredHost(walks.Host):
    """A host whose every commit is followed by mirrors of all variants."""

    def __init__(self) -> None:
        super().__init__()
        self.seq = 0
        self.record = self.first = msgspec.structs.replace(
            self.first, public=msgspec.structs.replace(self.first.public, config=CONFIG)
        )
        self.mirrors = [Mirror(self.record, variant) for variant in VARIANTS]
        self.late: list[Mirror] = []
        self.frames: list[tuple[str, Any]] = []

    def commit(self, batch: Batch) -> None:
        before = self.record
        super().commit(batch)
        entries = self.committed(batch)
        for mirror in (*self.mirrors, *self.late):
            mirror.last_number = number_after(self.seq - len(batch))
            made = list(envelopes(before, entries, mirror.variant))
            self.frames += [("ActionEnvelope", frame) for frame in mirror.follow(made)]
            summaries = [session_summary(r, mirror.variant) for r in (before, self.record)]
            changes = summary_changes(*summaries)
            assert_follows(before, self.record, changes, mirror.variant)
        for mirror in (*self.mirrors, *self.late):
            assert_same(mirror, self.record)

    def committed(self, batch: Batch) -> list[Committed]:
        first = self.seq + 1
        self.seq += len(batch)
        return [Committed(first + i, action, self.at) for i, action in enumerate(batch)]

    def agent_speaks(self, dice: Random) -> None:
        self.said(AGENT, some_agent_action(dice, self.record))

    def owner_speaks(self, dice: Random) -> None:
        self.said(OWNER, some_owner_action(dice, self.record))

    def said(self, principal: Any, action: ahp.SessionAction) -> None:
        if judge(principal, self.record, action) is None:
            stamp = Stamp(at=self.at, by=principal.author)
            self.commit(batch_of(self.record, action, stamp))

    def somebody_joins(self, _: Random | None = None) -> None:
        """A client that comes now starts from today's snapshot."""
        self.late = [Mirror(self.record, variant) for variant in VARIANTS]
        for mirror in self.late:
            self.frames += [("ChatState", mirror.chat), ("SessionState", mirror.session)]
            summary = session_summary(self.record, mirror.variant)
            self.frames.append(("SessionSummary", on_the_wire(summary)))


def assert_same(mirror: Mirror, record: SessionRecord) -> None:
    chat, session = shown(record, mirror.variant)
    assert canonical(mirror.chat) == canonical(chat)
    assert canonical(mirror.session) == canonical(session)


def assert_follows(
    before: SessionRecord, after: SessionRecord, changes: Any, variant: Variant
) -> None:
    """A list of sessions that merges the changes shows what a new list would."""
    old = on_the_wire(session_summary(before, variant))
    new = on_the_wire(session_summary(after, variant))
    told = {} if changes is None else on_the_wire(changes)
    assert (changes is None) == (old == new)
    merged = {**old, **told}
    if not merged.get("activity"):
        merged.pop("activity", None)
    kept = {name: value for name, value in merged.items() if name in new}
    assert kept == new
    assert not {"resource", "provider", "createdAt"} & set(told)


STEPS: dict[Callable[[Any, Random], None], int] = {
    **walks.STEPS,
    MirroredHost.dispatch: 30,
    MirroredHost.dispatch_of_later_version: 40,
    MirroredHost.agent_speaks: 40,
    MirroredHost.owner_speaks: 20,
    MirroredHost.somebody_joins: 2,
}


def walk(seed: int, steps: int) -> MirroredHost:
    dice, host = Random(seed), MirroredHost()
    for step in dice.choices([*STEPS], [*STEPS.values()], k=steps):
        host.at += 1
        step(host, dice)
    return host


def assert_numbered(at_once: list[Envelope], later: list[Envelope], entries: int) -> None:
    """Entries are expanded again after a restart; a client may have seen a part of one."""
    numbers = [envelope.server_seq for envelope in at_once]
    assert numbers == sorted(set(numbers))
    assert all(position(number).seq in range(1, entries + 1) for number in numbers)
    again = at_once[len(at_once) - len(later) :]
    assert [encode(envelope) for envelope in again] == [encode(envelope) for envelope in later]


@pytest.mark.proves("ahp.ahp1.mirror", "ahp.ahp1.summary", "ahp.ahp1.numbers", "ahp.ahp1.private")
@settings(max_examples=tries(in_ci=200, at_hand=20))
@given(st.integers(0, 2**64 - 1))
def test_mirrors_of_all_versions_equal_the_snapshots_on_any_walk(seed: int) -> None:
    """Live; and after a restart with whatever was stored, from any position."""
    host = walk(seed, steps=50)
    host.somebody_joins()
    text = json.dumps([frame for _, frame in host.frames])
    assert walks.SECRET not in text
    assert "forged" not in text
    entries = [Committed(i, action, at) for i, (action, at) in enumerate(host.log, 1)]
    seen = Random(seed).randrange(len(entries) + 1)
    stored = host.first
    for entry in entries[:seen]:
        stored = reduce_record(stored, entry.action, entry.at)
    restarted = decode_session_record(encode(stored))
    assert restarted == stored
    for variant in VARIANTS:
        mirror = Mirror(restarted, variant)
        later = [*envelopes(restarted, entries[seen:], variant)]
        mirror.follow(later)
        assert_same(mirror, host.record)
        assert_numbered([*envelopes(host.first, entries, variant)], later, len(entries))
    plain = restarted.public
    for entry in entries[seen:]:
        if type(entry.action) not in PRIVATE_ACTIONS:
            plain = reduce_session(plain, entry.action, entry.at)
    assert plain == host.record.public


@pytest.mark.slow
def test_walks_reach_every_projection() -> None:
    seen: set[str] = set()
    for seed in range(30):
        seen |= set(walk(seed, steps=150).seen)
    assert {kind.__name__ for kind in PROJECTIONS} - seen <= {"CreationFailed"}


@pytest.mark.proves("ahp.ahp1.schema")
@pytest.mark.slow
@with_schemas
def test_every_envelope_and_snapshot_is_valid_by_the_published_schemas() -> None:
    for seed in range(tries(in_ci=25, at_hand=12)):
        host = walk(seed, steps=120)
        host.somebody_joins()
        distinct = {(name, canonical(frame)) for name, frame in host.frames}
        for name, text in distinct:
            document = "actions" if name == "ActionEnvelope" else "state"
            validator(document, name).validate(json.loads(text))


def test_versions_before_1_0_hear_nothing_of_chat_marks() -> None:
    host = walk(1, steps=300)
    marks = {"chat/isReadChanged", "chat/isArchivedChanged"}
    entries = [Committed(i, action, at) for i, (action, at) in enumerate(host.log, 1)]
    for variant in (Variant(False, Spelling.PLAIN), Variant(True, Spelling.PLAIN)):
        said = {on_the_wire(e)["action"]["type"] for e in envelopes(host.first, entries, variant)}
        assert bool(said & marks) is variant.has_chat_marks
