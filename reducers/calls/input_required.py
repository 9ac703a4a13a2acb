"""Recognizing results that ask for more, and building the request that answers them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from session_server.schemas.errors import ErrorCode
from session_server.schemas.mcp import EmbeddedResponse, InputRequired, InvalidResult

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"


def recognize_input_required(result: Mapping[str, Any]) -> InputRequired | InvalidResult | None:
    """A result that asks for input; `None` for one that is complete."""
    kind = result.get("resultType")
    if kind is None or kind == "complete":
        return None
    if kind == "task":
        return InvalidResult(
            reason=f"the server answered with a task ({TASKS_EXTENSION}), which is not supported"
        )
    if kind != "input_required":
        return InvalidResult(reason=f"the server answered with an unknown resultType {kind!r}")
    try:
        required = msgspec.convert(result, InputRequired)
    except msgspec.ValidationError as error:
        return InvalidResult(reason=f"the server asked for input in a way that is not MCP: {error}")
    if not required.input_requests and required.request_state is None:
        return InvalidResult(
            reason="the server asked for input but sent neither requests nor state"
        )
    return required


def is_expired_state(code: int, data: Any) -> bool:
    """Whether an error means that the server no longer knows the `requestState` that it sent."""
    return (
        code == ErrorCode.INVALID_PARAMS
        and isinstance(data, Mapping)
        and data.get("reason") == "invalid_request_state"
    )


def retry_params(
    original: Mapping[str, Any],
    responses: Mapping[str, EmbeddedResponse] | None,
    state: str | None,
) -> dict[str, Any]:
    """The parameters of the next leg: the call's own, untouched, with answers and state.

    They hold no state that a caller may have sent: a call starts with `own_params`. "" is a state.
    """
    params = dict(original)
    if responses:
        params["inputResponses"] = {
            key: msgspec.to_builtins(response) for key, response in responses.items()
        }
    if state is not None:
        params["requestState"] = state
    return params
