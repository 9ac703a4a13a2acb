"""What a client of AHP 0.9 and 1.x does with one tool call: JSON in, JSON out.

Each function returns the call after an action, or the same object if the call is in a state in
which the action does not apply.
"""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

IDENTITY = ("toolCallId", "toolName", "displayName", "intention", "contributor", "_meta")
CONFIRMATION = ("confirmationTitle", "riskAssessment", "edits", "editable", "options")
RUN = ("invocationMessage", "toolInput", "confirmed", "selectedOption")
ENDED = frozenset({"completed", "cancelled"})


def picked(value: Json, *names: str) -> Json:
    """Those of the keys that are there."""
    return {name: value[name] for name in names if name in value}


def with_meta(call: Json, action: Json) -> Json:
    return {**call, **picked(action, "_meta")}


def started(action: Json) -> Json:
    return {**picked(action, *IDENTITY), "status": "streaming"}


def grown(call: Json, action: Json) -> Json:
    if call["status"] != "streaming":
        return call
    more = {**call, **picked(action, "invocationMessage")}
    if "content" in action:
        more["partialInput"] = call.get("partialInput", "") + action["content"]
    return more


def made_ready(call: Json, action: Json) -> Json:
    """Fields that the action leaves out keep what a call that waits already had."""
    status = call["status"]
    if status not in ("streaming", "running", "pending-confirmation"):
        return call
    ready = {
        **picked(call, *IDENTITY, "toolInput"),
        **picked(action, "intention", "invocationMessage", "toolInput"),
        **_contributor(call, action),
    }
    if "confirmed" in action:
        return {**ready, "status": "running", "confirmed": action["confirmed"]}
    kept = picked(call, *CONFIRMATION) if status == "pending-confirmation" else {}
    return {**ready, **kept, **picked(action, *CONFIRMATION), "status": "pending-confirmation"}


def _contributor(call: Json, action: Json) -> Json:
    """Which client runs the tool is decided when the call starts and does not change."""
    offered = (call.get("contributor"), action.get("contributor"))
    is_clients = any(one is not None and one["kind"] == "client" for one in offered)
    return {} if is_clients else picked(action, "contributor")


def confirmed(call: Json, action: Json) -> Json:
    if call["status"] != "pending-confirmation":
        return call
    base = picked(call, *IDENTITY, "invocationMessage", "toolInput")
    chosen = _selected(call, action)
    if not action["approved"]:
        told = picked(action, "reason", "reasonMessage", "userSuggestion")
        return {**base, **told, **chosen, "status": "cancelled"}
    # An input that is kept elsewhere is edited there.
    if "editedToolInput" in action and isinstance(call.get("toolInput", ""), str):
        base["toolInput"] = action["editedToolInput"]
    return {**base, **chosen, "status": "running", "confirmed": action["confirmed"]}


def _selected(call: Json, action: Json) -> Json:
    chosen = action.get("selectedOptionId")
    for option in call.get("options", ()):
        if option["id"] == chosen:
            return {"selectedOption": option}
    return {}


def completed(call: Json, action: Json) -> Json:
    result, status = action["result"], "completed"
    match call["status"]:
        case "running":
            run = picked(call, *RUN)
        case "pending-confirmation":
            run = {**picked(call, "invocationMessage", "toolInput"), "confirmed": "not-needed"}
        case "auth-required" if not result["success"]:
            run = picked(call, *RUN, "content")
            return {**picked(call, *IDENTITY), **run, **result, "status": status}
        case _:
            return call
    if action.get("requiresResultConfirmation"):
        status = "pending-result-confirmation"
    return {**picked(call, *IDENTITY), **run, **result, "status": status}


def result_confirmed(call: Json, action: Json) -> Json:
    if call["status"] != "pending-result-confirmation":
        return call
    if action["approved"]:
        return {**call, "status": "completed"}
    kept = picked(call, *IDENTITY, "invocationMessage", "toolInput", "selectedOption")
    return {**kept, "status": "cancelled", "reason": "result-denied"}


def content_changed(call: Json, action: Json) -> Json:
    return {**call, "content": action["content"]} if call["status"] == "running" else call


def auth_required(call: Json, action: Json) -> Json:
    is_mcp = call.get("contributor", {}).get("kind") == "mcp"
    if call["status"] != "running" or not is_mcp:
        return call
    return {**call, "status": "auth-required", "auth": action["auth"]}


def auth_resolved(call: Json, action: Json) -> Json:
    if call["status"] != "auth-required":
        return call
    return {**picked(call, *IDENTITY, *RUN, "content"), "status": "running"}


def skipped(call: Json) -> Json:
    """The call at the end of its turn."""
    if call["status"] in ENDED:
        return call
    kept = picked(call, *IDENTITY, "toolInput")
    message = call.get("invocationMessage", "")
    return {**kept, "invocationMessage": message, "status": "cancelled", "reason": "skipped"}
