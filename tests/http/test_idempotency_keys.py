"""Sent again, done once: the Idempotency-Key."""

from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from session_server.schemas.limits import IDEMPOTENCY_KEY_CHARS
from tests.effort import PATIENCE
from tests.http.sessions import QUESTIONS, Api, events, text
from tests.servers import serving, sqlite_store


def post(api: Api, path: str, body: dict[str, Any], key: str = "k") -> Any:
    return api.post(path, json=body, headers={"Idempotency-Key": key})


def test_a_request_that_is_sent_again_is_asked_once(api: Api, session: str) -> None:
    body = {"message": "Deploy?", "expiresIn": 3600}
    first, second = (post(api, f"{session}/requests", body) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert first.headers["location"] == second.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert len(api.get(f"{session}/requests").json()["items"]) == 1


def test_after_its_end_a_request_is_still_the_same(api: Api, session: str) -> None:
    asked = post(api, f"{session}/requests", {"message": "Deploy?"}).json()
    done = api.complete(session, asked["id"]).json()
    assert post(api, f"{session}/requests", {"message": "Deploy?"}).json() == done


def at_once(api: Api, path: str, body: dict[str, Any]) -> list[Any]:
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(post, api, path, body) for _ in range(32)]
        return [future.result(timeout=PATIENCE) for future in sent]


def test_many_at_once_make_one(tmp_path: Path) -> None:
    """On a disk, so that the later ones come while the first is being written."""
    with serving(sqlite_store(tmp_path)) as server, Api(server.url) as api:
        session = api.post("/v1/sessions", json={"provider": "demo"}).headers["location"]
        turns = at_once(api, f"{session}/turns", {"text": "Hello"})
        assert {answer.status_code for answer in turns} == {201}
        assert len({answer.json()["turnId"] for answer in turns}) == 1
        sessions = at_once(api, "/v1/sessions", {})
        late = [answer for answer in sessions if answer.status_code == 409]
        made = [answer for answer in sessions if answer.status_code == 201]
        assert len(late) + len(made) == len(sessions)
        assert {answer.json()["code"] for answer in late} <= {"stillAtWork"}
        assert len({answer.json()["resource"] for answer in made}) == 1

        session = api.post("/v1/sessions", json={}).headers["location"]
        with events(api, f"{session}/events") as stream:
            next(stream)
            body = {"message": "Deploy?", "questions": QUESTIONS}
            asked = at_once(api, f"{session}/requests", body)
            (request,) = {answer.json()["id"] for answer in asked}
            api.answer(session, request, "name", text("the last action", "draft"))
            until_last = takewhile(lambda event: "the last action" not in event["data"], stream)
            assert sum("session/inputRequested" in event["data"] for event in until_last) == 1


def test_a_key_stands_for_one_body(api: Api, session: str) -> None:
    post(api, f"{session}/requests", {"message": "Deploy?"})
    other = post(api, f"{session}/requests", {"message": "Roll back?"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotencyKeyReused")
    assert len(api.get(f"{session}/requests").json()["items"]) == 1


def test_how_a_body_is_written_does_not_matter(api: Api, session: str) -> None:
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first = api.post(f"{session}/requests", content=b'{"message":"a","url":null}', headers=headers)
    second = api.post(f"{session}/requests", content=b'{ "message": "a" }', headers=headers)
    assert first.json()["id"] == second.json()["id"]


def test_a_refused_request_can_be_sent_again_with_its_key(api: Api) -> None:
    session = api.post("/v1/sessions", json={"provider": "demo"}).headers["location"]
    api.post(f"{session}/turns", json={"text": "first"})
    refused = post(api, f"{session}/turns", {"text": "second"})
    assert refused.status_code == 409
    api.delete(f"{session}/turns/active")
    assert post(api, f"{session}/turns", {"text": "second"}).status_code == 201


def test_a_turn_that_is_sent_again_starts_once(api: Api) -> None:
    session = api.post("/v1/sessions", json={"provider": "demo"}).headers["location"]
    first, second = (post(api, f"{session}/turns", {"text": "Hello"}) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    api.delete(f"{session}/turns/active")
    assert post(api, f"{session}/turns", {"text": "Hello"}).json() == first.json()


@pytest.mark.parametrize("body", [{"title": "A"}, {"resource": "x:named-by-its-maker"}])
def test_a_session_that_is_sent_again_is_made_once(api: Api, body: dict[str, Any]) -> None:
    key = f"session {body}"
    first, second = (post(api, "/v1/sessions", body, key) for _ in range(2))
    assert first.json()["resource"] == second.json()["resource"]
    assert second.headers["idempotency-replayed"] == "true"
    other = post(api, "/v1/sessions", {"title": "B"}, key)
    assert other.json()["code"] == "idempotencyKeyReused"


def test_a_session_of_somebody_else_is_no_replay(api: Api) -> None:
    body = {"resource": "x:first-come"}
    api.post("/v1/sessions", json=body)
    for taken in (post(api, "/v1/sessions", body, "late"), api.post("/v1/sessions", json=body)):
        assert (taken.status_code, taken.json()["code"]) == (409, "sessionExists")


def test_keys_of_different_sessions_do_not_meet(api: Api, session: str) -> None:
    other = api.post("/v1/sessions", json={}).headers["location"]
    post(api, f"{session}/requests", {"message": "one"})
    assert post(api, f"{other}/requests", {"message": "two"}).status_code == 201


@pytest.mark.parametrize(("length", "bound"), [(0, 1), (IDEMPOTENCY_KEY_CHARS + 1, 255)])
def test_a_key_has_a_length(api: Api, session: str, length: int, bound: int) -> None:
    refused = post(api, f"{session}/requests", {"message": "?"}, "k" * length)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalidParameter")
    assert f"{bound} character" in refused.json()["detail"]
    longest = post(api, f"{session}/requests", {"message": "?"}, "k" * IDEMPOTENCY_KEY_CHARS)
    assert longest.status_code == 201


def test_keys_questions_and_outcomes_outlive_the_process(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)

    def make(api: Api) -> list[Any]:
        session = post(api, "/v1/sessions", {"title": "A"})
        where = session.headers["location"]
        asked = [post(api, f"{where}/requests", {"message": key}, key).json() for key in "ab"]
        if asked[0]["state"] == "open":
            asked[0] = api.complete(where, asked[0]["id"]).json()
        return [session.json()["resource"], *asked]

    with serving(store) as server, Api(server.url) as api:
        first = make(api)
        server.kill()
    with serving(store) as server, Api(server.url) as api:
        assert make(api) == first
        assert len(api.get("/v1/sessions").json()["items"]) == 1
