"""`/metrics`: numbers that follow what happens, and nothing that a client wrote."""

import json
import time
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from session_server.host.metrics import Counts, Histogram, QuestionTimes, new_outcomes
from session_server.schemas.ahp.questions import InputRequest, ResponseKind
from session_server.schemas.principals import Provenance
from session_server.schemas.record import Outcome, PrivateState, SessionRecord
from tests.effort import PATIENCE
from tests.http.sessions import Api, Numbers, events, numbers, text
from tests.servers import serving
from tests.sessions import session as session_record


@pytest.fixture(scope="module")
def own() -> Iterator[Api]:
    """A server of its own, on which nothing else counts."""
    with serving("memory:") as server, Api(server.url) as api:
        yield api


def grown(before: Numbers, after: Numbers) -> Numbers:
    return {name: after[name] - before.get(name, 0) for name in after}


@pytest.mark.proves("design.names.paths")
def test_what_the_host_promises_is_at_its_paths(own: Api) -> None:
    for path in ("/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"):
        assert own.get(path).status_code == 200
    assert own.get("/metrics").headers["content-type"].startswith("text/plain; version=")
    with connect(
        f"ws{str(own.base_url).removeprefix('http')}/ahp", open_timeout=PATIENCE
    ) as socket:
        socket.send('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"channel":"ahp-root://"}}')
        assert json.loads(socket.recv(timeout=PATIENCE)) == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": None,
        }


def test_questions_and_their_ends_are_counted(own: Api) -> None:
    session = own.post("/v1/sessions", json={}).headers["location"]
    before = numbers(own)
    first, second = own.ask(session), own.ask(session)
    assert numbers(own)["open_requests"] - before["open_requests"] == 2
    time.sleep(0.01)  # so that what is measured is more than nothing
    for state in ("draft", "submitted"):
        own.answer(session, first["id"], "name", text("x", state))
    own.complete(session, first["id"])
    own.complete(session, second["id"])
    own.delete(f"{session}/requests/{second['id']}")
    seen = grown(before, numbers(own))
    assert seen["open_requests"] == 0
    assert seen["outcomes_total{via=person}"] == 1
    assert seen["outcomes_total{via=withdrawn}"] == 1
    assert seen["outcomes_total{via=timeout}"] == 0
    assert seen["refusals_total{code=required}"] == 1
    assert seen["first_draft_seconds_count"] == 1
    assert seen["first_draft_seconds_sum"] >= 0.01
    assert seen["answer_seconds_count"] == 1
    assert seen["answer_seconds_bucket{le=+Inf}"] == 1
    assert seen["entries_total"] >= 8
    assert seen["append_seconds_count"] >= 6
    assert seen["append_seconds_sum"] > 0


def test_watching_is_counted(own: Api) -> None:
    session = own.post("/v1/sessions", json={}).headers["location"]
    asked = own.ask(session)
    before = numbers(own)
    with events(own, f"{session}/events") as first, events(own, f"{session}/events") as second:
        next(first), next(second)
        last = next(first)["id"]
        assert numbers(own)["connections"] - before["connections"] == 2
        own.answer(session, asked["id"], "name", text("x", "draft"))
        json.loads(next(first)["data"])
    with events(own, f"{session}/events", headers={"Last-Event-ID": last}) as again:
        next(again)
        own.delete(session)
        list(again)
    seen = grown(before, numbers(own))
    assert seen["deliveries_total"] == 2
    assert seen["resumed_total{with=snapshot}"] == 2
    assert seen["resumed_total{with=replay}"] == 1


def test_nothing_that_a_client_wrote_is_in_them(own: Api) -> None:
    canary = "canary-in-the-metrics"
    session = own.post("/v1/sessions", json={"title": canary, "resource": f"x:{canary}"})
    own.ask(session.headers["location"], message=canary)
    own.post(f"{session.headers['location']}/requests", json={"message": canary, "url": canary})
    assert canary not in own.get("/metrics").text


def test_a_histogram_counts_up_to_each_bound() -> None:
    values = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 3.0):
        values.observe(value)
    assert values.counts == [2, 1, 1]
    assert values.total == 6.0


def ended(number: int) -> Outcome:
    request = InputRequest(id=str(number))
    via = Provenance.PERSON
    return Outcome(request=request, response=ResponseKind.ACCEPT, via=via, at=number)


def with_outcomes(*outcomes: Outcome) -> SessionRecord:
    return SessionRecord(public=session_record().public, private=PrivateState(outcomes=outcomes))


def test_new_outcomes_are_those_after_the_last_known() -> None:
    first, second, third = map(ended, range(3))
    assert list(new_outcomes(with_outcomes(), with_outcomes(first))) == [first]
    assert list(new_outcomes(with_outcomes(first), with_outcomes(second, third))) == [third, second]
    assert list(new_outcomes(with_outcomes(first, second), with_outcomes(second, third))) == [third]


def test_times_of_a_session_go_with_it() -> None:
    times = QuestionTimes(Counts())
    times._asked["x:1", "q"] = times._untouched["x:1", "q"] = times._asked["x:2", "q"] = 0
    times.disposed("x:1")
    assert times._asked == {("x:2", "q"): 0}
    assert times._untouched == {}
