"""Whether frames for AHP 0.9 and 1.x are valid by their schemas, which are given from outside."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from session_server.schemas.ahp.frames import PresenceChanged

SHARED = Path(__file__).resolve().parents[3] / "shared" / "ahp1"
with_schemas = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the protocol's schemas are not at hand"
)

ONLY_1_0_ACTIONS = {"chat/isReadChanged", "chat/isArchivedChanged", "session/chatsReordered"}
ONLY_1_0_FIELDS = {"movable", "backgroundWork", "canvases"}
ANY_VALUE = {"_meta", "config", "values", "structuredContent", "inputSchema", "outputSchema"}
"""What holds anything, `null` too."""


@cache
def validator(document: str, name: str) -> Draft202012Validator:
    schema = json.loads((SHARED / "schema" / f"{document}.schema.json").read_text())
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@cache
def methods() -> dict[str, Any]:
    named: dict[str, Any] = json.loads((SHARED / "schema" / "methods.json").read_text())
    return named


def check_frame(frame: dict[str, Any], asked: Mapping[Any, str], version: str) -> None:
    """A frame of the host for a client that asked this, by request id."""
    validator("frames", "JsonRpcMessage").validate(frame)
    if "method" in frame:
        check_notification(frame["method"], frame["params"], version)
    elif "result" in frame:
        check_result(asked[frame["id"]], frame["result"], version)


def check_notification(method: str, params: dict[str, Any], version: str) -> None:
    if method == PresenceChanged.__struct_config__.tag:
        return  # an extension of this host
    name = methods()["serverNotifications"][method]
    if "rejectionReason" in params:  # the action is the client's own, whatever that was
        params = {**params, "action": {"type": "session/ready"}}
    validator("actions" if name == "ActionEnvelope" else "notifications", name).validate(params)
    if version.startswith("0.9"):
        assert params.get("action", {}).get("type") not in ONLY_1_0_ACTIONS
        for listed in (params.get("summary", {}), params.get("changes", {})):
            assert not {"chats", "defaultChat"} & set(listed)
    check_values(params, version)


def check_result(method: str, result: Any, version: str) -> None:
    known = methods()["requests"].get(method)
    name = None if known is None else known[1]
    if name is None:
        assert result is None, method
        return
    validator("commands", name).validate(result)
    if version.startswith("0.9") and method == "listSessions":
        assert not any({"chats", "defaultChat"} & set(item) for item in result["items"])
    check_values(result, version)


def check_values(value: Any, version: str) -> None:
    """What is not there is absent, and not `null`."""
    assert value is not None
    if isinstance(value, dict):
        assert version.startswith("1") or not ONLY_1_0_FIELDS & set(value)
        for name, inner in value.items():
            if name not in ANY_VALUE:
                check_values(inner, version)
    elif isinstance(value, list):
        for inner in value:
            check_values(inner, version)
