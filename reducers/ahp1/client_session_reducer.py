"""The session and root reducers that clients of AHP 0.9 and 1.x run, on JSON objects."""

from collections.abc import Callable
from typing import Any

from session_server.reducers.ahp1.client_chat_reducer import (
    ACTIVITY_BITS,
    INPUT_NEEDED,
    Json,
    Reducer,
    copied,
    directory_removed,
    directory_set,
    is_archived_changed,
    is_read_changed,
    removed,
    replaced,
    upserted,
    without,
)

NEEDS_A_PERSON = INPUT_NEEDED & ~8


def reduce_client_session(state: Json, action: Json) -> Json:
    """The state after the action; the same object if it does not apply or is not known."""
    reducer = SESSION_REDUCERS.get(action["type"])
    return state if reducer is None else reducer(state, action)


def reduce_client_root(state: Json, action: Json) -> Json:
    reducer = ROOT_REDUCERS.get(action["type"])
    return state if reducer is None else reducer(state, action)


def ready(state: Json, action: Json) -> Json:
    return {**state, "lifecycle": "ready"}


def creation_failed(state: Json, action: Json) -> Json:
    return {**state, "lifecycle": "failed", "creationError": action["error"]}


def config_changed(state: Json, action: Json) -> Json:
    config = state.get("config")
    if config is None:
        return state
    old = {} if action.get("replace") else config["values"]
    return {**state, "config": {**config, "values": {**old, **action["config"]}}}


def server_tools_changed(state: Json, action: Json) -> Json:
    return {**state, "serverTools": action["tools"]}


def active_client_set(state: Json, action: Json) -> Json:
    return upserted(state, "activeClients", action["activeClient"], "clientId")


def active_client_removed(state: Json, action: Json) -> Json:
    return removed(state, "activeClients", action["clientId"], "clientId")


# Chats


def chat_added(state: Json, action: Json) -> Json:
    return upserted(state, "chats", action["summary"], "resource")


def chat_removed(state: Json, action: Json) -> Json:
    rest = removed(state, "chats", action["chat"], "resource")
    is_default = rest is not state and state.get("defaultChat") == action["chat"]
    return without(rest, "defaultChat") if is_default else rest


def chat_updated(state: Json, action: Json) -> Json:
    """Merges: it can neither rename a chat nor remove a field."""
    changes = without(action["changes"], "resource")
    chats = [
        {**chat, **changes} if chat["resource"] == action["chat"] else chat
        for chat in state["chats"]
    ]
    return state if chats == state["chats"] else {**state, "chats": chats}


def chats_reordered(state: Json, action: Json) -> Json:
    by_uri = {chat["resource"]: chat for chat in state["chats"]}
    if sorted(action["chats"]) != sorted(by_uri):
        return state
    return {**state, "chats": [by_uri[uri] for uri in action["chats"]]}


# What waits for people


def input_needed_set(state: Json, action: Json) -> Json:
    return _with_needed_status(upserted(state, "inputNeeded", action["request"]))


def input_needed_removed(state: Json, action: Json) -> Json:
    rest = removed(state, "inputNeeded", action["id"])
    return state if rest is state else _with_needed_status(rest)


def _with_needed_status(state: Json) -> Json:
    """Clears only this bit, so a session that needed input stays in progress."""
    entries = state.get("inputNeeded", ())
    if any(entry["kind"] != "toolClientExecution" for entry in entries):
        return {**state, "status": state["status"] & ~ACTIVITY_BITS | INPUT_NEEDED}
    return {**state, "status": state["status"] & ~NEEDS_A_PERSON}


# Customizations


def customization_toggled(state: Json, action: Json) -> Json:
    def toggled(entry: Json) -> Json:
        if entry["type"] in ("plugin", "mcpServer"):
            return {**entry, "enablement": action["enablement"]}
        is_on = next((one["enabled"] for one in reversed(action["enablement"])), True)
        return {**entry, "enabled": is_on}

    return _with_entry(state, action["id"], toggled)


def customization_updated(state: Json, action: Json) -> Json:
    return upserted(state, "customizations", action["customization"])


def customization_removed(state: Json, action: Json) -> Json:
    rest = removed(state, "customizations", action["id"])
    if rest is not state:
        return rest
    entries = state.get("customizations", [])
    holders = [removed(entry, "children", action["id"]) for entry in entries]
    return state if holders == entries else {**state, "customizations": holders}


def mcp_server_state_changed(state: Json, action: Json) -> Json:
    def changed(entry: Json) -> Json:
        if entry["type"] != "mcpServer":
            return entry
        return replaced({**entry, "state": action["state"]}, "channel", action.get("channel"))

    return _with_entry(state, action["id"], changed)


def _mcp_server_moved(kind: str) -> Reducer:
    def moved(state: Json, action: Json) -> Json:
        return mcp_server_state_changed(state, {"id": action["id"], "state": {"kind": kind}})

    return moved


def _with_entry(state: Json, identity: str, change: Callable[[Json], Json]) -> Json:
    """Changes the entry of that id, at the top or inside a container."""
    entries = state.get("customizations", [])

    def found(entry: Json) -> Json:
        if entry["id"] == identity:
            return change(entry)
        if "children" not in entry:
            return entry
        children = [
            change(child) if child["id"] == identity else child for child in entry["children"]
        ]
        return {**entry, "children": children}

    changed = [found(entry) for entry in entries]
    return state if changed == entries else {**state, "customizations": changed}


def directory_replaced(state: Json, action: Json) -> Json:
    directories = state.get("workingDirectories", [])
    if action["directory"] not in directories:
        return state
    moved = [
        action["replacement"] if directory == action["directory"] else directory
        for directory in directories
    ]
    return {**state, "workingDirectories": list(dict.fromkeys(moved))}


def _set(name: str) -> Reducer:
    def reducer(state: Json, action: Json) -> Json:
        value: Any = action[name]
        return {**state, name: value}

    return reducer


SESSION_REDUCERS: dict[str, Reducer] = {
    "session/ready": ready,
    "session/creationFailed": creation_failed,
    "session/titleChanged": _set("title"),
    "session/isReadChanged": is_read_changed,
    "session/isArchivedChanged": is_archived_changed,
    "session/activityChanged": copied("activity"),
    "session/configChanged": config_changed,
    "session/metaChanged": copied("_meta"),
    "session/changesetsChanged": copied("changesets"),
    "session/serverToolsChanged": server_tools_changed,
    "session/activeClientSet": active_client_set,
    "session/activeClientRemoved": active_client_removed,
    "session/chatAdded": chat_added,
    "session/chatRemoved": chat_removed,
    "session/chatUpdated": chat_updated,
    "session/chatsReordered": chats_reordered,
    "session/defaultChatChanged": copied("defaultChat"),
    "session/inputNeededSet": input_needed_set,
    "session/inputNeededRemoved": input_needed_removed,
    "session/customizationsChanged": _set("customizations"),
    "session/customizationToggled": customization_toggled,
    "session/customizationUpdated": customization_updated,
    "session/customizationRemoved": customization_removed,
    "session/mcpServerStateChanged": mcp_server_state_changed,
    "session/mcpServerStartRequested": _mcp_server_moved("starting"),
    "session/mcpServerStopRequested": _mcp_server_moved("stopped"),
    "session/workingDirectorySet": directory_set,
    "session/workingDirectoryRemoved": directory_removed,
    "session/workingDirectoryReplaced": directory_replaced,
}

ROOT_REDUCERS: dict[str, Reducer] = {
    "root/agentsChanged": _set("agents"),
    "root/activeSessionsChanged": _set("activeSessions"),
    "root/terminalsChanged": _set("terminals"),
    "root/configChanged": config_changed,
}
