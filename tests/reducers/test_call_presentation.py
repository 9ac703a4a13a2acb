"""A call as people see it: how it begins, goes on and ends."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.batches import batch_of
from session_server.reducers.calls import presentation
from session_server.reducers.calls.presentation import view_of
from session_server.reducers.calls.redaction import HIDDEN
from session_server.reducers.calls.rounds import abandon, failure, finish, progress
from session_server.reducers.calls.starting import (
    call_fingerprint,
    check_caller,
    own_params,
    same_call,
    server_changed,
    start,
)
from session_server.reducers.deadlines import expired
from session_server.schemas.ahp.actions import (
    CustomizationUpdated,
    McpServerStateChanged,
    ToolCallComplete,
    ToolCallContentChanged,
    TurnCancelled,
)
from session_server.schemas.ahp.customizations import McpReady, McpStopped
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.ahp.tool_calls import (
    Cancelled,
    Completed,
    McpContributor,
    Running,
    TextContent,
    ToolError,
)
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.http import CallState
from session_server.schemas.limits import (
    OPEN_CALLS_PER_SESSION,
    SHOWN_INPUT_CHARS,
    UNCOLLECTED_LIFETIME_MS,
)
from session_server.schemas.principals import Provenance
from session_server.schemas.record import Abandoned, CallCollected, FailureKind, SessionRecord
from tests.reducers.call_records import (
    BY_HOST,
    completion,
    crash,
    failed,
    form,
    notes,
    run_again,
    sent,
)
from tests.reducers.form_actions import recording, verdict
from tests.reducers.shown_calls import SERVER, asking, begun, call, done, out, text, tool_call
from tests.sessions import AGENT, OWNER, PHONE, SESSION, fold, in_turn, session, stamp

# Beginning


def test_a_call_opens_a_turn_of_the_hosts_and_shows_as_running() -> None:
    record = begun(title="Deploy it")
    turn = record.public.active_turn
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
    of_agent = msgspec.structs.replace(begun(), private=session().private)
    for record, code in (
        (failed, RefusalCode.WRONG_STATE),
        (off, RefusalCode.WRONG_STATE),
        (full, RefusalCode.LIMIT),
        (of_agent, RefusalCode.DUPLICATE),
    ):
        refusal = start(record, call(), None, SERVER, BY_HOST)
        assert isinstance(refusal, Refusal)
        assert refusal.code is code


def test_owners_and_agents_make_calls_in_their_sessions() -> None:
    elsewhere = msgspec.structs.replace(OWNER, sessions=(f"{SESSION}/other",))
    for principal, code in (
        (OWNER, None),
        (AGENT, None),
        (PHONE, RefusalCode.ROLE),
        (elsewhere, RefusalCode.OTHER_SESSION),
    ):
        refusal = check_caller(principal, SESSION)
        assert (refusal and refusal.code) == code


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
    first = call_fingerprint("ana", "cloud", "tools/call", {"a": 1, "b": 2}, None)
    again = {"b": 2, "a": 1, "_meta": {"mine": 2}}
    assert call_fingerprint("ana", "cloud", "tools/call", again, None) == first
    others = {
        call_fingerprint("bo", "cloud", "tools/call", {"a": 1, "b": 2}, None),
        call_fingerprint("ana", "other", "tools/call", {"a": 1, "b": 2}, None),
        call_fingerprint("ana", "cloud", "prompts/get", {"a": 1, "b": 2}, None),
        call_fingerprint("ana", "cloud", "tools/call", {"a": 1, "b": True}, None),
        call_fingerprint("ana", "cloud", "tools/call", {"a": 1, "b": 2}, "second"),
    }
    assert len(others | {first}) == 6


def test_the_same_request_is_the_same_call_until_its_result_was_fetched() -> None:
    new = call(id="d", fingerprint="f")
    assert same_call(begun(), call(id="d"), 100) is None
    record = sent(begun(fingerprint="f"))
    assert same_call(record, new, 100) is record.private.calls["c"]
    assert same_call(record, new, 100, {"c"}) is None
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
    assert presentation.progress(record, the_call, "1 of 2") == ()
    assert presentation.finished(record, the_call, {}) == ()
    assert isinstance(tool_call(record), Cancelled)


def test_what_the_server_says_of_its_tool_is_kept() -> None:
    assert not out().private.calls["c"].repeatable
    assert sent(begun(), repeatable=True).private.calls["c"].repeatable
    assert not sent(begun(repeatable=True), repeatable=False).private.calls["c"].repeatable


def test_nobody_else_reports_on_a_call() -> None:
    record = out()
    shown = TextContent(text="done")
    turn: dict[str, Any] = {"turn_id": "host:0:c", "tool_call_id": "c"}
    result = presentation.ToolResult(success=True, past_tense_message="Done")
    for action in (
        ToolCallContentChanged(**turn, content=(shown,)),
        ToolCallComplete(**turn, result=result),
    ):
        assert verdict(AGENT, record, action) is RefusalCode.NOT_YOURS


# Ending


def shown_error(record: SessionRecord) -> ToolError:
    shown = tool_call(record)
    assert isinstance(shown, Completed)
    assert shown.error is not None
    return shown.error


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
    assert shown.error.message == ("no luck" if content else "It failed without a message.")


def test_a_failure_ends_the_tool_call_with_its_reason() -> None:
    record = out()
    batch = failure(record, "c", 0, FailureKind.UPSTREAM, "no s3cret", BY_HOST, {"code": -32000})
    ended = fold(record, *batch)
    shown = shown_error(ended)
    assert (shown.message, shown.code) == (f"no {HIDDEN}", "upstream")
    assert notes(ended) == [f"cloud/deploy failed: no {HIDDEN}."]
    assert failed(ended).data == {"code": -32000}
    assert failed(ended).message == "no s3cret"


def test_a_call_that_is_given_up_closes_its_questions() -> None:
    record = asking(out(), q=form("Q?"))
    ended = fold(record, *abandon(record, "c", "enough", BY_HOST))
    assert ended.public.input_requests is None
    assert ended.private.calls["c"].phase == Abandoned(reason="enough", at=100)
    assert shown_error(ended).code == "abandoned"
    assert abandon(ended, "c", "again", BY_HOST) == ()
    assert abandon(ended, "nobody", "again", BY_HOST) == ()


def test_a_call_that_is_not_run_again_ends_its_tool_call() -> None:
    doubted = crash(out())
    assert isinstance(tool_call(run_again(doubted)), Running)
    assert shown_error(run_again(doubted, "decline")).code == "notRepeated"
    (request,) = doubted.public.input_requests or ()
    by_policy = batch_of(doubted, completion(request.id), stamp(OWNER, via=Provenance.POLICY))
    assert shown_error(fold(doubted, *by_policy)).code == "notRepeated"


def test_nobody_saying_in_time_that_a_call_is_run_again_ends_it() -> None:
    doubted = crash(out(answer_within=1000))
    (request,) = doubted.public.input_requests or ()
    assert request.meta.expires_at == BY_HOST.at + 1000
    assert expired(doubted, request.id, BY_HOST.at + 999) == ()
    ended = fold(doubted, *expired(doubted, request.id, BY_HOST.at + 1000))
    assert failed(ended).kind is FailureKind.NOT_REPEATED
    assert isinstance(tool_call(ended), Completed)
    assert ended.private.outcomes[-1].via is Provenance.TIMEOUT


# Views


def test_a_view_says_where_the_call_is() -> None:
    """And what it came to, once it has ended."""
    running = out()
    waiting = asking(running, a=form("Where?"))
    failed = fold(running, *failure(running, "c", 0, FailureKind.UPSTREAM, "away", BY_HOST))
    finished = fold(running, *finish(running, "c", 0, {"content": []}, BY_HOST))
    abandoned = fold(running, *abandon(running, "c", "Enough.", BY_HOST))
    states = {
        CallState.SENDING: begun(),
        CallState.RUNNING: running,
        CallState.WAITING: waiting,
        CallState.UNCERTAIN: crash(running),
        CallState.FINISHED: finished,
        CallState.FAILED: failed,
        CallState.ABANDONED: abandoned,
    }
    views = {state: view_of(record, record.private.calls["c"]) for state, record in states.items()}
    assert {state: view.state for state, view in views.items()} == {s: s for s in states}
    (request,) = waiting.public.input_requests or ()
    assert views[CallState.WAITING].requests == (request.id,)
    assert views[CallState.FINISHED].result == {"content": []}
    error = views[CallState.FAILED].error
    assert (error.message, views[CallState.FAILED].ended_at) == ("away", BY_HOST.at)
    assert views[CallState.ABANDONED].reason == "Enough."


# States of servers


def test_a_session_shows_the_new_state_of_a_server_that_it_lists() -> None:
    record = begun()
    assert server_changed(record, "cloud", McpReady()) == ()
    assert server_changed(record, "other", McpStopped()) == ()
    stopped = McpServerStateChanged(id="mcp:cloud", state=McpStopped())
    assert server_changed(record, "cloud", McpStopped()) == (stopped,)
    assert server_changed(recording(record), "cloud", McpStopped()) == ()
