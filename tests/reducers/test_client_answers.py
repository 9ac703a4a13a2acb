"""What the MCP client that made a call is asked, and what its answers mean for the call."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.batches import batch_of
from session_server.reducers.calls.client_answers import (
    AGAIN,
    client_answered,
    client_expired,
    client_round,
)
from session_server.reducers.calls.export_redaction import redacted
from session_server.reducers.calls.rounds import finish, input_responses, open_round
from session_server.reducers.effects import ExpireCall, effects_after_restart, effects_of, expiries
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.limits import CLIENT_ANSWER_MS
from session_server.schemas.mcp import (
    Elicitation,
    ElicitRequest,
    InputRequired,
    RootsRequest,
    SamplingRequest,
)
from session_server.schemas.principals import Author, Provenance, Stamp
from session_server.schemas.record import (
    Abandoned,
    Answerers,
    CallAnswered,
    CallClient,
    ClientAnswers,
    ClientRound,
    FailureKind,
    Finished,
    Sent,
    SessionRecord,
    ToSend,
    Uncertain,
    Waiting,
)
from tests.reducers.call_records import BY_HOST, crash, failed, form, notes, sent, the_call
from tests.reducers.shown_calls import asking, call, out, tool_call
from tests.sessions import fold

ADA = Stamp(at=200, by=Author(id="ada", name="Ada in pad"))
EVERYTHING = {"elicitation": {}, "sampling": {}, "roots": {}}
OSLO = {"action": "accept", "content": {"v": "Oslo"}}
NO = {"action": "decline"}
NESTED = {"type": "object", "properties": {"v": {"type": "object"}}}


def made(answers: Answerers, capabilities: Any = None, **of: Any) -> SessionRecord:
    """A call of this client, whose first leg is out."""
    client = CallClient(name="pad", answers=answers, capabilities=capabilities)
    return out(client=client, **of)


def shown(record: SessionRecord) -> list[str]:
    return [request.message or "" for request in record.public.input_requests or ()]


def round_of(record: SessionRecord) -> ClientRound:
    found = client_round(record, "c")
    assert found is not None
    return found


def answered(
    record: SessionRecord,
    given: dict[str, Any] | None = None,
    errors: dict[str, Any] | None = None,
    **more: Any,
) -> SessionRecord:
    asked = more.pop("to", None) or round_of(record)
    answers = ClientAnswers(round=asked, given=given or {}, errors=errors or {}, **more)
    return fold(record, *client_answered(record, "c", answers, ADA))


# Who is asked


def test_a_client_that_answers_for_itself_is_asked_and_the_session_shows_only_that() -> None:
    record = asking(made("client", EVERYTHING), q=form("Use s3cret?"))
    assert shown(record) == []
    asked = round_of(record)
    assert asked.questions["q"]["params"]["message"] == "Use s3cret?"
    assert (asked.round, asked.run, asked.name) == (1, 0, (1, None))
    text = msgspec.json.encode(tool_call(record)).decode()
    assert "Waiting for an answer in pad" in text
    assert "s3cret" not in msgspec.json.encode(record.public).decode()
    record = answered(record, {"q": OSLO, "other": NO})
    assert the_call(record).phase == ToSend(leg=1)
    assert input_responses(the_call(record)) == {"q": OSLO}
    assert "Answered in pad" in msgspec.json.encode(tool_call(record)).decode()
    assert client_round(record, "c") is None


def test_the_client_gets_a_question_as_the_server_made_it() -> None:
    record = made("client", EVERYTHING)
    odd = {"method": "elicitation/create", "params": {"message": "Q?", "odd": 1}}

    required = InputRequired(result_type="input_required", input_requests={"q": form("Q?")})
    record = fold(record, *open_round(record, "c", 0, required, BY_HOST, raw={"q": odd}))
    assert round_of(record).questions == {"q": odd}


def test_sampling_and_roots_always_go_to_the_client() -> None:
    record = asking(
        made("session", EVERYTHING), m=SamplingRequest(), r=RootsRequest(), q=form("Q?")
    )
    assert shown(record) == ["Q?"]
    assert set(round_of(record).questions) == {"m", "r"}
    record = answered(record, {"m": {"model": "x"}, "r": {"roots": []}})
    assert isinstance(the_call(record).phase, Waiting)


@pytest.mark.parametrize(("answers", "can"), [("client", {"sampling": {}}), ("both", None)])
def test_what_was_not_declared_ends_the_call(answers: Answerers, can: Any) -> None:
    kind = form("Q?") if answers == "client" else SamplingRequest()
    record = asking(made(answers, can), q=kind)
    assert failed(record).kind is FailureKind.UNSUPPORTED_REQUEST


def test_where_both_are_asked_people_see_the_form_too() -> None:
    record = asking(made("both"), q=form("Q?"))
    assert shown(record) == ["Q?"]
    assert set(round_of(record).questions) == {"q"}


def test_a_form_that_cannot_be_shown_is_for_the_client_alone() -> None:
    nested = ElicitRequest(params=Elicitation(message="Deep?", requested_schema=NESTED))
    record = asking(made("both"), q=nested)
    assert shown(record) == []
    assert set(round_of(record).questions) == {"q"}
    alone = asking(made("session"), q=nested)
    assert failed(alone).kind is FailureKind.UNSHOWABLE_FORM


def test_nobody_is_asked_for_a_call_that_no_client_made_or_that_is_not_there() -> None:
    assert client_round(asking(out(), q=form("Q?")), "c") is None
    assert client_round(out(), "nobody") is None
    assert client_round(made("client", EVERYTHING), "c") is None
    nothing = ClientAnswers(round=ClientRound(round=1, run=0, questions={}))
    assert client_answered(asking(out(), q=form("Q?")), "c", nothing, ADA) == ()
    assert client_answered(out(), "nobody", nothing, ADA) == ()


# The first answer wins


def test_what_the_client_answers_first_closes_the_question_with_its_name() -> None:
    record = asking(made("both"), q=form("Q?"))
    later = answered(record, {"q": OSLO})
    assert shown(later) == []
    (outcome,) = later.private.outcomes
    assert (outcome.by, outcome.via) == (ADA.by, Provenance.PERSON)
    assert notes(later) == ["Ada in pad answered “Q?”. v: Oslo"]
    assert input_responses(the_call(later)) == {"q": OSLO}
    assert the_call(later).phase == ToSend(leg=1)
    assert (
        client_answered(later, "c", ClientAnswers(round=round_of(record), given={"q": NO}), ADA)
        == ()
    )


def test_what_people_answer_first_stands() -> None:

    record = asking(made("both"), q=form("Q?"))
    asked = round_of(record)
    (request,) = record.public.input_requests or ()
    declined = InputCompleted(request_id=request.id, response=ResponseKind.DECLINE)
    record = fold(record, *batch_of(record, declined, BY_HOST))
    assert the_call(record).phase == ToSend(leg=1)
    assert answered(record, {"q": OSLO}, to=asked) is record


def test_an_address_is_agreed_to_by_either() -> None:
    url = Elicitation(message="Open", mode="url", url="https://example.com/")
    record = asking(made("both"), q=ElicitRequest(params=url))
    record = answered(record, {"q": {"action": "accept"}})
    assert the_call(record).phase == ToSend(leg=1)


@pytest.mark.parametrize(
    "response", [{"action": "accept", "content": {}}, {"action": "maybe"}, {"content": {}}]
)
def test_an_answer_that_does_not_fit_leaves_the_question_open(response: Any) -> None:
    record = answered(asking(made("both"), q=form("Q?")), {"q": response})
    assert shown(record) == ["Q?"]
    assert "does not fit" in notes(record)[-1]


def test_a_form_that_hides_something_from_people_takes_the_clients_answer() -> None:
    schema = {
        "type": "object",
        "properties": {"s3cret": {"type": "string"}},
        "required": ["s3cret"],
    }
    hiding = ElicitRequest(params=Elicitation(message="Q?", requested_schema=schema))
    record = asking(made("both"), q=hiding)
    given = {"action": "accept", "content": {"s3cret": "Oslo"}}
    record = answered(record, {"q": given})
    assert input_responses(the_call(record)) == {"q": given}
    assert shown(record) == []


# Answers that no person has given


@pytest.mark.parametrize(("action", "verb"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_refusal_that_nobody_can_have_read_leaves_the_question_to_people(
    action: str, verb: str
) -> None:
    record = answered(asking(made("both"), q=form("Q?")), {"q": {"action": action}}, within=12)
    assert shown(record) == ["Q?"]
    assert notes(record) == [
        f"pad {verb} within 12 ms, before anyone could read it. “Q?” can still be answered here."
    ]
    alone = asking(made("client", EVERYTHING), q=form("Q?"))
    alone = answered(alone, {"q": {"action": action}}, within=12)
    assert the_call(alone).phase == ToSend(leg=1)
    assert notes(alone) == [f"pad {verb} within 12 ms, before anyone could read it."]
    assert answered(asking(made("both"), q=form("Q?")), {"q": OSLO}, within=12).public.summary
    slow = answered(asking(made("both"), q=form("Q?")), {"q": {"action": action}})
    assert shown(slow) == []


def test_a_client_that_fails_leaves_the_question_to_people() -> None:
    record = asking(made("both"), q=form("Q?"))
    record = answered(record, errors={"q": {"code": -1, "message": "no screen"}})
    assert shown(record) == ["Q?"]
    assert notes(record) == ["pad could not be asked: no screen"]


def test_an_error_goes_to_a_server_that_waits_and_ends_the_call_of_another() -> None:
    error = {"code": -1, "message": "no model", "data": {"why": 1}}
    held = asking(made("client", EVERYTHING), held=True, m=SamplingRequest())
    held = answered(held, errors={"m": error})
    assert the_call(held).phase == Sent(leg=0, held=True)
    assert the_call(held).asked[0].error == error
    assert input_responses(the_call(held)) == {}
    modern = asking(made("both", EVERYTHING), m=SamplingRequest(), q=form("Q?"))
    modern = answered(modern, errors={"m": error})
    assert failed(modern).data == error
    assert shown(modern) == []


# Rounds and runs


def test_an_answer_to_another_round_changes_nothing() -> None:
    record = asking(made("client", EVERYTHING), q=form("Q?"))
    first = round_of(record)
    record = asking(sent(answered(record, {"q": OSLO})), q=form("Q2?"))
    assert answered(record, {"q": NO}, to=first) is record


def test_a_key_that_was_left_out_stays_open() -> None:
    record = asking(made("client", EVERYTHING), a=form("A?"), b=form("B?"))
    record = answered(record, {"a": OSLO})
    assert isinstance(the_call(record).phase, Waiting)
    assert set(round_of(record).questions) == {"b"}
    assert answered(record, {}) is record


def test_the_client_says_whether_a_call_runs_again_and_its_answers_are_kept() -> None:
    record = asking(made("client", EVERYTHING), held=True, q=form("Q?"))
    before = round_of(record)
    record = crash(record)
    record = answered(record, {"q": OSLO}, to=before)
    asked = round_of(record)
    assert asked.again == 0
    assert "Run it again?" in asked.questions[AGAIN]["params"]["message"]
    assert answered(record, {}) is record
    record = answered(record, {AGAIN: {"action": "accept", "content": {AGAIN: True}}})
    assert the_call(record).phase == ToSend(leg=1)
    record = asking(sent(record), held=True, q=form("Q?"))
    assert the_call(record).phase == Sent(leg=1, held=True)
    assert the_call(record).asked[0].given == OSLO
    assert answered(record, {AGAIN: NO}, to=asked) is record


@pytest.mark.parametrize(
    "response", [{"action": "decline"}, {"action": "accept"}, {"action": "cancel"}]
)
def test_a_client_that_does_not_want_it_again_ends_the_call(response: Any) -> None:
    record = crash(made("both"))
    assert shown(record) != []
    assert failed(answered(record, {AGAIN: response})).kind is FailureKind.NOT_REPEATED


def test_nobody_is_asked_about_a_run_by_what_is_no_answer_or_came_too_soon() -> None:
    record = crash(made("both"))
    assert answered(record, {AGAIN: {"action": "maybe"}}) is record
    soon = answered(record, {AGAIN: {"action": "decline"}}, within=3)
    assert isinstance(the_call(soon).phase, Uncertain)
    assert "within 3 ms" in notes(soon)[-1]
    assert client_round(crash(made("session", EVERYTHING)), "c") is None


def test_a_doubt_whose_question_is_gone_is_asked_of_nobody() -> None:
    record = crash(made("both"))
    gone = msgspec.structs.replace(record.public, input_requests=None)
    assert client_round(msgspec.structs.replace(record, public=gone), "c") is None


def test_an_answer_of_an_earlier_run_counts_when_the_question_comes_again() -> None:
    record = asking(made("client", EVERYTHING, repeatable=True), held=True, q=form("Q?"))
    before = round_of(record)
    record = crash(record)  # harmless: it has started over
    assert the_call(record).phase == ToSend(leg=1)
    early = answered(record, {"q": OSLO, "unknown": OSLO}, to=before)
    early = asking(sent(early), held=True, q=form("Q?"))
    assert the_call(early).asked[0].given == OSLO
    late = asking(sent(record), held=True, q=form("Q?"))
    late = answered(late, {"q": OSLO}, to=before)
    assert the_call(late).asked[0].given == OSLO
    other = asking(sent(record), held=True, q=form("Another?"))
    assert isinstance(the_call(answered(other, {"q": OSLO}, to=before)).phase, Waiting)
    assert answered(record, {"q": {"action": "cancel"}}, to=before) is record


def test_what_was_cancelled_is_not_remembered() -> None:
    record = asking(made("client", EVERYTHING), q=form("Q?"))
    record = answered(record, {"q": {"action": "cancel"}})
    assert the_call(record).remembered == ()


def test_a_call_that_has_ended_takes_no_answers() -> None:
    record = asking(made("client", EVERYTHING), q=form("Q?"))
    asked = round_of(record)
    ended = sent(answered(record, {"q": OSLO}))
    ended = fold(ended, *finish(ended, "c", 1, {}, BY_HOST))
    assert isinstance(the_call(ended).phase, Finished)
    assert answered(ended, {"q": OSLO}, to=asked) is ended
    late = CallAnswered(call_id="c", round=1, given={"q": OSLO})
    assert fold(ended, late) is ended
    assert fold(ended, msgspec.structs.replace(late, call_id="nobody")) is ended


def test_an_answer_is_work_for_the_next_leg_once() -> None:
    record = asking(made("client", EVERYTHING), q=form("Q?"))
    answers = ClientAnswers(round=round_of(record), given={"q": OSLO})
    (action, *_) = client_answered(record, "c", answers, ADA)
    after = fold(record, action)
    assert [type(effect).__name__ for effect in effects_of(record, (action,), after)] == [
        "SendCall"
    ]
    assert effects_of(after, (action,), fold(after, action)) == ()


def test_recordings_hold_no_secret_that_a_client_was_asked_about() -> None:
    of = call(client=CallClient(name="pad", answers="client", capabilities=EVERYTHING))
    action = CallAnswered(
        call_id="c",
        round=1,
        given={"q": {"action": "accept", "content": {"v": "s3cret"}}},
        errors={"r": {"message": "s3cret"}},
    )
    assert b"s3cret" in msgspec.json.encode(action)
    assert b"s3cret" not in msgspec.json.encode(redacted(action, {"c": of}))
    assert redacted(action, {}) is action


# When the client does not come back


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("within", [None, 5_000])
def test_a_call_whose_client_does_not_answer_ends_at_a_time_that_the_record_tells(
    held: bool, within: int | None
) -> None:
    record = asking(made("client", EVERYTHING, answer_within=within), held=held, q=form("Q?"))
    at = the_call(record).asked_at + (within or CLIENT_ANSWER_MS)
    assert list(expiries(record)) == [ExpireCall(call_id="c", at=at)]
    assert ExpireCall(call_id="c", at=at) in effects_after_restart(record)
    assert client_expired(record, "c", Stamp(at=at - 1)) == ()
    after = fold(record, *client_expired(record, "c", Stamp(at=at)))
    phase = the_call(after).phase
    assert isinstance(phase, Abandoned)
    assert "pad did not answer within" in phase.reason
    assert phase.reason in msgspec.json.encode(tool_call(after)).decode()
    assert list(expiries(after)) == []
    assert client_expired(after, "c", Stamp(at=at)) == client_expired(after, "x", ADA) == ()


def test_a_question_that_people_can_answer_as_well_stays_open() -> None:
    record = asking(made("both", EVERYTHING), q=form("Q?"))
    assert list(expiries(record)) == []
    record = asking(made("session", EVERYTHING), m=SamplingRequest(), q=form("Q?"))
    assert [type(effect) for effect in expiries(record)] == [ExpireCall]
    assert list(expiries(answered(record, {"m": {"model": "x"}}))) == []


def test_a_round_of_an_older_log_counts_from_the_start_of_its_call() -> None:
    record = asking(made("client", EVERYTHING), q=form("Q?"))
    old = msgspec.structs.replace(the_call(record), asked_at=None)
    private = msgspec.structs.replace(record.private, calls={"c": old})
    record = msgspec.structs.replace(record, private=private)
    (effect,) = expiries(record)
    assert effect.at == old.started_at + CLIENT_ANSWER_MS
