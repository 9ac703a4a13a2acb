"""What goes wrong here, as MCP clients are told of it."""

from collections.abc import Generator
from contextlib import contextmanager

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST
from pydantic import ValidationError

from session_server.calls.errors import CallsError, UnreachableError
from session_server.host.errors import CommandError
from session_server.host.performing import InDoubtError, NotSavedError, RefusedError


@contextmanager
def told_in_mcp() -> Generator[None]:
    """Errors of the host's become errors of MCP, with the same words."""
    try:
        yield
    except RefusedError as error:
        reason = {"reason": error.refusal.code.value}
        raise MCPError(INVALID_REQUEST, error.refusal.message, reason) from None
    except CommandError as error:
        raise MCPError(INVALID_REQUEST, error.error.message) from None
    except CallsError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from None
    except UnreachableError as error:
        words = f"The MCP server behind this gateway cannot be used: {error}."
        raise MCPError(INTERNAL_ERROR, words) from None
    except ValidationError:
        words = "The MCP server behind this gateway answered with what is not MCP."
        raise MCPError(INTERNAL_ERROR, words) from None
    except InDoubtError as error:
        raise MCPError(INTERNAL_ERROR, f"{error} Look before you do it again.") from None
    except NotSavedError as error:
        words = f"This could not be saved, and nothing has changed; try again. {error}"
        raise MCPError(INTERNAL_ERROR, words) from None


def lost_state(words: str = "Invalid or expired requestState") -> MCPError:
    """As every server of the 2026 era says that a state is worth nothing any more."""
    reason = {"reason": "invalid_request_state"}
    return MCPError(INVALID_PARAMS, words, reason)


def invalid(words: str) -> MCPError:
    return MCPError(INVALID_PARAMS, words)
