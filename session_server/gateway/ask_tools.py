"""The ask tools: with one line in its `mcp.json`, any agent can put questions to people."""

import contextlib
import hashlib
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import msgspec
from mcp import MCPError
from mcp.server import Server
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from session_server import __version__
from session_server.calls.requesters import DepartureCheck, Requesters
from session_server.gateway.gateway_sessions import GatewaySessions, session_for
from session_server.gateway.long_polling import HoldLimits, LegProgress, hold
from session_server.gateway.mcp_callers import Context, McpCaller
from session_server.gateway.mcp_errors import as_mcp_errors, lost_state_error
from session_server.gateway.request_state import input_required_result, request_state_in, sealing
from session_server.host.async_api import StateWaiters, write
from session_server.host.host import Host
from session_server.reducers.batches import Batch, judged_batch, note, title_change
from session_server.reducers.forms.ask_forms import (
    UnaskableError,
    ask_result,
    asked_request,
    same_ask,
)
from session_server.reducers.rules.input_rules import outcome_of
from session_server.reducers.rules.roles import as_asker
from session_server.reducers.texts import outcome_note, subject
from session_server.schemas.ahp.actions import ActivityChanged, InputRequested
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.errors import (
    CommandError,
    DecodingError,
    NotSavedError,
    Refusal,
    RefusalCode,
    RefusedError,
)
from session_server.schemas.limits import TITLE_CHARS
from session_server.schemas.mcp import (
    AskQuestions,
    AskResult,
    NotifyStatus,
    QuestionKind,
    StatusShown,
)
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import Outcome, OutcomeCollected, SessionRecord
from session_server.schemas.wire import Uri

DEFINITIONS = "#/$defs/"


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    found = msgspec.json.schema(shape)
    definitions: dict[str, Any] = found.pop("$defs", {})
    written: dict[str, Any] = _written_out(found, definitions)
    return written


def _written_out(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_written_out(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    here = dict(node)
    reference: str | None = here.pop("$ref", None)
    if reference is not None:
        here = {**definitions[reference.removeprefix(DEFINITIONS)], **here}
    return {key: _written_out(value, definitions) for key, value in here.items()}


NAME = "session-server"
ASK, NOTIFY = "ask_questions", "notify_status"

INSTRUCTIONS = (
    "Ask people when you need a decision or a fact that only they have. Put everything that you"
    " need to know into one call. An outcome other than `accepted` is an answer too: `declined`"
    " means that a person said no, `timedOut` that nobody answered in time."
)

TOOLS = [
    Tool(
        name=ASK,
        title="Ask people",
        description="Put typed questions to the people of this session and wait for their answers."
        " They may take long. `outcome` tells apart accepted, declined, cancelled and timedOut.",
        input_schema=schema_of(AskQuestions),
        output_schema=schema_of(AskResult),
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True),
    ),
    Tool(
        name=NOTIFY,
        title="Show a status",
        description="Show people in one line what you are doing. Returns at once.",
        input_schema=schema_of(NotifyStatus),
        output_schema=schema_of(StatusShown),
        annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=True),
    ),
]

EXAMPLE = {
    "message": "Release 1.4",
    "questions": [
        {"id": "env", "question": "Where to?", "options": ["staging", "prod"]},
        {"id": "replicas", "question": "How many?", "kind": "integer", "min": 1, "default": 3},
        {"id": "sure", "question": "Tests have failed. Release anyway?", "kind": "boolean"},
    ],
}
HOW_TO_ASK = (
    f"The kinds of questions are: {', '.join(get_args(QuestionKind))}. Without a kind, a question"
    " with options is single-select, and one without is text. Example of correct arguments: "
    + encode(EXAMPLE).decode()
)

decode_ask: Decoder[AskQuestions] = Decoder(AskQuestions)
decode_status: Decoder[NotifyStatus] = Decoder(NotifyStatus)


class AskTools:
    def __init__(
        self, host: Host, waiting: StateWaiters, sessions: GatewaySessions, limits: HoldLimits
    ) -> None:
        self._host = host
        self._waiting = waiting
        self._sessions = sessions
        self._limits = limits
        self._requesters = Requesters()

    def server(self, key: Callable[[], bytes]) -> Server[Any]:
        server: Server[Any] = Server(
            NAME,
            version=__version__,
            title="Ask people",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            get_tool_input_schema=lambda _: None,
        )
        server.middleware[:] = [sealing(key, NAME)]
        return server

    async def _list(self, _: Context, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=TOOLS)

    async def _call(self, ctx: Context, params: CallToolRequestParams) -> Any:
        caller = McpCaller(ctx)
        with as_mcp_errors(), caller.requester.connected():
            try:
                if params.name == ASK:
                    return await self._ask(caller, params)
                if params.name == NOTIFY:
                    return await self._notify(caller, params)
            except (DecodingError, UnaskableError, RefusedError) as error:
                return _tool_error(error, HOW_TO_ASK if params.name == ASK else "")
        raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")

    # Asking

    async def _ask(self, caller: McpCaller, params: CallToolRequestParams) -> Any:
        state, requester = request_state_in(caller.ctx.params), caller.requester
        uri: Uri = state.get("session") or session_for(caller, "ask", None)
        asked = decode_ask(encode(params.arguments or {}))
        request_id: str = state.get("request") or await self._asked(caller, uri, asked)
        if self._host.channel(caller.principal, uri) is None:
            raise lost_state_error()
        requester.join(self._requesters, request_id)

        async def wait(seconds: float) -> Outcome | None:
            return await self._waiting.until(uri, lambda r: outcome_of(r, request_id), seconds)

        message = f"Waiting for people to answer in {caller.where_to_answer(uri)}"
        with requester.while_connected(self._host.askers.waiting(uri, request_id)):
            outcome = await hold(caller, wait, self._limits, LegProgress(caller), lambda: message)
        if outcome is None:
            return input_required_result(requester, state, {"session": uri, "request": request_id})
        requester.when_fetched(partial(self._collect, uri, request_id))
        return _result(outcome_note(outcome), ask_result(outcome, uri))

    async def _asked(self, caller: McpCaller, uri: Uri, asked: AskQuestions) -> str:
        """The id of a new request, or of the same one whose client is no longer connected."""
        asked_by = msgspec.json.encode((caller.principal.id, asked), order="deterministic")
        stem = f"ask-{hashlib.sha256(asked_by).hexdigest()[:24]}-"
        request = asked_request(
            asked, stem + uuid.uuid4().hex[:12], self._host.now(), self._limits.lease
        )
        title = _title(caller, subject(request))
        await self._sessions.ready(caller, uri, title)
        departure = DepartureCheck(self._requesters)
        found = request.id

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            nonlocal found
            latest = same_ask(record, stem, stamp.at)
            if latest is not None and departure.request_wait(latest):
                return ()
            known = same_ask(record, stem, stamp.at, self._requesters)
            found = known or request.id
            caller.requester.join(self._requesters, found)
            if known is not None:
                return ()
            action = InputRequested(request=request)
            batch = judged_batch(as_asker(caller.principal), record, action, stamp)
            if isinstance(batch, Refusal):
                return batch
            return (*batch, *title_change(record, _new_title(caller, record, title)))

        await write(self._host, uri, plan, by=caller.principal.author)
        if await departure.wait_if_requested():
            await write(self._host, uri, plan, by=caller.principal.author)
        return found

    async def _collect(self, uri: Uri, request_id: str) -> None:
        """Where it cannot be written down, the outcome is given again."""

        def plan(record: SessionRecord, _: Stamp) -> Batch:
            is_known = request_id in record.private.collected
            return () if is_known else (OutcomeCollected(request_id=request_id),)

        with contextlib.suppress(CommandError, NotSavedError, RefusedError):
            await write(self._host, uri, plan, HOST)

    # Status

    async def _notify(self, caller: McpCaller, params: CallToolRequestParams) -> CallToolResult:
        status = decode_status(encode(params.arguments or {})).status
        uri = session_for(caller, "ask", None)
        await self._sessions.ready(caller, uri, _title(caller))
        action = ActivityChanged(activity=status or None)

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            batch = judged_batch(as_asker(caller.principal), record, action, stamp)
            shown = note(record.public, status) if status else ()
            return batch if isinstance(batch, Refusal) else (*batch, *shown)

        await write(self._host, uri, plan, by=caller.principal.author)
        return _result(f"Shown in {uri}.", StatusShown(session=uri))


def _title(caller: McpCaller, topic: str | None = None) -> str:
    return (caller.client if topic is None else f"{caller.client}: {topic}")[:TITLE_CHARS]


def _new_title(caller: McpCaller, record: SessionRecord, title: str) -> str | None:
    """The title says what is asked now, unless a person has set another one."""
    known = record.public.summary.title
    is_ours = known == _title(caller) or known.startswith(_title(caller, ""))
    return title if is_ours else None


def _result(text: str, shape: msgspec.Struct) -> CallToolResult:
    plain: dict[str, Any] = msgspec.to_builtins(shape)
    return CallToolResult(content=[TextContent(text=text)], structured_content=plain)


def _tool_error(error: Exception, help_text: str) -> CallToolResult:
    """For the model to read and correct; help with the arguments only if they are the problem."""
    is_about_arguments = not isinstance(error, RefusedError) or (
        error.refusal.code in (RefusalCode.BAD_FORM, RefusalCode.DUPLICATE)
    )
    reason = str(error).rstrip(".")
    text = f"{reason}. {help_text}" if help_text and is_about_arguments else str(error)
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
