"""What a call's result looks like, and what becomes of its rounds and its server."""

from typing import Any

import pytest

from session_server.reducers.batches import Batch
from session_server.reducers.calls.presentation import shown_content
from session_server.reducers.calls.recovery import after_no_connection
from session_server.reducers.calls.redaction import HIDDEN, masked
from session_server.reducers.calls.rounds import finish, input_responses, next_params, visited
from session_server.reducers.effects import pending
from session_server.schemas.ahp.actions import InputAnswerChanged, InputRequested
from session_server.schemas.ahp.questions import Draft, InputRequest, OnExpiry, Submitted, TextValue
from session_server.schemas.ahp.tool_calls import (
    EmbeddedResourceContent,
    ResourceContent,
    TextContent,
)
from session_server.schemas.codec import encode
from session_server.schemas.limits import (
    BACK_OFF_FIRST_MS,
    SHOWN_DATA_CHARS,
    SHOWN_TEXT_CHARS,
    UNREACHED_LIMIT_MS,
)
from session_server.schemas.mcp import Elicitation, ElicitRequest, Root, RootsRequest, RootsResult
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import SessionRecord, ToSend, Waiting
from tests.reducers.call_records import (
    BY_HOST,
    answered,
    crash,
    failed,
    form,
    notes,
    run_again,
    sent,
)
from tests.reducers.shown_calls import asking, begun, call, done, out, text
from tests.sessions import OWNER, PHONE, accepted, fold, session

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
    assert (request.meta.expires_at, request.meta.on_expiry) == (5_100, OnExpiry.CANCEL)
    (open_ended,) = asking(out(), q=form("Q?")).public.input_requests or ()
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
    assert notes(told) == ["cloud reports that what you were asked to open is done."]
    assert visited(record, "c", "e-2") == ()
    assert visited(record, "nobody", "e-1") == ()


def test_what_was_written_survives_the_connection_that_asked() -> None:
    record = asking(out(repeatable=True), held=True, **{"1": form("Q?")})
    draft = Draft(value=TextValue(value="half a thou"))
    change = InputAnswerChanged(request_id="call:c/1/1", question_id="v", answer=draft)
    record = accepted(record, PHONE, change)
    crashed = crash(record)
    assert crashed.public.input_requests is None
    again = asking(sent(crashed), held=True, **{"1": form("Q?")})
    (request,) = again.public.input_requests or ()
    assert request.id == "call:c/2/1"
    kept = request.answers["v"]
    assert isinstance(kept, Draft)
    assert kept.value == TextValue(value="half a thou")
    assert kept.meta.by == PHONE.author
    other = asking(sent(crashed), held=True, **{"1": form("Other?")})
    (request,) = other.public.input_requests or ()
    assert request.answers is None


def test_what_was_written_survives_a_second_crash_while_people_are_asked() -> None:
    record = asking(out(), held=True, **{"1": form("Q?")})
    answer = Submitted(value=TextValue(value="almost"))
    change = InputAnswerChanged(request_id="call:c/1/1", question_id="v", answer=answer)
    lost = crash(accepted(record, OWNER, change))
    lost_again = crash(sent(run_again(lost)))
    record = asking(sent(run_again(lost_again)), held=True, **{"1": form("Q?")})
    (request,) = record.public.input_requests or ()
    assert isinstance(request.answers["v"], Submitted)


# Servers that cannot be reached


def unreached(record: SessionRecord, at: int = 100) -> tuple[Batch, SessionRecord]:
    phase = record.private.calls["c"].phase
    stamp = Stamp(at=at, by=HOST)
    batch = after_no_connection(record, "c", getattr(phase, "leg", 0), "it is off", stamp)
    return batch, fold(record, *batch, at=at)


def test_a_new_call_fails_at_once_when_its_server_cannot_be_reached() -> None:
    for record in (begun(), out()):
        _, ended = unreached(record)
        assert failed(ended).message == "cloud cannot be used: it is off"
    assert after_no_connection(session(), "c", 0, "it is off", BY_HOST) == ()


def test_answers_wait_for_a_server_that_comes_back() -> None:
    record = answered(asking(out(), q=form("Q?")), "q")
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
    assert failed(ended).message == "cloud cannot be used: it is off"


def test_a_leg_that_is_not_the_one_cannot_be_unsent() -> None:
    record = answered(asking(out(), q=form("Q?")), "q")
    batch, once = unreached(record)
    assert fold(once, *batch[:1]) is once
    assert fold(session(), *batch[:1]) == session()


# The turn that shows it


def test_the_last_call_of_a_turn_of_the_hosts_ends_it() -> None:
    alone = out()
    after = fold(alone, *finish(alone, "c", 0, {}, BY_HOST))
    assert after.public.active_turn is None
    assert tuple(pending(after)) == ()


def test_a_turn_with_another_open_call_or_question_goes_on() -> None:
    for other in (begun(out(), id="d"), fold(out(), InputRequested(request=InputRequest(id="q")))):
        after = fold(other, *finish(other, "c", 0, {}, BY_HOST))
        assert after.public.active_turn is not None


def test_questions_of_the_call_itself_do_not_keep_its_turn_open() -> None:
    waiting = asking(out(), held=True, name=form("Name?"))
    after = fold(waiting, *finish(waiting, "c", 0, {}, BY_HOST))
    assert after.public.active_turn is None
    assert after.public.input_requests is None
