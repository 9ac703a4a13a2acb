"""How calls show in their turn, what of them is hidden, and how they begin."""

from typing import Any

import msgspec
import pytest

from session_server.reducers import invocations
from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.deadlines import expired
from session_server.reducers.invocations import shown_content
from session_server.reducers.privacy import HIDDEN, masked
from session_server.reducers.rounds import (
    abandon,
    after_crash,
    after_no_connection,
    failure,
    finish,
    input_responses,
    next_params,
    open_round,
    progress,
    visited,
)
from session_server.reducers.rules import judge
from session_server.reducers.starts import (
    check_caller,
    fingerprint_of_request,
    own_params,
    same_call,
    start,
)
from session_server.schemas.actions import (
    CustomizationUpdated,
    InputAnswerChanged,
    InputCompleted,
    ToolCallComplete,
    ToolCallContentChanged,
    TurnCancelled,
)
from session_server.schemas.calls import Abandoned, Call, Failed, FailureKind, ToSend, Waiting
from session_server.schemas.codec import encode
from session_server.schemas.customizations import McpReady, McpServer
from session_server.schemas.limits import (
    BACK_OFF_FIRST_MS,
    OPEN_CALLS_PER_SESSION,
    SHOWN_DATA_CHARS,
    SHOWN_INPUT_CHARS,
    SHOWN_TEXT_CHARS,
    UNCOLLECTED_LIFETIME_MS,
    UNREACHED_LIMIT_MS,
)
from session_server.schemas.mcp import (
    Elicitation,
    ElicitRequest,
    InputRequired,
    Root,
    RootsRequest,
    RootsResult,
)
from session_server.schemas.principals import HOST, Provenance, Stamp
from session_server.schemas.questions import (
    Draft,
    OnExpiry,
    ResponseKind,
    Submitted,
    TextValue,
)
from session_server.schemas.record import CallCollected, CallSent, SessionRecord
from session_server.schemas.refusals import Refusal, RefusalCode
from session_server.schemas.session import Lifecycle
from session_server.schemas.tool_calls import (
    Cancelled,
    Completed,
    EmbeddedResourceContent,
    McpContributor,
    ResourceContent,
    Running,
    TextContent,
    ToolCall,
)
from session_server.schemas.turns import SystemNotificationPart, ToolCallPart
from tests.sessions import AGENT, OWNER, PHONE, SESSION, accepted, fold, in_turn, session

BY_HOST = Stamp(at=100, by=HOST)
SERVER = McpServer(id="mcp:cloud", uri="mcp:cloud", name="cloud", enabled=True, state=McpReady())
TEXT = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]}


def call(**fields: Any) -> Call:
    return Call(
        **{
            "id": "c",
            "server": "cloud",
            "method": "tools/call",
            "params": {"name": "deploy", "arguments": {"token": "s3cret", "to": "oslo"}},
            "turn_id": "",
            "started_at": 0,
            "private_arguments": ("token",),
            **fields,
        }
    )


def begun(
    record: SessionRecord | None = None, title: str | None = None, **of: Any
) -> SessionRecord:
    record = session() if record is None else record
    batch = start(record, call(**of), title, SERVER, BY_HOST)
    assert not isinstance(batch, Refusal)
    return fold(record, *batch)


def sent(record: SessionRecord, **how: Any) -> SessionRecord:
    phase = record.private.calls["c"].phase
    assert isinstance(phase, ToSend)
    return fold(record, CallSent(call_id="c", leg=phase.leg, **how))


def out(**of: Any) -> SessionRecord:
    return sent(begun(**of))


def tool_call(record: SessionRecord, call_id: str = "c") -> ToolCall:
    turns = (*record.public.turns, record.public.active_turn)
    parts = [part for turn in turns if turn is not None for part in turn.response_parts]
    (found,) = [
        part.tool_call
        for part in parts
        if isinstance(part, ToolCallPart) and part.tool_call.tool_call_id == call_id
    ]
    return found


def done(record: SessionRecord, **result: Any) -> Completed:
    shown = tool_call(fold(record, *finish(record, "c", 0, result, BY_HOST)))
    assert isinstance(shown, Completed)
    return shown


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def form(message: str) -> ElicitRequest:
    return ElicitRequest(params=Elicitation(message=message, requested_schema=TEXT))


def asking(record: SessionRecord, held: bool = False, **requests: Any) -> SessionRecord:
    required = InputRequired(
        result_type="input_required", input_requests=requests, request_state="s"
    )
    phase = record.private.calls["c"].phase
    assert not isinstance(phase, Abandoned | Failed)
    batch = open_round(record, "c", getattr(phase, "leg", 0), required, BY_HOST, held=held)
    return fold(record, *batch)


def notes(record: SessionRecord) -> list[str]:
    turn = record.public.active_turn
    parts = () if turn is None else turn.response_parts
    return [str(part.content) for part in parts if isinstance(part, SystemNotificationPart)]


# Beginning


def test_a_call_opens_a_turn_of_the_hosts_and_shows_as_running() -> None:
    record = begun(title="Deploy it")
    turn = record.public.active_turn
    assert turn is not None
    assert turn.id == "host:0:c" == record.private.calls["c"].turn_id
    assert turn.message.text == "cloud/deploy"
    assert turn.message.origin.kind == "systemNotification"
    shown = tool_call(record)
    assert isinstance(shown, Running)
    assert (shown.tool_name, shown.display_name) == ("deploy", "Deploy it")
    assert shown.contributor == McpContributor(customization_id="mcp:cloud")
    assert shown.tool_input == f'{{"token":"{HIDDEN}","to":"oslo"}}'
    assert record.private.calls["c"].started_at == 100
    assert record.public.customizations == (SERVER,)


def test_a_call_joins_the_active_turn_and_a_listed_server_is_not_listed_again() -> None:
    other = msgspec.structs.replace(SERVER, id="mcp:other", name="other")
    record = begun(in_turn(customizations=(other, SERVER)))
    assert record.private.calls["c"].turn_id == "t"
    batch = start(record, call(id="d"), None, SERVER, BY_HOST)
    assert isinstance(batch, tuple)
    assert not any(isinstance(action, CustomizationUpdated) for action in batch)
    assert start(record, call(), None, SERVER, BY_HOST) == ()
    assert tool_call(record).display_name == "deploy"


def test_long_arguments_are_cut_where_they_are_shown() -> None:
    params = {"name": "deploy", "arguments": {"to": "x" * SHOWN_INPUT_CHARS}}
    shown = tool_call(begun(params=params))
    assert isinstance(shown, Running)
    assert shown.tool_input is not None
    assert len(shown.tool_input) == SHOWN_INPUT_CHARS
    assert shown.tool_input.endswith("…")


def test_calls_are_refused_where_they_cannot_be() -> None:
    failed = session(lifecycle=Lifecycle.CREATION_FAILED)
    off = session(customizations=(msgspec.structs.replace(SERVER, enabled=False),))
    full = session()
    for number in range(OPEN_CALLS_PER_SESSION):
        full = begun(full, id=f"c{number}")
    refusals = [start(r, call(), None, SERVER, BY_HOST) for r in (failed, off, full)]
    assert all(isinstance(refusal, Refusal) for refusal in refusals)
    codes = [refusal.code for refusal in refusals if isinstance(refusal, Refusal)]
    assert codes == [RefusalCode.WRONG_STATE, RefusalCode.WRONG_STATE, RefusalCode.LIMIT]


def test_a_tool_call_of_that_id_in_the_turn_is_in_the_way() -> None:
    record = begun()
    private = msgspec.structs.replace(record.private, calls={})
    taken = msgspec.structs.replace(record, private=private)
    refusal = start(taken, call(), None, SERVER, BY_HOST)
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.DUPLICATE


def test_owners_and_agents_make_calls_in_their_sessions() -> None:
    assert check_caller(OWNER, session()) is None
    assert check_caller(AGENT, session()) is None
    refusal = check_caller(PHONE, session())
    assert refusal is not None
    assert refusal.code is RefusalCode.ROLE
    elsewhere = msgspec.structs.replace(OWNER, sessions=(f"{SESSION}/other",))
    other = check_caller(elsewhere, session())
    assert other is not None
    assert other.code is RefusalCode.OTHER_SESSION


# The same request


def test_what_belongs_to_one_message_is_not_part_of_the_request() -> None:
    params = {
        "name": "deploy",
        "requestState": "old",
        "inputResponses": {},
        "_meta": {"progressToken": 7, "io.modelcontextprotocol/clientInfo": {}, "mine": 1},
    }
    assert own_params(params) == {"name": "deploy", "_meta": {"mine": 1}}
    assert own_params({"name": "x", "_meta": {"progressToken": 1}}) == {"name": "x"}
    assert own_params({"name": "x", "_meta": "odd"}) == {"name": "x"}


def test_the_same_request_has_the_same_fingerprint() -> None:
    first = fingerprint_of_request("ana", "cloud", "tools/call", {"a": 1, "b": 2}, None)
    again = {"b": 2, "a": 1, "_meta": {"progressToken": 3, "mine": 2}, "requestState": "x"}
    assert fingerprint_of_request("ana", "cloud", "tools/call", again, None) == first
    others = {
        fingerprint_of_request("bo", "cloud", "tools/call", {"a": 1, "b": 2}, None),
        fingerprint_of_request("ana", "other", "tools/call", {"a": 1, "b": 2}, None),
        fingerprint_of_request("ana", "cloud", "prompts/get", {"a": 1, "b": 2}, None),
        fingerprint_of_request("ana", "cloud", "tools/call", {"a": 1, "b": True}, None),
        fingerprint_of_request("ana", "cloud", "tools/call", {"a": 1, "b": 2}, "second"),
    }
    assert len(others | {first}) == 6


def test_the_same_request_is_the_same_call_until_its_result_was_fetched() -> None:
    new = call(id="d", fingerprint="f")
    assert same_call(begun(), call(id="d"), 100) is None
    record = sent(begun(fingerprint="f"))
    assert same_call(record, new, 100) is record.private.calls["c"]
    ended = fold(record, *finish(record, "c", 0, {}, BY_HOST))
    assert same_call(ended, new, 100 + UNCOLLECTED_LIFETIME_MS - 1) is ended.private.calls["c"]
    assert same_call(ended, new, 100 + UNCOLLECTED_LIFETIME_MS) is None
    assert same_call(ended, call(id="d", fingerprint="g"), 100) is None
    fetched = fold(ended, CallCollected(call_id="c"))
    assert same_call(fetched, new, 100) is None
    assert fold(fetched, CallCollected(call_id="c")) is fetched
    assert fold(record, CallCollected(call_id="c")) is record
    assert fold(record, CallCollected(call_id="nobody")) is record
    given_up = fold(record, *abandon(record, "c", "enough", BY_HOST))
    assert same_call(given_up, new, 100) is None


# On the way


def test_progress_shows_and_is_replaced() -> None:
    record = out()
    first = fold(record, *progress(record, "c", 0, "1 of 2 with s3cret"))
    shown = tool_call(fold(first, *progress(first, "c", 0, "2 of 2")))
    assert isinstance(shown, Running)
    assert shown.content == (TextContent(text="2 of 2"),)
    hidden = tool_call(first)
    assert isinstance(hidden, Running)
    assert hidden.content == (TextContent(text=f"1 of 2 with {HIDDEN}"),)
    assert progress(record, "c", 1, "late") == ()


def test_nothing_shows_of_a_call_whose_tool_call_is_gone() -> None:
    record = fold(out(), TurnCancelled(turn_id="host:0:c"))
    the_call = record.private.calls["c"]
    assert invocations.progress(record, the_call, "1 of 2") == ()
    assert invocations.finished(record, the_call, {}) == ()
    assert isinstance(tool_call(record), Cancelled)


def test_what_the_server_says_of_its_tool_is_kept() -> None:
    assert not out().private.calls["c"].repeatable
    assert sent(begun(), repeatable=True).private.calls["c"].repeatable
    assert not sent(begun(repeatable=True), repeatable=False).private.calls["c"].repeatable


def test_nobody_else_reports_on_a_call() -> None:
    record = out()
    shown = TextContent(text="done")
    turn: dict[str, Any] = {"turn_id": "host:0:c", "tool_call_id": "c"}
    result = invocations.ToolResult(success=True, past_tense_message="Done")
    for action in (
        ToolCallContentChanged(**turn, content=(shown,)),
        ToolCallComplete(**turn, result=result),
    ):
        refusal = judge(AGENT, record, action)
        assert refusal is not None
        assert refusal.code is RefusalCode.NOT_YOURS


# Ending


def test_a_result_completes_the_tool_call() -> None:
    shown = done(
        out(), content=[text("is up"), text("with s3cret")], structuredContent={"at": "s3cret"}
    )
    assert shown.success
    assert shown.past_tense_message == "Called cloud/deploy"
    assert shown.content == (TextContent(text="is up"), TextContent(text=f"with {HIDDEN}"))
    assert shown.structured_content == {"at": HIDDEN}


@pytest.mark.parametrize("content", [[text("no luck")], []])
def test_an_error_of_the_tool_is_shown_as_one(content: list[Any]) -> None:
    shown = done(out(), content=content, isError=True)
    assert not shown.success
    assert shown.error is not None
    assert shown.error.message == ("no luck" if content else "It gave no reason.")


def test_a_failure_ends_the_tool_call_with_its_reason() -> None:
    record = out()
    batch = failure(record, "c", 0, FailureKind.UPSTREAM, "no s3cret", BY_HOST, {"code": -32000})
    ended = fold(record, *batch)
    shown = tool_call(ended)
    assert isinstance(shown, Completed)
    assert shown.error is not None
    assert (shown.error.message, shown.error.code) == (f"no {HIDDEN}", "upstream")
    assert notes(ended) == [f"cloud/deploy failed: no {HIDDEN}."]
    phase = ended.private.calls["c"].phase
    assert isinstance(phase, Failed)
    assert phase.error.data == {"code": -32000}
    assert phase.error.message == "no s3cret"


def test_a_call_that_is_given_up_closes_its_questions() -> None:
    record = asking(out(), q=form("Q?"))
    ended = fold(record, *abandon(record, "c", "enough", BY_HOST))
    assert ended.public.input_requests is None
    assert ended.private.calls["c"].phase == Abandoned(reason="enough", at=100)
    shown = tool_call(ended)
    assert isinstance(shown, Completed)
    assert shown.error is not None
    assert shown.error.code == "abandoned"
    assert abandon(ended, "c", "again", BY_HOST) == ()
    assert abandon(ended, "nobody", "again", BY_HOST) == ()


def test_a_call_that_is_not_run_again_ends_its_tool_call() -> None:
    record = out()
    doubted = fold(record, *after_crash(record, "c", 0, BY_HOST))
    (request,) = doubted.public.input_requests or ()
    yes = InputCompleted(request_id=request.id, response=ResponseKind.ACCEPT)
    assert isinstance(tool_call(accepted(doubted, OWNER, yes)), Running)
    no = InputCompleted(request_id=request.id, response=ResponseKind.DECLINE)
    shown = tool_call(accepted(doubted, OWNER, no))
    assert isinstance(shown, Completed)
    assert shown.error is not None
    assert shown.error.code == "notRepeated"
    by_policy = Stamp(at=100, by=OWNER.author, via=Provenance.POLICY)
    policy = fold(doubted, *batch_of(doubted, yes, by_policy))
    assert isinstance(tool_call(policy), Completed)
    assert isinstance(policy.private.calls["c"].phase, Failed)


def test_nobody_saying_in_time_that_a_call_is_run_again_ends_it() -> None:
    record = out(answer_within=1000)
    doubted = fold(record, *after_crash(record, "c", 0, BY_HOST))
    (request,) = doubted.public.input_requests or ()
    assert request.meta is not None
    assert request.meta.expires_at == BY_HOST.at + 1000
    assert expired(doubted, request.id, BY_HOST.at + 999) == ()
    ended = fold(doubted, *expired(doubted, request.id, BY_HOST.at + 1000))
    assert isinstance(ended.private.calls["c"].phase, Failed)
    assert isinstance(tool_call(ended), Completed)
    assert ended.private.outcomes[-1].via is Provenance.TIMEOUT


# What a result looks like


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        (text("words"), TextContent(text="words")),
        (
            {"type": "image", "data": "aaaa", "mimeType": "image/png"},
            EmbeddedResourceContent(data="aaaa", content_type="image/png"),
        ),
        (
            {"type": "audio", "data": "a" * (SHOWN_DATA_CHARS + 1), "mimeType": "audio/ogg"},
            TextContent(text="(audio/ogg, too big to be shown here)"),
        ),
        (
            {"type": "resource_link", "uri": "file:///x", "mimeType": "text/plain", "name": "x"},
            ResourceContent(uri="file:///x", content_type="text/plain"),
        ),
        ({"type": "resource_link", "uri": "file:///x"}, ResourceContent(uri="file:///x")),
        (
            {"type": "resource", "resource": {"uri": "file:///x", "text": "in it"}},
            TextContent(text="in it"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///x", "blob": "aaaa"}},
            EmbeddedResourceContent(data="aaaa", content_type="application/octet-stream"),
        ),
        ({"type": "hologram"}, TextContent(text="(content of type 'hologram')")),
    ],
)
def test_each_kind_of_content_shows(block: dict[str, Any], shown: Any) -> None:
    assert shown_content({"content": [block]}) == (shown,)


def test_prompts_and_resources_show_too() -> None:
    messages = [{"role": "user", "content": text("Greet")}, {"content": [text("Ana")]}, "odd"]
    assert shown_content({"messages": messages}) == (
        TextContent(text="Greet"),
        TextContent(text="Ana"),
    )
    contents = [{"uri": "zoo://sign", "text": "Do not feed"}]
    assert shown_content({"contents": contents}) == (TextContent(text="Do not feed"),)
    assert shown_content({"content": "odd"}) == ()


def test_long_results_are_cut_where_they_are_shown() -> None:
    long = text("x" * (SHOWN_TEXT_CHARS + 10))
    (cut,) = shown_content({"content": [long, long]})
    assert isinstance(cut, TextContent)
    assert len(cut.text) == SHOWN_TEXT_CHARS
    big = {"x": "y" * SHOWN_TEXT_CHARS}
    assert done(out(), structuredContent=big).structured_content is None
    assert done(out(), structuredContent=[1]).structured_content is None


def test_private_arguments_are_hidden_wherever_they_are_repeated() -> None:
    secrets = {"token": "s3cret", "deep": {"keys": ["alpha-1", "ab", 7]}, "to": "oslo"}
    params = {"name": "deploy", "arguments": secrets}
    of = call(params=params, private_arguments=("token", "deep", "missing"))
    assert masked(of, {"s3cret": ["alpha-1 ab", 7, None]}) == {HIDDEN: [f"{HIDDEN} ab", 7, None]}
    assert masked(call(private_arguments=()), "s3cret") == "s3cret"
    record = asking(out(), q=form("Use s3cret?"))
    assert b"s3cret" not in encode(record.public)


# Rounds


def test_questions_of_a_call_have_the_deadline_of_the_settings() -> None:
    record = asking(out(answer_within=5_000), q=form("Q?"))
    (request,) = record.public.input_requests or ()
    assert request.meta is not None
    assert (request.meta.expires_at, request.meta.on_expiry) == (5_100, OnExpiry.CANCEL)
    (open_ended,) = asking(out(), q=form("Q?")).public.input_requests or ()
    assert open_ended.meta is not None
    assert open_ended.meta.expires_at is None


def test_roots_are_answered_from_the_settings() -> None:
    roots = (Root(uri="file:///work", name="work"),)
    record = asking(out(roots=roots), where=RootsRequest(), q=form("Q?"))
    assert [request.message for request in record.public.input_requests or ()] == ["Q?"]
    assert isinstance(record.private.calls["c"].phase, Waiting)
    alone = asking(out(roots=roots), where=RootsRequest())
    assert alone.private.calls["c"].phase == ToSend(leg=1)
    assert input_responses(alone.private.calls["c"]) == {"where": RootsResult(roots=roots)}
    assert next_params(alone.private.calls["c"])["inputResponses"] == {
        "where": {"roots": ({"uri": "file:///work", "name": "work"},)}
    }


def test_a_2025_era_server_can_say_that_a_visit_is_over() -> None:
    visit = Elicitation(
        mode="url", message="Sign in", url="https://x.example", elicitation_id="e-1"
    )
    record = asking(out(), q=ElicitRequest(params=visit))
    assert record.private.calls["c"].asked[0].elicitation_id == "e-1"
    told = fold(record, *visited(record, "c", "e-1"))
    assert notes(told) == ["cloud says that what it asked to be opened is done."]
    assert visited(record, "c", "e-2") == ()
    assert visited(record, "nobody", "e-1") == ()


def test_what_was_written_survives_the_connection_that_asked() -> None:
    record = asking(out(repeatable=True), held=True, **{"1": form("Q?")})
    draft = Draft(value=TextValue(value="half a thou"))
    change = InputAnswerChanged(request_id="call:c/1/1", question_id="v", answer=draft)
    record = accepted(record, PHONE, change)
    crashed = fold(record, *after_crash(record, "c", 0, BY_HOST))
    assert crashed.public.input_requests is None
    again = asking(sent(crashed), held=True, **{"1": form("Q?")})
    (request,) = again.public.input_requests or ()
    assert request.id == "call:c/2/1"
    assert request.answers is not None
    kept = request.answers["v"]
    assert isinstance(kept, Draft)
    assert kept.value == TextValue(value="half a thou")
    assert kept.meta is not None
    assert kept.meta.by == PHONE.author
    other = asking(sent(crashed), held=True, **{"1": form("Other?")})
    (request,) = other.public.input_requests or ()
    assert request.answers is None


def test_what_was_written_survives_a_second_crash_while_people_are_asked() -> None:
    record = asking(out(), held=True, **{"1": form("Q?")})
    answer = Submitted(value=TextValue(value="almost"))
    change = InputAnswerChanged(request_id="call:c/1/1", question_id="v", answer=answer)
    record = accepted(record, OWNER, change)
    doubted = fold(record, *after_crash(record, "c", 0, BY_HOST))
    (request,) = doubted.public.input_requests or ()
    yes = InputCompleted(request_id=request.id, response=ResponseKind.ACCEPT)
    lost_again = sent(accepted(doubted, OWNER, yes))
    doubted = fold(lost_again, *after_crash(lost_again, "c", 1, BY_HOST))
    (request,) = doubted.public.input_requests or ()
    yes = InputCompleted(request_id=request.id, response=ResponseKind.ACCEPT)
    record = asking(sent(accepted(doubted, OWNER, yes)), held=True, **{"1": form("Q?")})
    (request,) = record.public.input_requests or ()
    assert request.answers is not None
    assert isinstance(request.answers["v"], Submitted)


# Servers that cannot be reached


def unreached(record: SessionRecord, at: int = 100) -> tuple[Batch, SessionRecord]:
    phase = record.private.calls["c"].phase
    stamp = Stamp(at=at, by=HOST)
    batch = after_no_connection(record, "c", getattr(phase, "leg", 0), "it is off", stamp)
    return batch, fold(record, *batch, at=at)


def answered(record: SessionRecord) -> SessionRecord:
    answers = {"v": Submitted(value=TextValue(value="x"))}
    completed = InputCompleted(
        request_id="call:c/1/q", response=ResponseKind.ACCEPT, answers=dict(answers)
    )
    return accepted(record, OWNER, completed)


def test_a_new_call_fails_at_once_when_its_server_cannot_be_reached() -> None:
    for record in (begun(), out()):
        _, ended = unreached(record)
        phase = ended.private.calls["c"].phase
        assert isinstance(phase, Failed)
        assert phase.error.message == "cloud cannot be used: it is off"
    assert after_no_connection(session(), "c", 0, "it is off", BY_HOST) == ()


def test_answers_wait_for_a_server_that_comes_back() -> None:
    record = answered(asking(out(), q=form("Q?")))
    _, once = unreached(record)
    assert once.private.calls["c"].phase == ToSend(leg=2, not_before=100 + BACK_OFF_FIRST_MS)
    assert "tried again" in notes(once)[-1]
    _, twice = unreached(sent(once))
    assert twice.private.calls["c"].phase == ToSend(leg=3, not_before=100 + 2 * BACK_OFF_FIRST_MS)
    assert notes(twice) == notes(once)
    assert next_params(twice.private.calls["c"])["requestState"] == "s"
    again = asking(sent(twice), q=form("Q again?"))
    assert again.private.calls["c"].unreached == 0
    assert again.private.calls["c"].unreached_since is None
    _, ended = unreached(twice, at=100 + UNREACHED_LIMIT_MS)
    assert isinstance(ended.private.calls["c"].phase, Failed)


def test_a_leg_that_is_not_the_one_cannot_be_unsent() -> None:
    record = answered(asking(out(), q=form("Q?")))
    batch, once = unreached(record)
    assert fold(once, *batch[:1]) is once
    assert fold(session(), *batch[:1]) == session()
