"""What people, agents and lookers-on do at random, given what they see: mostly sense, some not."""

from collections.abc import Callable
from random import Random
from typing import Any

from session_server.schemas.ahp.questions import (
    InputRequest,
    MultiSelectQuestion,
    Question,
    SingleSelectQuestion,
)
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.ahp.turns import MarkdownPart, ToolCallPart
from session_server.schemas.principals import Principal, Role
from session_server.schemas.wire import Uri
from tests.ahp.mirror import ROOT, Frame, Mirror

Action = dict[str, Any]

PEOPLE = (
    Principal(id="ana", name="Ana", role=Role.OWNER),
    Principal(id="bo", name="Bo", role=Role.ANSWERER),
    Principal(id="cy", name="Cy", role=Role.OWNER),
    Principal(id="di", name="Di", role=Role.ANSWERER),
)
AGENT = Principal(id="agent", name="Agent", role=Role.AGENT)
WATCHER = Principal(id="wall", role=Role.OBSERVER)

WORDS = ("Oslo", "Kyoto", "as soon as we can", "no", "", "naïve 🙂", "x" * 80)
OPTIONS = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]
FORMS: tuple[list[dict[str, Any]], ...] = (
    [{"kind": "text", "id": "t", "message": "What?", "required": True}],
    [
        {"kind": "text", "id": "t", "message": "What?", "max": 40},
        {"kind": "boolean", "id": "b", "message": "Really?"},
        {"kind": "single-select", "id": "s", "message": "Which?", "options": OPTIONS},
    ],
    [
        {"kind": "integer", "id": "n", "message": "How many?", "min": 1, "max": 9},
        {"kind": "multi-select", "id": "m", "message": "Which ones?", "options": OPTIONS},
    ],
    [],
)


def new_name(dice: Random, kind: str) -> str:
    """Never the same twice, and yet the same again with the same dice."""
    return f"{kind}{dice.getrandbits(48):x}"


# Answers


def some_value(dice: Random, question: Question) -> dict[str, Any]:
    kind = type(question).__struct_config__.tag if dice.random() < 0.95 else "boolean"
    match kind:
        case "text":
            return {"kind": "text", "value": dice.choice(WORDS)}
        case "number" | "integer":
            return {"kind": "number", "value": dice.randrange(12)}
        case "boolean":
            return {"kind": "boolean", "value": dice.random() < 0.5}
        case "single-select":
            return {"kind": "selected", "value": dice.choice(options_of(question))}
        case _:
            options = options_of(question)
            chosen = dice.sample(options, dice.randrange(min(len(options), 3)))
            return {"kind": "selected-many", "value": chosen}


def options_of(question: Question) -> list[str]:
    assert isinstance(question, SingleSelectQuestion | MultiSelectQuestion)
    return [option.id for option in question.options]


def some_answer(dice: Random, question: Question, state: str) -> dict[str, Any]:
    return {"state": state, "value": some_value(dice, question)}


def an_open_request(dice: Random, state: SessionState) -> InputRequest | None:
    return dice.choice(state.input_requests) if state.input_requests else None


def answering(dice: Random, state: SessionState) -> Action | None:
    request = an_open_request(dice, state)
    if request is None or not request.questions:
        return None
    question = dice.choice(request.questions)
    action: Action = {
        "type": "session/inputAnswerChanged",
        "requestId": request.id if dice.random() < 0.97 else "long-gone",
        "questionId": question.id if dice.random() < 0.98 else "nowhere",
    }
    kind = dice.choice(("draft", "draft", "draft", "draft", "submitted", "skipped", "cleared"))
    if kind == "skipped":
        action["answer"] = {"state": "skipped"}
    elif kind != "cleared":
        action["answer"] = some_answer(dice, question, kind)
    return action


def completing(dice: Random, state: SessionState) -> Action | None:
    request = an_open_request(dice, state)
    if request is None:
        return None
    response = dice.choice(("accept", "accept", "accept", "decline", "cancel"))
    answers = {q.id: some_answer(dice, q, "submitted") for q in request.questions or ()}
    return {
        "type": "session/inputCompleted",
        "requestId": request.id,
        "response": response,
        "answers": answers if dice.random() < 0.8 else {},
    }


# Owners


def a_message(dice: Random) -> dict[str, Any]:
    return {"text": dice.choice(WORDS), "origin": {"kind": "user"}}


def starting(dice: Random, _: SessionState) -> Action:
    message = {**a_message(dice), "text": dice.choice(("Go", "With a link"))}
    return {"type": "session/turnStarted", "turnId": new_name(dice, "t"), "message": message}


def cancelling(dice: Random, state: SessionState) -> Action | None:
    if state.active_turn is None:
        return None
    return {"type": "session/turnCancelled", "turnId": state.active_turn.id}


def retitling(dice: Random, _: SessionState) -> Action:
    return {"type": "session/titleChanged", "title": new_name(dice, "title ")}


def queueing(dice: Random, state: SessionState) -> Action:
    return {
        "type": "session/pendingMessageSet",
        "kind": dice.choice(("queued", "queued", "steering")),
        "id": new_name(dice, "m"),
        "message": a_message(dice),
    }


def unqueueing(dice: Random, state: SessionState) -> Action | None:
    if not state.queued_messages:
        return None
    waiting = dice.choice(state.queued_messages)
    return {"type": "session/pendingMessageRemoved", "kind": "queued", "id": waiting.id}


def marking(dice: Random, _: SessionState) -> Action:
    return {"type": "session/isReadChanged", "isRead": dice.random() < 0.7}


def changing_model(dice: Random, _: SessionState) -> Action:
    return {"type": "session/modelChanged", "model": {"id": new_name(dice, "model")}}


def truncating(dice: Random, state: SessionState) -> Action | None:
    if not state.turns:
        return None
    return {"type": "session/truncated", "turnId": dice.choice(state.turns).id}


def raving(dice: Random, _: SessionState) -> Action:
    return {"type": "session/levitated", "height": dice.randrange(9)}


# Agents


def asking(dice: Random, state: SessionState) -> Action:
    known = an_open_request(dice, state) if dice.random() < 0.15 else None
    request = {
        "id": new_name(dice, "q") if known is None else known.id,
        "message": dice.choice(WORDS),
        "questions": dice.choice(FORMS),
    }
    return {"type": "session/inputRequested", "request": request}


def saying(dice: Random, state: SessionState) -> Action | None:
    turn = state.active_turn
    if turn is None:
        return None
    parts = [part for part in turn.response_parts if isinstance(part, MarkdownPart)]
    if parts and dice.random() < 0.6:
        part_id, content = dice.choice(parts).id, dice.choice(WORDS)
        return {
            "type": "session/delta",
            "turnId": turn.id,
            "partId": part_id,
            "content": content,
        }
    part = {"kind": "markdown", "id": new_name(dice, "p"), "content": ""}
    return {"type": "session/responsePart", "turnId": turn.id, "part": part}


def using_tools(dice: Random, state: SessionState) -> Action | None:
    turn = state.active_turn
    if turn is None:
        return None
    calls = [part.tool_call for part in turn.response_parts if isinstance(part, ToolCallPart)]
    if not calls or dice.random() < 0.15:
        return {
            "type": "session/toolCallStart",
            "turnId": turn.id,
            "toolCallId": new_name(dice, "c"),
            "toolName": "ls",
            "displayName": "List",
        }
    on_call = {"turnId": turn.id, "toolCallId": dice.choice(calls).tool_call_id}
    done = {"success": True, "pastTenseMessage": "Listed"}
    ready = {"type": "session/toolCallReady", **on_call, "invocationMessage": "Listing"}
    return dice.choice(
        (
            {"type": "session/toolCallDelta", **on_call, "content": "ls"},
            ready,
            {**ready, "confirmed": "not-needed"},
            {"type": "session/toolCallComplete", **on_call, "result": done},
        )
    )


def confirming(dice: Random, state: SessionState) -> Action | None:
    turn = state.active_turn
    calls = [
        part.tool_call.tool_call_id
        for part in (() if turn is None else turn.response_parts)
        if isinstance(part, ToolCallPart)
    ]
    if turn is None or not calls:
        return None
    return {
        "type": "session/toolCallConfirmed",
        "turnId": turn.id,
        "toolCallId": dice.choice(calls),
        "approved": True,
        "confirmed": "user-action",
    }


def finishing(dice: Random, state: SessionState) -> Action | None:
    turn = state.active_turn
    if turn is None:
        return None
    if dice.random() < 0.8:
        return {"type": "session/turnComplete", "turnId": turn.id}
    error = {"errorType": "oops", "message": "It broke."}
    return {"type": "session/error", "turnId": turn.id, "error": error}


def being_busy(dice: Random, _: SessionState) -> Action:
    return {"type": "session/activityChanged", "activity": dice.choice(WORDS)}


Habit = Callable[[Random, SessionState], Action | None]

HABITS: dict[Role, tuple[tuple[Habit, int], ...]] = {
    Role.OWNER: (
        (answering, 40),
        (completing, 8),
        (starting, 12),
        (cancelling, 3),
        (retitling, 6),
        (queueing, 4),
        (unqueueing, 2),
        (marking, 3),
        (changing_model, 2),
        (confirming, 4),
        (truncating, 1),
        (raving, 1),
    ),
    Role.ANSWERER: ((answering, 50), (completing, 8), (marking, 3), (retitling, 1)),
    Role.AGENT: (
        (asking, 18),
        (saying, 15),
        (using_tools, 20),
        (finishing, 4),
        (being_busy, 3),
        (answering, 3),
    ),
    Role.OBSERVER: ((answering, 10), (retitling, 1)),
}


def some_action(dice: Random, role: Role, state: SessionState) -> Action | None:
    habits, weights = zip(*HABITS[role], strict=True)
    habit: Habit = dice.choices(habits, weights)[0]
    return habit(dice, state)


def some_frame(dice: Random, mirror: Mirror, role: Role, known: list[Uri]) -> Frame | None:
    """What this client does next; nothing, if it sees no occasion."""
    sessions = mirror.sessions()
    if dice.random() < 0.06 or not sessions:
        return some_command(dice, mirror, known)
    uri = dice.choice(list(sessions))
    action = some_action(dice, role, sessions[uri])
    return None if action is None else mirror.dispatch(uri, action)


def some_command(dice: Random, mirror: Mirror, known: list[Uri]) -> Frame:
    kind = dice.choice(("subscribe", "subscribe", "unsubscribe", "ping", "listSessions", "turns"))
    watched = [channel for channel in mirror.copies if channel != ROOT]
    if kind == "unsubscribe" and len(watched) > 1:
        return mirror.unsubscribe(dice.choice(watched))
    if kind == "turns" and watched:
        return mirror.request("fetchTurns", dice.choice(watched), limit=3)
    if kind in ("ping", "listSessions"):
        return mirror.request(kind)
    return mirror.request("subscribe", dice.choice(mirror.channels(dice.choice(known))))
