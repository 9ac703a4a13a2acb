"""Questions whose askers promised to wait for the answers, and have left."""

from pathlib import Path

import pytest

from session_server.schemas.limits import LEASE_LIMIT_SECONDS
from tests.http.sessions import DEADLINE, QUESTIONS, Api, polling, text
from tests.servers import ServerProcess, serving, sqlite_store
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SHORT = 0.3
LONGER = 2.0
"""For what must be seen before the lease has ended, on a busy machine too."""

LONG = 600.0


def gone_since(api: Api, session: str, request: str) -> int | None:
    """What everyone is shown: the session's public state."""
    for open_request in api.get(session).json().get("inputRequests", ()):
        if open_request["id"] == request:
            since: int | None = open_request["_meta"].get("askerGoneSince")
            return since
    raise AssertionError("the request is not open")


def left(api: Api, session: str, request: str) -> int:
    since: int = wait_until(lambda: gone_since(api, session, request))
    return since


@pytest.mark.proves("design.requests.asker-left")
def test_a_cut_connection_marks_the_question_and_the_next_poll_removes_the_mark(
    api: Api, server: ServerProcess, session: str
) -> None:
    asked = api.ask(session, questions=QUESTIONS, lease=SHORT)
    assert asked["request"]["_meta"]["lease"] == SHORT
    path = f"{session}/requests/{asked['id']}"
    left(api, session, asked["id"])
    with polling(server, path):
        wait_until(lambda: gone_since(api, session, asked["id"]) is None)
        later = api.ask(session, message="Other?", lease=SHORT)
        left(api, session, later["id"])  # longer than the lease, so that it would be marked too
        assert gone_since(api, session, asked["id"]) is None
    left(api, session, asked["id"])
    waiting = api.later("GET", path, params={"wait": 30})
    api.complete(session, asked["id"], answers={"name": text("blue")})
    assert waiting.result(timeout=DEADLINE).json()["content"] == {"name": "blue"}


def test_the_same_question_is_taken_up_and_not_asked_twice(api: Api, session: str) -> None:
    body = {"message": "Deploy?", "questions": QUESTIONS, "lease": LONGER}
    first = api.ask(session, **body)
    other = api.ask(session, **{**body, "lease": LONG})
    assert other["id"] != first["id"]  # its asker is still there
    left(api, session, first["id"])
    again = api.post(f"{session}/requests", json={**body, "lease": LONG})
    assert again.json()["id"] == first["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    wait_until(lambda: gone_since(api, session, first["id"]) is None)
    assert api.ask(session, message="Deploy!", lease=LONG)["id"] not in (first["id"], other["id"])


def test_the_same_key_removes_the_mark_and_brings_the_answer(api: Api, session: str) -> None:
    key = {"Idempotency-Key": "release"}
    body = {"message": "Deploy?", "lease": LONGER}
    asked = api.post(f"{session}/requests", json=body, headers=key).json()
    left(api, session, asked["id"])
    assert api.post(f"{session}/requests", json=body, headers=key).json()["id"] == asked["id"]
    wait_until(lambda: gone_since(api, session, asked["id"]) is None)
    api.complete(session, asked["id"])
    again = api.post(f"{session}/requests", json=body, headers=key).json()
    assert (again["id"], again["state"]) == (asked["id"], "ended")


def test_who_looks_at_a_question_without_waiting_does_not_wait_for_its_answer(
    api: Api, session: str
) -> None:
    asked = api.ask(session, message="Deploy?", lease=SHORT)
    left(api, session, asked["id"])
    assert api.get(f"{session}/requests/{asked['id']}").json()["state"] == "open"
    api.get(f"{session}/requests", params={"wait": 1})
    assert gone_since(api, session, asked["id"]) is not None


def test_only_who_asked_counts_as_waiting_for_the_answer(api: Api, session: str) -> None:
    made = api.post("/v1/tokens", json={"name": "Builder", "role": "agent"}).json()
    with Api(str(api.base_url), headers={"Authorization": f"Bearer {made['token']}"}) as builder:
        asked = builder.ask(session, message="Deploy?", lease=SHORT)
        path = f"{session}/requests/{asked['id']}"
        since = left(api, session, asked["id"])
        api.get(path, params={"wait": 0.2})  # somebody else looks whether it has ended
        assert gone_since(api, session, asked["id"]) == since
        again = api.post(f"{session}/requests", json={"message": "Deploy?", "lease": LONG}).json()
        assert again["id"] != asked["id"]
        builder.get(path, params={"wait": 0.2})
        wait_until(lambda: gone_since(api, session, asked["id"]) != since)


@pytest.mark.parametrize("lease", [0, -1, LEASE_LIMIT_SECONDS + 1, "soon"])
def test_a_lease_out_of_bounds_is_refused(api: Api, session: str, lease: object) -> None:
    refused = api.post(f"{session}/requests", json={"message": "Deploy?", "lease": lease})
    assert (refused.status_code, refused.json()["path"]) == (422, "$.lease")
    assert api.get(f"{session}/requests").json()["items"] == []


def test_after_a_restart_the_lease_begins_anew_and_marks_stay(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store) as server, Api(server.url) as api:
        session = api.post("/v1/sessions", json={}).headers["location"]
        marked = api.ask(session, message="One?", lease=SHORT)
        left(api, session, marked["id"])
        with polling(server, f"{session}/requests/{marked['id']}"):
            wait_until(lambda: gone_since(api, session, marked["id"]) is None)
            held = api.ask(session, message="Two?", lease=LONG)
            server.stop()  # whoever waits is disconnected by the host
    with serving(store) as server, Api(server.url) as api:
        started = api.get(session).json()["inputRequests"]
        assert "askerGoneSince" not in started[1]["_meta"]
        since = left(api, session, marked["id"])
        assert gone_since(api, session, held["id"]) is None
        server.kill()
    with serving(store) as server, Api(server.url) as api:
        assert gone_since(api, session, marked["id"]) == since
