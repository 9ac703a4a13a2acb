"""The chat reducer that clients of AHP 0.9 and 1.x run.

It works on JSON objects and not on Structs: a client has to carry along keys that it does not know.
A state is never changed in place; where an action does not apply, the same object comes back.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from session_server.reducers.ahp1 import client_tool_call_reducer as tool_calls

Json: TypeAlias = dict[str, Any]
Reducer: TypeAlias = Callable[[Json, Json], Json]

ACTIVITY_BITS = 31
IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED, IS_READ, IS_ARCHIVED = 1, 2, 8, 24, 32, 64

KEPT_EMPTY = frozenset({"activeClients", "chats", "children", "customizations"})
"""Lists that stay when they become empty; others are absent then."""

WAITING = frozenset({"pending-confirmation", "pending-result-confirmation", "auth-required"})


def reduce_client_chat(state: Json, action: Json) -> Json:
    """The state after the action; the same object if it does not apply or is not known."""
    reducer = REDUCERS.get(action["type"])
    return state if reducer is None else reducer(state, action)


def without(value: Json, *names: str) -> Json:
    """The object without these keys."""
    return {name: item for name, item in value.items() if name not in names}


def replaced(value: Json, name: str, item: Any) -> Json:
    """The object with this key, or without it if the item is `None`."""
    return without(value, name) if item is None else {**value, name: item}


def upserted(state: Json, name: str, item: Json, key: str = "id") -> Json:
    """With the item in this list: in place of the one that has the same key, or at its end."""
    items = state.get(name, [])
    if all(known[key] != item[key] for known in items):
        return {**state, name: [*items, item]}
    return {**state, name: [item if known[key] == item[key] else known for known in items]}


def removed(state: Json, name: str, identity: str, key: str = "id") -> Json:
    """Without the items of this list that have the key."""
    items = state.get(name, [])
    rest = [item for item in items if item[key] != identity]
    if len(rest) == len(items):
        return state
    return {**state, name: rest} if rest or name in KEPT_EMPTY else without(state, name)


def with_status(state: Json, status: int) -> Json:
    return state if status == state["status"] else {**state, "status": status}


def flagged(state: Json, flag: int, *, on: bool) -> Json:
    return with_status(state, state["status"] | flag if on else state["status"] & ~flag)


def copied(name: str) -> Reducer:
    """A reducer that copies one field of the action, or its absence."""

    def reducer(state: Json, action: Json) -> Json:
        return replaced(state, name, action.get(name))

    return reducer


# Status


def _activity(state: Json) -> int:
    turn = state.get("activeTurn")
    if turn is None:
        return IDLE
    waits = any(_is_waiting(part) for part in turn["responseParts"])
    return INPUT_NEEDED if waits else IN_PROGRESS


def _is_waiting(part: Json) -> bool:
    if part["kind"] == "inputRequest":
        return "response" not in part
    return part["kind"] == "toolCall" and part["toolCall"]["status"] in WAITING


def _with_activity(state: Json) -> Json:
    return with_status(state, state["status"] & ~ACTIVITY_BITS | _activity(state))


# Turns


def _active(state: Json, action: Json) -> Json | None:
    turn: Json | None = state.get("activeTurn")
    return turn if turn is not None and turn["id"] == action["turnId"] else None


def _with_turn(state: Json, **changes: Any) -> Json:
    return {**state, "activeTurn": {**state["activeTurn"], **changes}}


def _parts(state: Json, action: Json) -> list[Json]:
    turn = _active(state, action)
    return [] if turn is None else turn["responseParts"]


def _with_new_part(state: Json, part: Json) -> Json:
    return _with_turn(state, responseParts=[*state["activeTurn"]["responseParts"], part])


def _with_part(state: Json, index: int, **changes: Any) -> Json:
    parts = [*state["activeTurn"]["responseParts"]]
    parts[index] = {**parts[index], **changes}
    return _with_turn(state, responseParts=parts)


def turn_started(state: Json, action: Json) -> Json:
    turn = {
        "id": action["turnId"],
        "startedAt": action["startedAt"],
        "message": action["message"],
        "responseParts": [],
    }
    started = {**state, "activeTurn": turn, "modifiedAt": action["startedAt"]}
    waiting = action.get("queuedMessageId")
    if waiting:
        started = removed(_without_steering(started, waiting), "queuedMessages", waiting)
    return flagged(_with_activity(started), IS_READ, on=False)


def turn_complete(state: Json, action: Json) -> Json:
    return _with_activity(_ended(state, action, "complete"))


def turn_cancelled(state: Json, action: Json) -> Json:
    return _with_activity(_ended(state, action, "cancelled"))


def turn_failed(state: Json, action: Json) -> Json:
    ended = _ended(state, action, "error", action["part"])
    is_ended = ended is not state
    return with_status(ended, ended["status"] & ~ACTIVITY_BITS | ERROR) if is_ended else state


def _ended(state: Json, action: Json, how: str, *more: Json) -> Json:
    """Unfinished tool calls are skipped; open questions stay, without a response."""
    active = _active(state, action)
    if active is None:
        return state
    duration = max(0, action["duration"])
    turn = {
        **active,
        "responseParts": [*map(_settled, active["responseParts"]), *more],
        "duration": duration,
        "state": how,
    }
    return {
        **without(state, "activeTurn"),
        "turns": [*state["turns"], turn],
        "modifiedAt": later(active["startedAt"], duration),
    }


def later(moment: str, milliseconds: float) -> str:
    """The time so many milliseconds after another, both in the format of `toISOString`."""
    end = datetime.fromisoformat(moment) + timedelta(milliseconds=milliseconds)
    return end.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _settled(part: Json) -> Json:
    if part["kind"] != "toolCall":
        return part
    return {**part, "toolCall": tool_calls.skipped(part["toolCall"])}


def turn_resumed(state: Json, action: Json) -> Json:
    last = state["turns"][-1] if state["turns"] else None
    if last is None or last["id"] != action["turnId"] or "activeTurn" in state:
        return state
    end = last["responseParts"][-1] if last["responseParts"] else {"kind": None}
    if end["kind"] != "error" or end.get("resumable") is not True:
        return state
    reopened = {
        **state,
        "turns": state["turns"][:-1],
        "activeTurn": without(last, "state", "duration"),
    }
    return flagged(_with_activity(reopened), IS_READ, on=False)


def truncated(state: Json, action: Json) -> Json:
    if "turnId" not in action:
        kept: list[Json] = []
        state = without(state, "turnsNextCursor")
    else:
        ids = [turn["id"] for turn in state["turns"]]
        if action["turnId"] not in ids:
            return state
        kept = state["turns"][: ids.index(action["turnId"]) + 1]
    return _with_activity({**without(state, "activeTurn"), "turns": kept})


def turns_loaded(state: Json, action: Json) -> Json:
    known = {turn["id"] for turn in state["turns"]}
    older = [turn for turn in action["turns"] if turn["id"] not in known]
    loaded = {**state, "turns": [*older, *state["turns"]]}
    return replaced(loaded, "turnsNextCursor", action.get("turnsNextCursor"))


# Parts of the response


def response_part(state: Json, action: Json) -> Json:
    is_shown = _active(state, action) is not None and action["part"]["kind"] != "error"
    return _with_new_part(state, action["part"]) if is_shown else state


def _appended(kind: str) -> Reducer:
    """Text for the first part of that id, if it is of the right kind."""

    def appended(state: Json, action: Json) -> Json:
        for index, part in enumerate(_parts(state, action)):
            if _part_id(part) == action["partId"]:
                if part["kind"] != kind:
                    return state
                return _with_part(state, index, content=part["content"] + action["content"])
        return state

    return appended


def _part_id(part: Json) -> str | None:
    return part["toolCall"]["toolCallId"] if part["kind"] == "toolCall" else part.get("id")


def usage(state: Json, action: Json) -> Json:
    return state if _active(state, action) is None else _with_turn(state, usage=action["usage"])


def tool_call_start(state: Json, action: Json) -> Json:
    if _active(state, action) is None:
        return state
    return _with_new_part(state, {"kind": "toolCall", "toolCall": tool_calls.started(action)})


def _of_tool_call(change: Reducer) -> Reducer:
    """A reducer of the tool call that the action names."""

    def reducer(state: Json, action: Json) -> Json:
        for index, part in enumerate(_parts(state, action)):
            if part["kind"] == "toolCall" and _part_id(part) == action["toolCallId"]:
                call = change(part["toolCall"], action)
                if call is part["toolCall"]:
                    return state
                call = tool_calls.with_meta(call, action)
                return _with_activity(_with_part(state, index, toolCall=call))
        return state

    return reducer


# Input requests


def _open_request(state: Json, request_id: str) -> tuple[int, Json] | None:
    """The open request of that id and its position; a completed one no longer changes."""
    for index, part in enumerate(state.get("activeTurn", {}).get("responseParts", ())):
        is_open = part["kind"] == "inputRequest" and "response" not in part
        if is_open and part["request"]["id"] == request_id:
            return index, part["request"]
    return None


def input_requested(state: Json, action: Json) -> Json:
    if state.get("activeTurn") is None:
        return state
    request = action["request"]
    known = _open_request(state, request["id"])
    if known is None:
        asked = _with_new_part(state, {"kind": "inputRequest", "request": request})
    else:
        index, earlier = known
        drafts = {} if "answers" in request else tool_calls.picked(earlier, "answers")
        asked = _with_part(state, index, request={**request, **drafts})
    return flagged(_with_activity(asked), IS_READ, on=False)


def input_answer_changed(state: Json, action: Json) -> Json:
    found = _open_request(state, action["requestId"])
    if found is None:
        return state
    index, request = found
    answers = replaced(request.get("answers", {}), action["questionId"], action.get("answer"))
    return _with_part(state, index, request=replaced(request, "answers", answers or None))


def input_completed(state: Json, action: Json) -> Json:
    found = _open_request(state, action["requestId"])
    if found is None:
        return state
    index, request = found
    answers = {**request.get("answers", {}), **action.get("answers", {})}
    request = replaced(request, "answers", answers or None)
    return _with_activity(_with_part(state, index, request=request, response=action["response"]))


# Messages that wait


def pending_message_set(state: Json, action: Json) -> Json:
    message = {"id": action["id"], "message": action["message"]}
    if action["kind"] == "steering":
        return {**state, "steeringMessage": message}
    return upserted(state, "queuedMessages", message)


def pending_message_removed(state: Json, action: Json) -> Json:
    if action["kind"] == "steering":
        return _without_steering(state, action["id"])
    return removed(state, "queuedMessages", action["id"])


def queued_messages_reordered(state: Json, action: Json) -> Json:
    if "queuedMessages" not in state:
        return state
    by_id = {message["id"]: message for message in state["queuedMessages"]}
    named = dict.fromkeys(name for name in action["order"] if name in by_id)
    rest = [message for message in state["queuedMessages"] if message["id"] not in named]
    return {**state, "queuedMessages": [*(by_id[name] for name in named), *rest]}


def _without_steering(state: Json, message_id: str) -> Json:
    is_it = state.get("steeringMessage", {}).get("id") == message_id
    return without(state, "steeringMessage") if is_it else state


# What the chat is and has


def directory_set(state: Json, action: Json) -> Json:
    directories = state.get("workingDirectories", [])
    if action["directory"] in directories:
        return state
    return {**state, "workingDirectories": [*directories, action["directory"]]}


def directory_removed(state: Json, action: Json) -> Json:
    directories = state.get("workingDirectories", [])
    if action["directory"] not in directories:
        return state
    rest = [directory for directory in directories if directory != action["directory"]]
    return replaced(state, "workingDirectories", rest or None)


def is_read_changed(state: Json, action: Json) -> Json:
    return flagged(state, IS_READ, on=action["isRead"])


def is_archived_changed(state: Json, action: Json) -> Json:
    return flagged(state, IS_ARCHIVED, on=action["isArchived"])


def background_work_set(state: Json, action: Json) -> Json:
    return upserted(state, "backgroundWork", action["work"])


def background_work_removed(state: Json, action: Json) -> Json:
    return removed(state, "backgroundWork", action["id"])


REDUCERS: dict[str, Reducer] = {
    "chat/turnStarted": turn_started,
    "chat/turnComplete": turn_complete,
    "chat/turnCancelled": turn_cancelled,
    "chat/error": turn_failed,
    "chat/turnResume": turn_resumed,
    "chat/truncated": truncated,
    "chat/turnsLoaded": turns_loaded,
    "chat/responsePart": response_part,
    "chat/delta": _appended("markdown"),
    "chat/reasoning": _appended("reasoning"),
    "chat/usage": usage,
    "chat/toolCallStart": tool_call_start,
    "chat/toolCallDelta": _of_tool_call(tool_calls.grown),
    "chat/toolCallReady": _of_tool_call(tool_calls.made_ready),
    "chat/toolCallConfirmed": _of_tool_call(tool_calls.confirmed),
    "chat/toolCallComplete": _of_tool_call(tool_calls.completed),
    "chat/toolCallResultConfirmed": _of_tool_call(tool_calls.result_confirmed),
    "chat/toolCallContentChanged": _of_tool_call(tool_calls.content_changed),
    "chat/toolCallAuthRequired": _of_tool_call(tool_calls.auth_required),
    "chat/toolCallAuthResolved": _of_tool_call(tool_calls.auth_resolved),
    "chat/inputRequested": input_requested,
    "chat/inputAnswerChanged": input_answer_changed,
    "chat/inputCompleted": input_completed,
    "chat/pendingMessageSet": pending_message_set,
    "chat/pendingMessageRemoved": pending_message_removed,
    "chat/queuedMessagesReordered": queued_messages_reordered,
    "chat/draftChanged": copied("draft"),
    "chat/activityChanged": copied("activity"),
    "chat/changesetsChanged": copied("changesets"),
    "chat/canvasesChanged": copied("canvases"),
    "chat/movableChanged": copied("movable"),
    "chat/workingDirectorySet": directory_set,
    "chat/workingDirectoryRemoved": directory_removed,
    "chat/isReadChanged": is_read_changed,
    "chat/isArchivedChanged": is_archived_changed,
    "chat/backgroundWorkSet": background_work_set,
    "chat/backgroundWorkRemoved": background_work_removed,
}
