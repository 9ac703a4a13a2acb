"""Recordings over HTTP: a file comes out, and goes in where there is no such session."""

import json

import pytest

from session_server.schemas.limits import CASSETTE_BYTES
from tests.http.sessions import Api

LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def recording(api: Api) -> tuple[str, bytes]:
    """The path of a session, and the session as a file."""
    api.post("/v1/sessions", json={"resource": "ahp-session:/taped", "title": "Taped"})
    session = "/v1/sessions/taped"
    request = api.ask(session)["id"]
    api.complete(session, request, response="decline")
    exported = api.get(f"{session}/export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    assert exported.headers["content-disposition"] == 'attachment; filename="taped.jsonl"'
    return session, exported.content


def test_a_session_is_played_back_as_it_was(api: Api, recording: tuple[str, bytes]) -> None:
    session, text = recording
    taken = api.post("/v1/replay", content=text, headers=LINES)
    assert (taken.status_code, taken.json()["code"]) == (409, "sessionExists")
    assert api.delete(session).status_code == 204
    played = api.post("/v1/replay", content=text, headers=LINES)
    assert (played.status_code, played.headers["location"]) == (201, session)
    assert played.json()["title"] == "Taped"
    assert api.get(f"{session}/export").content == text
    (ended,) = api.get(f"{session}/requests", params={"state": "ended"}).json()["items"]
    assert ended["outcome"]["response"] == "decline"
    refused = api.post(f"{session}/requests", json={"message": "More?"})
    assert (refused.status_code, refused.json()["code"]) == (409, "wrongState")
    assert "recording" in refused.json()["detail"]
    assert api.delete(session).status_code == 204


def test_a_recording_may_come_in_pieces(api: Api, recording: tuple[str, bytes]) -> None:
    session, text = recording
    api.delete(session)
    pieces = (text[at : at + 37] for at in range(0, len(text), 37))
    live = api.post("/v1/replay", params={"live": "true"}, content=pieces, headers=LINES)
    assert live.status_code == 201
    assert api.get(f"{session}/export").content == text
    assert api.delete(session).status_code == 204


def test_what_is_no_recording_is_refused(api: Api) -> None:
    other = api.post("/v1/replay", json={})
    assert (other.status_code, other.json()["code"]) == (415, "unsupportedMediaType")
    for text, message in ((b"", "cut off"), (b"{}\n", "Line 1 cannot be read")):
        refused = api.post("/v1/replay", content=text, headers=LINES)
        assert (refused.status_code, refused.json()["code"]) == (422, "badCassette")
        assert message in refused.json()["detail"]


def test_a_recording_has_a_limit(api: Api) -> None:
    header = json.dumps({"kind": "cassette", "version": 1, "session": "ahp-session:/big"})
    blank = (b" " * 1_048_576 for _ in range(CASSETTE_BYTES // 1_048_576 + 1))

    def body() -> object:
        yield header.encode() + b"\n"
        yield from blank

    refused = api.post("/v1/replay", content=body(), headers=LINES)  # type: ignore[arg-type]
    assert (refused.status_code, refused.json()["code"]) == (413, "tooBig")
