"""Results that ask are recognized by the protocol's rules, and retries keep what was sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.calls.input_required import (
    is_expired_state,
    recognize_input_required,
    retry_params,
)
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.mcp import (
    Elicitation,
    ElicitRequest,
    ElicitResult,
    InputRequired,
    InvalidResult,
    RootsRequest,
    SamplingRequest,
)


def asks(**fields: Any) -> dict[str, Any]:
    return {"resultType": "input_required", **fields}


@pytest.mark.proves("mcp.shape.map", "mcp.shape.kinds")
def test_embedded_requests_are_read_by_key_and_kind() -> None:
    form = {"mode": "form", "message": "City?", "requestedSchema": {"type": "object"}}
    url = {"mode": "url", "message": "Sign in", "url": "https://x.example"}
    result = asks(
        inputRequests={
            "city": {"method": "elicitation/create", "params": form},
            "login": {"method": "elicitation/create", "params": url},
            "think": {"method": "sampling/createMessage", "params": {"maxTokens": 5}},
            "where": {"method": "roots/list"},
        },
        requestState="s",
    )
    assert recognize_input_required(result) == InputRequired(
        result_type="input_required",
        input_requests={
            "city": ElicitRequest(
                params=Elicitation(
                    mode="form", message="City?", requested_schema={"type": "object"}
                )
            ),
            "login": ElicitRequest(
                params=Elicitation(mode="url", message="Sign in", url="https://x.example")
            ),
            "think": SamplingRequest(params={"maxTokens": 5}),
            "where": RootsRequest(),
        },
        request_state="s",
    )


@pytest.mark.proves("mcp.shape.complete")
@pytest.mark.parametrize("result", [{"content": []}, {"resultType": "complete", "content": []}])
def test_a_result_without_type_is_complete(result: dict[str, Any]) -> None:
    assert recognize_input_required(result) is None


@pytest.mark.proves("mcp.shape.not-empty", "mcp.shape.unknown-type", "mcp.shape.task")
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (asks(), "neither"),
        (asks(inputRequests={}), "neither"),
        (asks(inputRequests=[{"id": "city"}]), "not MCP"),
        (asks(inputRequests={"a": {"method": "tools/call"}}), "not MCP"),
        (asks(requestState=5), "not MCP"),
        ({"resultType": "later"}, "'later'"),
        ({"resultType": 7}, "7"),
        ({"resultType": "task", "task": {}}, "io.modelcontextprotocol/tasks"),
    ],
)
def test_what_breaks_the_protocol_is_invalid_with_a_reason(
    result: dict[str, Any], expected: str
) -> None:
    recognized = recognize_input_required(result)
    assert isinstance(recognized, InvalidResult)
    assert expected in recognized.reason


@pytest.mark.parametrize("state", ["", "opaque"])
def test_state_alone_asks_for_a_retry(state: str) -> None:
    recognized = recognize_input_required(asks(requestState=state))
    assert recognized == InputRequired(result_type="input_required", request_state=state)


@pytest.mark.proves("mcp.retry.expired")
def test_an_expired_state_is_distinguished_from_other_errors() -> None:
    assert is_expired_state(-32602, {"reason": "invalid_request_state"})
    assert not is_expired_state(-32602, {"reason": "other"})
    assert not is_expired_state(-32602, None)
    assert not is_expired_state(-32603, {"reason": "invalid_request_state"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
RESPONSES = st.dictionaries(
    st.text(),
    st.builds(ElicitResult, action=st.sampled_from(ResponseKind)),
    max_size=3,
)


@pytest.mark.proves("mcp.retry.arguments", "mcp.retry.state", "mcp.shape.map-sent")
@given(st.dictionaries(st.text(), json_values), RESPONSES, st.none() | st.text())
def test_a_retry_is_the_original_with_answers_and_state(
    original: dict[str, Any], responses: dict[str, ElicitResult], state: str | None
) -> None:
    before = dict(original)
    params = retry_params(original, responses, state)
    assert original == before
    assert ("requestState" in params) == (state is not None)
    assert params.pop("requestState", None) == state
    sent = params.pop("inputResponses", {})
    assert sent == {key: {"action": response.action} for key, response in responses.items()}
    assert params == original
