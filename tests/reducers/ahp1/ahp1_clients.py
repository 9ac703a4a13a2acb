"""Clients of AHP 0.9 and 1.x: what they send, and the mirrors they keep."""

import json
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from session_server.reducers.ahp1.client_chat_reducer import reduce_client_chat
from session_server.reducers.ahp1.client_session_reducer import reduce_client_session
from session_server.reducers.ahp1.snapshots import Variant, chat_state, session_state
from session_server.reducers.ahp1.uris import CHAT_PREFIX
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.actions import PendingKind
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanValue,
    Draft,
    NumberValue,
    ResponseKind,
    Skipped,
    Submitted,
    TextValue,
    Value,
)
from session_server.schemas.ahp.session import AgentSelection, ModelSelection
from session_server.schemas.ahp.tool_calls import (
    CancellationReason,
    ConfirmationReason,
    TextContent,
    ToolDefinition,
    ToolResult,
)
from session_server.schemas.ahp.turn_messages import MessageOrigin
from session_server.schemas.ahp1 import actions as sent
from session_server.schemas.ahp1.methods import Envelope
from session_server.schemas.ahp1.state import (
    ChosenMessage,
    ClientEntry,
    ClientPluginEntry,
    Enablement,
)
from session_server.schemas.codec import encode
from session_server.schemas.log_entries import Spelling
from session_server.schemas.record import SessionRecord
from tests.sessions import OWNER, user_message

VARIANTS = tuple(Variant(marks, spelling) for marks in (True, False) for spelling in Spelling)

Json = dict[str, Any]


def on_the_wire(value: Any) -> Any:
    return json.loads(encode(value))


class Mirror:
    """What a client knows of a session and its chat: a snapshot, and the envelopes since."""

    def __init__(self, record: SessionRecord, variant: Variant) -> None:
        self.variant = variant
        self.chat, self.session = shown(record, variant)
        self.last_number = 0

    def follow(self, envelopes: Iterable[Envelope]) -> list[Json]:
        seen = [on_the_wire(envelope) for envelope in envelopes]
        for envelope in seen:
            assert envelope["serverSeq"] > self.last_number
            self.last_number = envelope["serverSeq"]
            if envelope["channel"].startswith(CHAT_PREFIX):
                assert envelope["channel"] == self.chat["resource"]
                self.chat = reduce_client_chat(self.chat, envelope["action"])
            else:
                self.session = reduce_client_session(self.session, envelope["action"])
        return seen


def shown(record: SessionRecord, variant: Variant) -> tuple[Json, Json]:
    """The snapshots of a record, as they are on the wire."""
    return on_the_wire(chat_state(record, variant)), on_the_wire(session_state(record, variant))


def chosen_message(model: str | None = None, agent: str | None = None) -> ChosenMessage:
    return ChosenMessage(
        text="Go",
        origin=MessageOrigin(kind="user"),
        model=None if model is None else ModelSelection(id=model),
        agent=None if agent is None else AgentSelection(uri=agent),
    )


def client(client_id: str | None = OWNER.client_id, tools: tuple[str, ...] = ()) -> ClientEntry:
    everywhere = (Enablement(kind="global", enabled=True),)
    plugin = ClientPluginEntry(id="p", uri="p:/", name="P", nonce="1", enablement=everywhere)
    return ClientEntry(
        client_id=client_id or "",
        tools=tuple(ToolDefinition(name=name) for name in tools),
        display_name="Editor",
        customizations=(plugin,),
    )


VALUES = (
    TextValue(value="long enough"),
    TextValue(value="3"),
    TextValue(value="true"),
    BooleanValue(value=True),
    NumberValue(value=1),
)


def some_answer(dice: Random, values: Sequence[Value | None] = VALUES) -> Answer:
    kind = dice.choice((Draft, Submitted, Submitted, Skipped))
    return Skipped() if kind is Skipped else kind(value=dice.choice(values))


def some_later_action(dice: Random, record: SessionRecord) -> sent.ClientAction:
    """Anything that a client of these versions might send, aimed well more often than badly."""
    turn = record.public.active_turn
    turn_id = turn.id if turn is not None and dice.random() < 0.9 else f"v{dice.randrange(999)}"
    requests = record.public.input_requests or ()
    request_id = dice.choice(requests).id if requests and dice.random() < 0.9 else "r1"
    tool: Json = {"turn_id": turn_id, "tool_call_id": dice.choice(("x", "x", "y"))}
    if dice.random() < 0.02:
        kept = [sent.Truncate(turn_id=turn.id) for turn in record.public.turns]
        return dice.choice((sent.CancelTurn(turn_id=turn_id), sent.Truncate(), *kept))
    makers: tuple[Callable[[], sent.ClientAction], ...] = (
        lambda: sent.StartTurn(
            turn_id=turn_id,
            started_at="2026-10-01T10:00:00.000Z",
            message=chosen_message(dice.choice((None, "m", "n")), dice.choice((None, "a:/1"))),
        ),
        lambda: sent.ToolCallConfirmed(
            **tool, approved=True, confirmed=ConfirmationReason.USER_ACTION
        ),
        lambda: sent.ToolCallConfirmed(**tool, approved=False, reason=CancellationReason.DENIED),
        lambda: sent.ToolCallComplete(
            **tool, result=ToolResult(success=True, past_tense_message="Done")
        ),
        lambda: sent.ToolCallResultConfirmed(**tool, approved=dice.random() < 0.5),
        lambda: sent.ToolCallContentChanged(**tool, content=(TextContent(text="so far"),)),
        lambda: sent.InputAnswerChanged(
            request_id=request_id,
            question_id=dice.choice(("v", "v", "w")),
            answer=dice.choice((some_answer(dice), some_answer(dice), None)),
        ),
        lambda: sent.InputCompleted(
            request_id=request_id,
            response=dice.choice([*ResponseKind]),
            answers=dice.choice((None, {"v": some_answer(dice)}, {"answer": some_answer(dice)})),
        ),
        lambda: sent.PendingMessageSet(
            kind=dice.choice([*PendingKind]), id=dice.choice("mn"), message=user_message()
        ),
        lambda: sent.PendingMessageRemoved(kind=PendingKind.QUEUED, id=dice.choice("mn")),
        lambda: sent.QueuedMessagesReordered(order=("n", "m")),
        lambda: sent.DraftChanged(draft=dice.choice((None, chosen_message("m")))),
        lambda: sent.ChatIsReadChanged(is_read=dice.random() < 0.5),
        lambda: sent.ChatIsArchivedChanged(is_archived=dice.random() < 0.5),
        lambda: ahp.TitleChanged(title="Another"),
        lambda: ahp.IsReadChanged(is_read=dice.random() < 0.5),
        lambda: ahp.IsArchivedChanged(is_archived=dice.random() < 0.5),
        lambda: sent.ActiveClientSet(active_client=client(tools=("t",)[: dice.randrange(2)])),
        lambda: sent.ActiveClientRemoved(client_id=OWNER.client_id or ""),
        lambda: sent.CustomizationToggled(
            id=dice.choice(("plugin", "directory")),
            enablement=(Enablement(kind="session", enabled=dice.random() < 0.5),),
        ),
    )
    return dice.choice(makers)()
