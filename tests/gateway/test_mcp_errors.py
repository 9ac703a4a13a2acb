"""Errors of the host as MCP clients get them."""

import json

import pytest
from mcp import MCPError

from session_server.gateway.mcp_errors import as_mcp_errors, not_served
from session_server.schemas.errors import UnknownServerError, UnreachableError


@pytest.mark.parametrize(
    ("error", "status"),
    [(UnreachableError("it is disabled"), 503), (UnknownServerError("zoo", ()), 404)],
)
def test_a_server_that_cannot_be_used_is_reported_alike_before_a_request_and_during_it(
    error: UnreachableError | UnknownServerError, status: int
) -> None:
    with pytest.raises(MCPError, match="MCP server 'zoo'") as raised, as_mcp_errors("zoo"):
        raise error
    refused = not_served(error, "zoo")
    assert refused.status_code == status
    reported = raised.value.error.model_dump(exclude_none=True)
    assert json.loads(bytes(refused.body))["error"] == reported
