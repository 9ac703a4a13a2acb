"""Asking over HTTP, and how it ends."""

import contextlib
import socket
import time

import pytest

from session_server.schemas.limits import LONG_POLLS_PER_PRINCIPAL, WAIT_SECONDS
from tests.effort import PATIENCE
from tests.http.sessions import QUESTIONS, REGION, Api, text
from tests.servers import serving
from tests.waiting import wait_until


@pytest.mark.proves("design.names.http-wait")
def test_a_wait_is_answered_as_soon_as_somebody_completes(api: Api, session: str) -> None:
    asked = api.ask(session, message="Deploy?", questions=QUESTIONS)
    assert asked["state"] == "open"
    waiting = api.later("GET", f"{session}/requests/{asked['id']}", params={"wait": 30})
    done = api.complete(session, asked["id"], answers={"name": text("blue")})
    ended = waiting.result(timeout=PATIENCE).json()
    assert ended == done.json()
    assert ended["outcome"]["response"] == "accept"
    assert ended["outcome"]["via"] == "person"
    assert ended["content"] == {"name": "blue"}


@pytest.mark.proves("design.names.http-wait")
def test_a_wait_that_is_over_shows_the_open_request(api: Api, session: str) -> None:
    asked = api.ask(session)
    begun = time.monotonic()
    read = api.get(f"{session}/requests/{asked['id']}", params={"wait": 0.3})
    assert time.monotonic() - begun > 0.25
    assert read.status_code == 200
    assert read.json() == asked


def test_a_wait_beyond_the_limit_is_refused_with_the_number(api: Api, session: str) -> None:
    asked = api.ask(session)
    refused = api.get(f"{session}/requests/{asked['id']}", params={"wait": 61})
    assert refused.status_code == 422
    assert "60" in refused.json()["detail"]


def test_the_list_can_wait_for_a_question(api: Api, session: str) -> None:
    waiting = api.later("GET", f"{session}/requests", params={"wait": 30})
    asked = api.ask(session)
    assert waiting.result(timeout=PATIENCE).json()["items"] == [asked]


def test_open_and_ended_requests_are_listed_apart(api: Api, session: str) -> None:
    first, second, third = api.ask(session), api.ask(session), api.ask(session)
    api.delete(f"{session}/requests/{second['id']}")
    api.complete(session, first["id"], response="decline")
    listed = api.get(f"{session}/requests").json()["items"]
    assert [item["id"] for item in listed] == [third["id"]]
    ended = api.get(f"{session}/requests", params={"state": "ended"}).json()["items"]
    assert [(item["id"], item["outcome"]["via"]) for item in ended] == [
        (first["id"], "person"),
        (second["id"], "withdrawn"),
    ]


def test_a_schema_becomes_questions_and_the_outcome_its_content(api: Api, session: str) -> None:
    asked = api.ask(session, message="Where to?", requestedSchema=REGION)
    region, copies = asked["request"]["questions"]
    assert (region["kind"], region["required"]) == ("single-select", True)
    assert (copies["kind"], copies["defaultValue"]) == ("integer", 3)
    done = api.complete(session, asked["id"], content={"region": "eu"}).json()
    assert done["content"] == {"region": "eu", "copies": 3}


def test_drafts_are_shared_and_only_submitted_answers_count(api: Api, session: str) -> None:
    asked = api.ask(session)
    drafted = api.answer(session, asked["id"], "name", text("blu", "draft")).json()
    assert drafted["request"]["answers"]["name"]["value"]["value"] == "blu"
    assert drafted["request"]["answers"]["name"]["_meta"]["by"]["id"] == "local"
    state = api.get(session).json()
    assert state["inputRequests"][0]["answers"]["name"]["state"] == "draft"
    refused = api.complete(session, asked["id"])
    assert (refused.status_code, refused.json()["code"]) == (422, "required")
    assert refused.json()["questionId"] == "name"
    api.answer(session, asked["id"], "name", text("blue"))
    api.answer(session, asked["id"], "sure", {"state": "skipped"})
    done = api.complete(session, asked["id"]).json()
    assert done["content"] == {"name": "blue"}
    assert done["outcome"]["answers"]["sure"]["state"] == "skipped"


def test_what_was_completed_is_neither_completed_again_nor_withdrawn(
    api: Api, session: str
) -> None:
    asked = api.ask(session, message="Go?")
    assert api.complete(session, asked["id"], response="decline").status_code == 200
    for late in (
        api.complete(session, asked["id"]),
        api.delete(f"{session}/requests/{asked['id']}"),
    ):
        assert (late.status_code, late.json()["code"]) == (409, "alreadyCompleted")
        assert "Too late: Someone declined" in late.json()["detail"]
    assert "content" not in api.get(f"{session}/requests/{asked['id']}").json()


@pytest.mark.proves("design.names.withdraw")
def test_withdrawing_ends_a_request_once(api: Api, session: str) -> None:
    asked = api.ask(session)
    waiting = api.later("GET", f"{session}/requests/{asked['id']}", params={"wait": 30})
    first, second = (api.delete(f"{session}/requests/{asked['id']}") for _ in range(2))
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json() == waiting.result(timeout=PATIENCE).json()
    assert first.json()["outcome"]["via"] == "withdrawn"
    assert first.json()["outcome"]["response"] == "cancel"


def test_a_deadline_does_what_on_expiry_says(api: Api, session: str) -> None:
    form = {"type": "object", "properties": {"copies": {"type": "integer", "default": 3}}}
    asked = api.ask(session, requestedSchema=form, expiresIn=0.2, onExpiry="defaults")
    ended = api.get(f"{session}/requests/{asked['id']}", params={"wait": 20}).json()
    assert (ended["outcome"]["response"], ended["outcome"]["via"]) == ("accept", "default")
    assert ended["content"] == {"copies": 3}


def test_a_deadline_may_be_an_absolute_time_and_may_bring_nothing(api: Api, session: str) -> None:
    at = time.time_ns() // 1_000_000 + 100
    asked = api.ask(session, message="Take your time", expiresAt=at, onExpiry="wait")
    assert asked["request"]["_meta"] == {
        "by": {"id": "local"},
        "expiresAt": at,
        "onExpiry": "wait",
    }
    waited = api.get(f"{session}/requests/{asked['id']}", params={"wait": 0.4})
    assert waited.json()["state"] == "open"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "$"),
        ({"questions": [], "requestedSchema": {"type": "object"}}, "$.questions"),
        ({"requestedSchema": {"type": "array"}}, "$.requestedSchema"),
        ({"requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}}, None),
        ({"message": "?", "url": "javascript:alert(1)"}, "$.url"),
        ({"message": "?", "expiresAt": 1, "expiresIn": 1}, "$.expiresIn"),
        ({"message": "?", "onExpiry": "cancel"}, "$.onExpiry"),
    ],
)
def test_an_invalid_question_is_refused_with_a_reason(
    api: Api, session: str, body: dict[str, object], path: str | None
) -> None:
    refused = api.post(f"{session}/requests", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "badForm")
    assert path is None or refused.json()["path"] == path
    assert api.get(f"{session}/requests").json()["items"] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"region": 7}, "wrongKind"),
        ({"region": "mars"}, "notAnOption"),
        ({"region": None}, "noValue"),
        ({"region": "eu", "copies": 0}, "tooSmall"),
        ({"region": "eu", "unknown": 1}, "noQuestion"),
    ],
)
def test_plain_values_are_judged_like_any_answer(
    api: Api, session: str, content: dict[str, object], code: str
) -> None:
    asked = api.ask(session, requestedSchema=REGION)
    refused = api.complete(session, asked["id"], content=content)
    assert refused.json()["code"] == code
    assert refused.json()["requestId"] == asked["id"]


def test_an_answer_by_policy_says_so(api: Api, session: str) -> None:
    asked = api.ask(session, message="Go?")
    done = api.post(f"{session}/requests/{asked['id']}/complete", json={}, params={"via": "policy"})
    assert done.json()["outcome"]["via"] == "policy"


# Clients that leave


SOON = WAIT_SECONDS / 2
"""Well before the waits would end by themselves."""


def begun(api: Api, path: str) -> socket.socket:
    """A request that waits for as long as it may, on a connection of its own."""
    where = api.base_url
    connection = socket.create_connection((where.host, where.port or 80), timeout=PATIENCE)
    head = f"GET {path}?wait={WAIT_SECONDS} HTTP/1.1\r\nHost: {where.host}:{where.port}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


@pytest.mark.proves("design.limits.long-polls")
def test_waits_are_bounded_and_end_when_their_clients_leave() -> None:
    # Without a rate limit: so many requests at once could be refused for that instead.
    with serving("memory:", "--actions-per-second", "0") as server, Api(server.url) as api:
        session = api.post("/v1/sessions", json={}).headers["location"]
        asked = api.ask(session)
        path = f"{session}/requests/{asked['id']}"

        def is_refused() -> bool:
            answer = api.get(path, params={"wait": 0.001})
            if answer.status_code == 200:
                return False
            assert answer.status_code == 429
            assert answer.json()["code"] == "tooManyLongPolls"
            assert f"You have {LONG_POLLS_PER_PRINCIPAL}" in answer.json()["detail"]
            assert answer.headers["retry-after"] == "1"
            return True

        with contextlib.ExitStack() as stack:
            for _ in range(LONG_POLLS_PER_PRINCIPAL):
                stack.enter_context(begun(api, path))
            while not is_refused():
                # On a busy machine some were closed before their request was looked at.
                stack.enter_context(begun(api, path))
            assert api.get(path).status_code == 200
        wait_until(lambda: not is_refused(), SOON)


def test_clients_that_leave_in_the_middle_of_a_body_leave_no_traceback() -> None:
    with serving("memory:") as server, Api(server.url) as api:
        head = (
            f"POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        for _ in range(20):
            with socket.create_connection(
                ("127.0.0.1", server.port), timeout=PATIENCE
            ) as connection:
                connection.sendall(head.encode())
        for _ in range(20):
            assert api.get("/v1/sessions").json()["items"] == []
        assert server.stop() == 0
        assert "Traceback" not in "".join(server.output)
