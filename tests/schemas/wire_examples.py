"""One value or more of everything that goes over the wire, small but with the optional parts."""

from typing import Any, Final

import msgspec

from session_server.schemas import errors
from session_server.schemas.ahp import actions as a
from session_server.schemas.ahp import commands as c
from session_server.schemas.ahp import commands as presence
from session_server.schemas.ahp import customizations as cz
from session_server.schemas.ahp import envelopes, frames, session, turns
from session_server.schemas.ahp import messages as m
from session_server.schemas.ahp import questions as q
from session_server.schemas.ahp import session as config
from session_server.schemas.ahp import session as root
from session_server.schemas.ahp import tool_calls as t
from session_server.schemas.codec import encode
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.wire import (
    ContentRef,
    ErrorInfo,
    Icon,
    Markdown,
    TextPosition,
    TextRange,
    TextSelection,
    Wire,
)

SESSION = "ahp-session:/s1"
ROOT: Final = "ahp-root://"
ANNA = Author(id="anna", name="Anna")

# Pieces

RANGE = TextRange(start=TextPosition(line=1, character=0), end=TextPosition(line=2, character=7))
OOPS = ErrorInfo(error_type="Timeout", message="It took too long.", stack="at line 1")
TOOL = t.ToolDefinition(
    name="read",
    title="Read",
    description="Reads a file.",
    input_schema={"type": "object"},
    annotations=t.ToolAnnotations(read_only_hint=True),
    meta={"anything": [1]},
)
MESSAGE = m.Message(
    text="Hello",
    origin=m.MessageOrigin(kind="user"),
    attachments=(
        m.SimpleAttachment(label="note", model_representation="a note", range=RANGE),
        m.EmbeddedResourceAttachment(label="image", data="AAAA", content_type="image/png"),
        m.ResourceAttachment(
            label="file", uri="file:///f", size_hint=3, selection=TextSelection(range=RANGE)
        ),
        m.UnknownAttachment({"type": "hologram", "depth": 3}),
    ),
    meta={"locale": "en"},
)
EDIT = t.FileEdit(
    before=t.FileVersion(uri="file:///f", content="old"),
    after=t.FileVersion(uri="file:///f", content=ContentRef(uri="blob:1", size_hint=3)),
    diff=t.FileDiff(added=1, removed=2),
)
CONTENT = (
    t.TextContent(text="done"),
    t.EmbeddedResourceContent(data="AAAA", content_type="image/png"),
    t.ResourceContent(uri="file:///f", size_hint=3, content_type="text/plain"),
    t.FileEditContent(before=EDIT.before, after=EDIT.after, diff=EDIT.diff),
    t.TerminalContent(resource="ahp-terminal:/1", title="sh"),
    t.SubagentContent(resource="ahp-session:/s2", title="Helper", agent_name="helper"),
    t.UnknownContent({"type": "smell", "of": "roses"}),
)
OPTION = t.ConfirmationOption(id="yes", label="Yes", kind=t.ConfirmationOptionKind.APPROVE, group=1)
QUESTIONS = (
    q.TextQuestion(
        id="name",
        message="Your name?",
        title="Name",
        required=True,
        format="email",
        min=1,
        max=80,
        default_value="anna@example.org",
        meta=q.QuestionMeta(pattern="^a"),
    ),
    q.NumberQuestion(id="weight", message="Weight?", min=0.5, max=3, default_value=1.5),
    q.IntegerQuestion(id="age", message="Age?", min=0, max=150, default_value=30),
    q.BooleanQuestion(id="sure", message="Sure?", default_value=False),
    q.SingleSelectQuestion(
        id="colour",
        message="Colour?",
        options=(q.Option(id="r", label="Red", description="Like blood", recommended=True),),
        allow_freeform_input=True,
    ),
    q.MultiSelectQuestion(
        id="days", message="Days?", options=(q.Option(id="mo", label="Monday"),), min=0, max=1
    ),
)
BY_ANNA = q.AnswerMeta(by=ANNA, at=1_700_000_000_000, via=Provenance.PERSON)
ANSWERS: dict[str, q.Answer] = {
    "name": q.Draft(value=q.TextValue(value="a@"), meta=BY_ANNA),
    "weight": q.Submitted(value=q.NumberValue(value=1.25), meta=BY_ANNA),
    "sure": q.Submitted(value=q.BooleanValue(value=True)),
    "colour": q.Submitted(value=q.SelectedValue(value="r", freeform_values=("dark",))),
    "days": q.Submitted(value=q.SelectedManyValue(value=("mo",))),
    "age": q.Skipped(freeform_values=("rather not",)),
}
REQUEST = q.InputRequest(
    id="r1",
    message="A few questions",
    url="https://example.org/form",
    questions=QUESTIONS,
    answers=ANSWERS,
    meta=q.RequestMeta(
        call="c1",
        round=1,
        key="k",
        server="files",
        tool="read",
        expires_at=1_700_000_100_000,
        on_expiry=q.OnExpiry.DEFAULTS,
    ),
)
RESOURCE = cz.ProtectedResource(
    resource="https://api.example.org", scopes_supported=("read",), required=True
)
MCP_STATES = (
    cz.McpStarting(),
    cz.McpReady(),
    cz.McpAuthRequired(reason=cz.AuthRequiredReason.EXPIRED, resource=RESOURCE),
    cz.McpFailed(error=OOPS),
    cz.McpStopped(),
)
MCP_SERVER = cz.McpServer(
    id="m1",
    uri="mcp:files",
    name="files",
    enabled=True,
    state=MCP_STATES[2],
    channel="mcp://files",
    mcp_app=cz.McpApps(
        capabilities=cz.McpUiCapabilities(server_tools=cz.ListChanged(list_changed=True))
    ),
)
CHILDREN = (
    MCP_SERVER,
    cz.AgentEntry(id="a", uri="x:a", name="a", description="An agent", meta={"k": 1}),
    cz.SkillEntry(id="s", uri="x:s", name="s", disable_model_invocation=True),
    cz.PromptEntry(id="p", uri="x:p", name="p"),
    cz.RuleEntry(id="r", uri="x:r", name="r", always_apply=False, globs=("*.py",)),
    cz.HookEntry(id="h", uri="x:h", name="h", range=RANGE),
    cz.UnknownChildCustomization({"type": "spell", "level": 9}),
)
PLUGIN = cz.Plugin(
    id="p1",
    uri="x:p1",
    name="plugin",
    enabled=True,
    icons=(Icon(src="x:icon", sizes=("16x16",), theme="dark"),),
    load=cz.Degraded(message="half of it"),
    children=CHILDREN,
)
CUSTOMIZATIONS = (
    PLUGIN,
    cz.Directory(
        id="d",
        uri="x:d",
        name="d",
        enabled=False,
        contents="rules",
        writable=True,
        load=cz.LoadFailed(message="gone"),
    ),
    MCP_SERVER,
    cz.UnknownCustomization({"type": "planet"}),
)
ACTIVE_CLIENT = session.ActiveClient(
    client_id="phone",
    tools=(TOOL,),
    display_name="Phone",
    customizations=(
        cz.ClientPlugin(id="cp", uri="x:cp", name="cp", enabled=True, nonce="n", load=cz.Loading()),
    ),
)
SUMMARY = session.SessionSummary(
    resource=SESSION,
    provider="demo",
    title="A session",
    status=session.Status.INPUT_NEEDED | session.Status.IS_READ,
    created_at=1_700_000_000_000,
    modified_at=1_700_000_000_001,
    activity="thinking",
    project=session.ProjectInfo(uri="file:///p", display_name="p"),
    model=session.ModelSelection(id="m", config={"effort": "high"}),
    agent=session.AgentSelection(uri="x:a"),
    working_directory="file:///p",
    changes=session.ChangesSummary(additions=1, deletions=0, files=1),
)
CONFIG = config.SessionConfigState(
    schema=config.SessionConfigSchema(
        type="object",
        properties={
            "mode": config.SessionConfigPropertySchema(
                type="array",
                title="Mode",
                default=["a"],
                items=config.ConfigPropertySchema(type="string", title="One", enum=("a", "b")),
                session_mutable=True,
            )
        },
        required=("mode",),
    ),
    values={"mode": ["a"]},
)
CALL: dict[str, Any] = {"tool_call_id": "t1", "tool_name": "read", "display_name": "Read"}
TOOL_CALLS = (
    t.Streaming(**CALL, partial_input="{", contributor=t.ClientContributor(client_id="phone")),
    t.PendingConfirmation(
        **CALL,
        invocation_message=Markdown(markdown="*Read*"),
        edits=t.FileEdits(items=(EDIT,)),
        options=(OPTION,),
        contributor=t.McpContributor(customization_id="m1"),
    ),
    t.Running(**CALL, invocation_message="Read", confirmed=t.ConfirmationReason.SETTING),
    t.PendingResultConfirmation(
        **CALL,
        invocation_message="Read",
        confirmed=t.ConfirmationReason.NOT_NEEDED,
        success=False,
        past_tense_message="Failed",
        error=t.ToolError(message="no", code="E1"),
    ),
    t.Completed(
        **CALL,
        invocation_message="Read",
        confirmed=t.ConfirmationReason.USER_ACTION,
        selected_option=OPTION,
        success=True,
        past_tense_message="Read it",
        content=CONTENT,
        structured_content={"lines": 3},
    ),
    t.Cancelled(
        **CALL,
        invocation_message="Read",
        reason=t.CancellationReason.DENIED,
        reason_message="no",
        user_suggestion=MESSAGE,
    ),
)
PARTS: tuple[turns.ResponsePart, ...] = (
    turns.MarkdownPart(id="p1", content="Hi"),
    turns.ReasoningPart(id="p2", content="Hm"),
    turns.ContentRefPart(uri="blob:1", size_hint=3, content_type="text/plain"),
    *(turns.ToolCallPart(tool_call=call) for call in TOOL_CALLS),
    turns.SystemNotificationPart(content=Markdown(markdown="*Anna* answered")),
    turns.UnknownPart({"kind": "song", "notes": ["c"]}),
)
USAGE = turns.UsageInfo(input_tokens=1, output_tokens=2, model="m", cache_read_tokens=0)
TURN = turns.Turn(
    id="t1",
    message=MESSAGE,
    response_parts=PARTS,
    state=turns.TurnState.ERROR,
    usage=USAGE,
    error=OOPS,
)

# States

TERMINALS = (
    root.TerminalInfo(
        resource="ahp-terminal:/1",
        title="sh",
        claim=root.TerminalClientClaim(client_id="phone"),
        exit_code=-1,
    ),
    root.TerminalInfo(
        resource="ahp-terminal:/2",
        title="sh",
        claim=root.TerminalSessionClaim(session=SESSION, turn_id="t1", tool_call_id="t1"),
    ),
)
AGENTS = (
    root.AgentInfo(
        provider="demo",
        display_name="Demo",
        description="Asks on every turn",
        models=(
            root.ModelInfo(
                id="m",
                provider="demo",
                name="M",
                max_context_window=1000,
                policy_state=root.PolicyState.ENABLED,
            ),
        ),
        protected_resources=(RESOURCE,),
        customizations=CUSTOMIZATIONS,
    ),
)
ROOT_STATE = root.RootState(
    agents=AGENTS,
    active_sessions=1,
    terminals=TERMINALS,
    config=config.RootConfigState(
        schema=config.ConfigSchema(
            type="object",
            properties={"dark": config.ConfigPropertySchema(type="boolean", title="Dark")},
        ),
        values={"dark": True},
    ),
)
SESSION_STATE = session.SessionState(
    summary=SUMMARY,
    lifecycle=session.Lifecycle.READY,
    turns=(TURN,),
    creation_error=OOPS,
    server_tools=(TOOL,),
    active_client=ACTIVE_CLIENT,
    active_turn=turns.ActiveTurn(id="t2", message=MESSAGE, response_parts=PARTS, usage=USAGE),
    steering_message=m.PendingMessage(id="q0", message=MESSAGE),
    queued_messages=(m.PendingMessage(id="q1", message=MESSAGE),),
    input_requests=(REQUEST,),
    config=CONFIG,
    customizations=CUSTOMIZATIONS,
    changesets=(session.Changeset(label="all", uri_template="x:{id}", change_kind="git"),),
    meta={"anything": None},
)
FRESH_STATE = session.SessionState(
    summary=session.SessionSummary(
        resource=SESSION, provider="demo", title="", status=1, created_at=0, modified_at=0
    ),
    lifecycle=session.Lifecycle.CREATING,
    turns=(),
)

# Actions

OF_CALL: dict[str, Any] = {"turn_id": "t1", "tool_call_id": "c1", "meta": {"k": 1}}
CLIENT_ACTIONS: tuple[a.ClientAction, ...] = (
    a.RootConfigChanged(config={"dark": False}, replace=True),
    a.TurnStarted(turn_id="t1", message=MESSAGE, queued_message_id="q1"),
    a.TurnCancelled(turn_id="t1"),
    a.Truncated(),
    a.Truncated(turn_id="t1"),
    a.ToolCallConfirmed(
        **OF_CALL,
        approved=True,
        confirmed=t.ConfirmationReason.USER_ACTION,
        edited_tool_input="{}",
        selected_option_id="yes",
    ),
    a.ToolCallConfirmed(
        **OF_CALL,
        approved=False,
        reason=t.CancellationReason.DENIED,
        reason_message=Markdown(markdown="no"),
        user_suggestion=MESSAGE,
    ),
    a.ToolCallComplete(
        **OF_CALL,
        result=t.ToolResult(
            success=False,
            past_tense_message="Failed",
            content=CONTENT,
            error=t.ToolError(message="no"),
        ),
        requires_result_confirmation=True,
    ),
    a.ToolCallResultConfirmed(**OF_CALL, approved=True),
    a.ToolCallContentChanged(**OF_CALL, content=CONTENT),
    *(
        a.InputAnswerChanged(request_id="r1", question_id=question_id, answer=answer)
        for question_id, answer in ANSWERS.items()
    ),
    a.InputAnswerChanged(request_id="r1", question_id="name"),
    a.InputCompleted(request_id="r1", response=q.ResponseKind.ACCEPT, answers=ANSWERS),
    a.InputCompleted(request_id="r1", response=q.ResponseKind.DECLINE),
    a.PendingMessageSet(kind=a.PendingKind.QUEUED, id="q1", message=MESSAGE),
    a.PendingMessageRemoved(kind=a.PendingKind.STEERING, id="q0"),
    a.QueuedMessagesReordered(order=("q2", "q1")),
    a.TitleChanged(title="Another"),
    a.ModelChanged(model=session.ModelSelection(id="m")),
    a.AgentChanged(agent=session.AgentSelection(uri="x:a")),
    a.AgentChanged(),
    a.IsReadChanged(is_read=True),
    a.IsArchivedChanged(is_archived=False),
    a.ConfigChanged(config={"mode": ["b"]}),
    a.ActiveClientChanged(active_client=ACTIVE_CLIENT),
    a.ActiveClientChanged(active_client=None),
    a.ActiveClientToolsChanged(tools=(TOOL,)),
    a.CustomizationToggled(id="p1", enabled=False),
)
HOST_ACTIONS: tuple[a.HostAction, ...] = (
    a.RootAgentsChanged(agents=AGENTS),
    a.RootActiveSessionsChanged(active_sessions=2),
    a.RootTerminalsChanged(terminals=TERMINALS),
    a.Ready(),
    a.CreationFailed(error=OOPS),
    a.Delta(turn_id="t1", part_id="p1", content="more"),
    a.Reasoning(turn_id="t1", part_id="p2", content="hm"),
    *(a.ResponsePartAdded(turn_id="t1", part=part) for part in PARTS),
    a.TurnComplete(turn_id="t1"),
    a.TurnFailed(turn_id="t1", error=OOPS),
    a.Usage(turn_id="t1", usage=USAGE),
    a.ToolCallStart(**OF_CALL, tool_name="read", display_name="Read"),
    a.ToolCallDelta(**OF_CALL, content="{", invocation_message="Read"),
    a.ToolCallReady(
        **OF_CALL,
        invocation_message="Read",
        tool_input="{}",
        confirmation_title=Markdown(markdown="Read?"),
        edits=t.FileEdits(items=(EDIT,)),
        editable=True,
        options=(OPTION,),
    ),
    a.InputRequested(request=REQUEST),
    a.InputRequested(request=q.InputRequest(id="r2")),
    a.ActivityChanged(activity="busy"),
    a.MetaChanged(meta={"k": [None]}),
    a.ChangesetsChanged(changesets=SESSION_STATE.changesets),
    a.ServerToolsChanged(tools=(TOOL,)),
    a.CustomizationsChanged(customizations=CUSTOMIZATIONS),
    *(a.CustomizationUpdated(customization=entry) for entry in CUSTOMIZATIONS),
    a.CustomizationRemoved(id="p1"),
    *(a.McpServerStateChanged(id="m1", state=state) for state in MCP_STATES),
)

# Results, by the frame that asks

ENVELOPE = envelopes.ActionEnvelope(
    channel=SESSION,
    action=CLIENT_ACTIONS[10],
    server_seq=8,
    origin=envelopes.ActionOrigin(client_id="phone", client_seq=1),
    meta=envelopes.EnvelopeMeta(at=1_700_000_000_000, by=ANNA),
)
HOST_ENVELOPE = envelopes.ActionEnvelope(channel=SESSION, action=a.Ready(), server_seq=7)
SNAPSHOTS = (
    c.Snapshot(resource=ROOT, state=msgspec.Raw(encode(ROOT_STATE)), from_seq=7),
    c.Snapshot(resource=SESSION, state=msgspec.Raw(encode(SESSION_STATE)), from_seq=7),
)
RESULTS: dict[type[frames.RequestBase], tuple[Any, ...]] = {
    frames.Initialize: (
        c.InitializeResult(
            protocol_version="0.3.0",
            server_seq=7,
            snapshots=SNAPSHOTS,
            default_directory="file:///",
            completion_trigger_characters=("@",),
            telemetry=c.TelemetryCapabilities(logs="x:logs"),
        ),
    ),
    frames.Ping: (None,),
    frames.Reconnect: (
        c.ReconnectReplay(actions=(HOST_ENVELOPE, ENVELOPE), missing=()),
        c.ReconnectSnapshot(snapshots=SNAPSHOTS),
    ),
    frames.Subscribe: (c.SubscribeResult(snapshot=SNAPSHOTS[1]), c.SubscribeResult()),
    frames.CreateSession: (None,),
    frames.DisposeSession: (None,),
    frames.ListSessions: (c.ListSessionsResult(items=(SUMMARY,)),),
    frames.FetchTurns: (c.FetchTurnsResult(turns=(TURN,), has_more=False),),
    frames.Authenticate: ({},),
    frames.ResolveSessionConfig: (
        c.ResolveSessionConfigResult(schema=CONFIG.schema, values=CONFIG.values),
    ),
    frames.SessionConfigCompletions: (
        c.SessionConfigCompletionsResult(items=(c.ConfigValueItem(value="a", label="A"),)),
    ),
    frames.Completions: (
        c.CompletionsResult(
            items=(
                c.CompletionItem(
                    insert_text="@f",
                    attachment=m.SimpleAttachment(label="f"),
                    range_start=0,
                    range_end=1,
                ),
            )
        ),
    ),
}

# Frames

CLIENT_FRAMES: tuple[Wire, ...] = (
    frames.Initialize(
        jsonrpc="2.0",
        id=1,
        params=c.InitializeParams(
            channel=ROOT,
            protocol_versions=("0.3.0",),
            client_id="phone",
            initial_subscriptions=(ROOT, SESSION),
            locale="en",
            capabilities=c.ClientCapabilities(mcp_apps={}),
        ),
    ),
    frames.Ping(jsonrpc="2.0", id=2, params=c.RootParams(channel=ROOT)),
    frames.Reconnect(
        jsonrpc="2.0",
        id=1,
        params=c.ReconnectParams(
            channel=ROOT, client_id="phone", last_seen_server_seq=7, subscriptions=(SESSION,)
        ),
    ),
    frames.Subscribe(jsonrpc="2.0", id=3, params=c.Params(channel=SESSION)),
    frames.CreateSession(
        jsonrpc="2.0",
        id=4,
        params=c.CreateSessionParams(
            channel=SESSION,
            provider="demo",
            model=SUMMARY.model,
            agent=SUMMARY.agent,
            working_directory="file:///p",
            fork=c.ForkSource(session="ahp-session:/s0", turn_id="t1"),
            config={"mode": ["a"]},
            active_client=ACTIVE_CLIENT,
        ),
    ),
    frames.DisposeSession(jsonrpc="2.0", id=5, params=c.Params(channel=SESSION)),
    frames.ListSessions(
        jsonrpc="2.0", id=6, params=c.ListSessionsParams(channel=ROOT, filter={"k": 1})
    ),
    frames.FetchTurns(
        jsonrpc="2.0", id=7, params=c.FetchTurnsParams(channel=SESSION, before="t1", limit=10)
    ),
    frames.Authenticate(
        jsonrpc="2.0",
        id=8,
        params=c.AuthenticateParams(channel=ROOT, resource="https://x", token="abc"),
    ),
    frames.ResolveSessionConfig(
        jsonrpc="2.0",
        id=9,
        params=c.ResolveSessionConfigParams(channel=ROOT, provider="demo", config={}),
    ),
    frames.SessionConfigCompletions(
        jsonrpc="2.0",
        id=10,
        params=c.SessionConfigCompletionsParams(channel=ROOT, property="mode", query="a"),
    ),
    frames.Completions(
        jsonrpc="2.0",
        id=11,
        params=c.CompletionsParams(channel=SESSION, kind="userMessage", text="@", offset=1),
    ),
    frames.Unsubscribe(jsonrpc="2.0", params=c.Params(channel=SESSION)),
    frames.PresenceUpdate(
        jsonrpc="2.0",
        params=presence.PresenceUpdateParams(
            channel="ahp-presence:/s1",
            editing=presence.EditingPlace(request_id="r1", question_id="name"),
            idle=False,
            name="Anna",
        ),
    ),
    frames.DispatchAction(
        jsonrpc="2.0",
        params=c.DispatchActionParams(channel=SESSION, client_seq=1, action=CLIENT_ACTIONS[10]),
    ),
    frames.AgentDispatchAction(
        jsonrpc="2.0",
        params=c.AgentDispatchActionParams(channel=SESSION, client_seq=1, action=HOST_ACTIONS[5]),
    ),
)
HOST_FRAMES: tuple[Wire, ...] = (
    frames.ActionNotification(params=ENVELOPE),
    frames.ActionNotification(params=HOST_ENVELOPE),
    frames.RejectionNotification(
        params=envelopes.RejectionEnvelope(
            channel=SESSION,
            action=msgspec.Raw(b'{"type":"session/unheardOf"}'),
            server_seq=8,
            origin=envelopes.ActionOrigin(client_id="phone", client_seq=2),
            rejection_reason="unknown type",
        )
    ),
    frames.SessionAdded(params=frames.SessionAddedParams(channel=ROOT, summary=SUMMARY)),
    frames.SessionRemoved(params=frames.SessionRemovedParams(channel=ROOT, session=SESSION)),
    frames.SessionSummaryChanged(
        params=frames.SessionSummaryChangedParams(
            channel=ROOT,
            session=SESSION,
            changes=frames.SummaryChanges(title="Another", status=1, activity=""),
        )
    ),
    frames.AuthRequired(
        params=frames.AuthRequiredParams(
            channel=ROOT, resource="https://x", reason=cz.AuthRequiredReason.REQUIRED
        )
    ),
    frames.PresenceChanged(
        params=presence.PresenceChangedParams(
            channel="ahp-presence:/s1",
            present=(presence.Present(client_id="phone", by=ANNA, idle=True),),
        )
    ),
    frames.Failure(id=None, error=errors.RpcError(code=-32700, message="not JSON")),
    frames.Failure(
        id=1,
        error=errors.RpcError(
            code=errors.ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
            message="none in common",
            data={"supportedVersions": ["0.3.0"]},
        ),
    ),
)

STATES: tuple[Wire, ...] = (ROOT_STATE, SESSION_STATE, FRESH_STATE)
