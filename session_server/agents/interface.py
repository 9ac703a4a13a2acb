"""The interface of agents: what an agent implements, and the turn that it gets."""

from collections.abc import Mapping
from typing import Any, Protocol

from session_server.schemas.ahp.questions import Question
from session_server.schemas.ahp.session import AgentInfo
from session_server.schemas.ahp.tool_calls import ToolResult
from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.errors import SessionServerError
from session_server.schemas.mcp import CallMethod
from session_server.schemas.record import Outcome
from session_server.schemas.wire import Text, Uri


class TurnContext(Protocol):
    """A turn, as its agent sees it.

    `key` names a step within the turn. A step that was done before a restart is not done again:
    what was written is not repeated, and an answered question returns its outcome at once.
    """

    @property
    def session(self) -> Uri: ...

    @property
    def turn_id(self) -> str: ...

    @property
    def message(self) -> Message: ...

    async def say(self, text: str, *, key: str) -> None:
        """Adds markdown to the response."""
        ...

    async def stream(self, chunk: str, *, key: str) -> None:
        """Appends to the markdown of this key, adding it first if need be."""
        ...

    async def think(self, text: str, *, key: str) -> None:
        """Adds reasoning to the response."""
        ...

    async def show_tool_call(
        self, name: str, *, key: str, message: Text, tool_input: str | None = None
    ) -> None:
        """Shows a tool call as running."""
        ...

    async def finish_tool_call(self, *, key: str, result: ToolResult) -> None: ...

    async def ask(
        self,
        *questions: Question,
        key: str,
        message: str | None = None,
        url: Uri | None = None,
        expires_at: int | None = None,
    ) -> Outcome:
        """Asks people and waits for how it ended, however long that takes."""
        ...

    async def call_tool(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, *, key: str
    ) -> dict[str, Any]:
        """Calls a tool of a configured MCP server and waits for its result, as the server sent it.

        When the server asks, the people in the session answer. A call that cannot be finished is a
        `CallFailedError`; a result with `isError` is a result.
        """
        ...

    async def call(
        self, server: str, method: CallMethod, params: Mapping[str, Any], *, key: str
    ) -> dict[str, Any]:
        """The same for `prompts/get` and `resources/read` too."""
        ...


class CallFailedError(SessionServerError):
    """A call that an agent made has no result, and will have none."""

    code = "callFailed"


class Agent(Protocol):
    """Handles turns. `run` is cancelled when the turn is; what it raises fails the turn."""

    @property
    def info(self) -> AgentInfo:
        """How the agent presents itself to clients; `provider` is its name."""
        ...

    @property
    def resumes(self) -> bool:
        """Whether `run` may be called again for a turn that a restart interrupted."""
        ...

    async def run(self, turn: TurnContext) -> None: ...
