"""Sessions and turns over HTTP."""

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.http.bodies import partly_decoded
from session_server.reducers.texts import session_name, session_uri
from session_server.schemas.ahp.commands import SESSION_PREFIX
from tests.http.sessions import Api, text


def test_a_session_can_be_made_read_listed_and_removed(api: Api) -> None:
    made = api.post("/v1/sessions", json={"title": "Deploy", "workingDirectory": "file:///srv"})
    assert made.status_code == 201
    summary, where = made.json(), made.headers["location"]
    assert (summary["title"], summary["provider"]) == ("Deploy", "people")
    state = api.get(where).json()
    assert state["summary"]["workingDirectory"] == "file:///srv"
    assert state["lifecycle"] in ("creating", "ready")
    assert summary["resource"] in {s["resource"] for s in api.get("/v1/sessions").json()["items"]}
    assert api.delete(where).status_code == 204
    for gone in (api.get(where), api.delete(where), api.get(f"{where}/requests")):
        assert (gone.status_code, gone.json()["code"]) == (404, "sessionNotFound")
    assert summary["resource"] not in {
        s["resource"] for s in api.get("/v1/sessions").json()["items"]
    }


def test_a_session_needs_no_body_at_all(api: Api) -> None:
    assert api.post("/v1/sessions").status_code == 201


@pytest.mark.proves("design.names.session-path")
@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("ahp-session:/plain", "plain"),
        ("ahp-session:/a/b", "a%2Fb"),
        ("ahp-session:/50%25", "50%2525"),
        ("ahp-session:/été/夏", quote("été/夏", safe="")),
        ("ahp-session:/with space", "with%20space"),
        ("ahp-session:/looks:like-a-uri", quote("ahp-session:/looks:like-a-uri", safe="")),
        ("copilot:/x/y?z=1#f", quote("copilot:/x/y?z=1#f", safe="")),
    ],
)
def test_a_session_is_addressed_by_its_path_or_its_whole_uri(
    api: Api, resource: str, name: str
) -> None:
    made = api.post("/v1/sessions", json={"resource": resource})
    assert made.headers["location"] == f"/v1/sessions/{name}"
    for address in (name, quote(resource, safe="")):
        where = f"/v1/sessions/{address}"
        assert api.get(where).json()["summary"]["resource"] == resource
        asked = api.ask(where)
        drafted = api.answer(where, asked["id"], "name", text("x", "draft"))
        assert drafted.json()["session"] == resource
    assert api.delete(made.headers["location"]).status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"provider": "nobody"}, 422, "providerNotFound"),
        ({"resource": "ahp-x:/1"}, 422, "invalidParams"),
        ({"resource": "no uri"}, 422, "invalidParams"),
        ({"resource": "x:" + "y" * 600}, 422, "mismatch"),
        ({"title": "y" * 501}, 422, "mismatch"),
        ({"fork": {"session": "ahp-session:/no", "turnId": "t"}}, 404, "sessionNotFound"),
    ],
)
def test_what_cannot_be_made_is_refused(
    api: Api, body: dict[str, object], status: int, code: str
) -> None:
    refused = api.post("/v1/sessions", json=body)
    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_a_turn_starts_asks_and_is_cancelled(api: Api) -> None:
    session = api.post("/v1/sessions", json={"provider": "demo"}).headers["location"]
    started = api.post(f"{session}/turns", json={"text": "Plan a trip"})
    assert started.status_code == 201
    opened = api.get(f"{session}/requests", params={"wait": 20}).json()["items"]
    state = api.get(session).json()
    assert state["activeTurn"]["id"] == started.json()["turnId"]
    assert state["activeTurn"]["message"]["text"] == "Plan a trip"
    second = api.post(f"{session}/turns", json={"text": "Another"})
    assert (second.status_code, second.json()["code"]) == (409, "turnActive")
    assert api.delete(f"{session}/turns/active").status_code == 204
    ended = api.get(f"{session}/requests/{opened[0]['id']}").json()
    assert ended["outcome"]["via"] == "abandoned"
    none_left = api.delete(f"{session}/turns/active")
    assert (none_left.status_code, none_left.json()["code"]) == (404, "noTurn")


def test_nobody_listens_in_a_session_that_only_asks(api: Api, session: str) -> None:
    refused = api.post(f"{session}/turns", json={"text": "Hello?"})
    assert (refused.status_code, refused.json()["code"]) == (409, "passiveSession")


CHARACTERS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(CHARACTERS, CHARACTERS)
def test_a_slash_in_a_name_does_not_part_the_path(first: str, second: str) -> None:
    names = [session_name(SESSION_PREFIX + part) for part in (first, second)]
    path = "/v1/sessions/{}/requests/{}".format(*names)
    parts = partly_decoded(path.encode()).split("/")
    assert len(parts) == 6
    assert session_uri(unquote(parts[3])) == SESSION_PREFIX + first
    assert session_uri(unquote(parts[5])) == SESSION_PREFIX + second
