"""Tokens and links given away at a real server: bounded, told once, and taken back."""

from typing import Any

import httpx2
import pytest

from session_server.app import create_app
from session_server.http import token_routes
from session_server.schemas.limits import (
    ID_CHARS,
    NAME_CHARS,
    SESSIONS_PER_TOKEN,
    SHARE_LIFETIME_LIMIT_SECONDS,
    SHARE_LIFETIME_SECONDS,
    TOKEN_LIFETIME_LIMIT_SECONDS,
)
from tests.ahp.client import ROOT
from tests.identity.credentialed_clients import (
    api,
    arrived,
    bearer,
    dialled,
    end_of,
    issued,
    name_of,
    new_session,
    shared,
)
from tests.servers import ServerProcess

# Tokens


async def test_revoking_a_token_shows_its_people_out_for_good(
    server: ServerProcess, owner: httpx2.Client
) -> None:
    token = issued(owner, "answerer")
    bo = await arrived(server, token["token"], "bo-laptop")
    assert owner.delete(f"/v1/tokens/{token['issued']['id']}").status_code == 204
    code, reason = await end_of(bo)
    assert 4500 <= code < 5000
    assert "revoked" in reason
    assert await dialled(server, token["token"]) == 403
    assert owner.get("/v1/sessions", headers=bearer(token["token"])).status_code == 401
    assert owner.delete(f"/v1/tokens/{token['issued']['id']}").status_code == 404


def test_the_text_of_a_token_is_shown_once(owner: httpx2.Client) -> None:
    token = issued(owner, "answerer")
    listed = owner.get("/v1/tokens")
    assert token["issued"] in listed.json()["items"]
    assert token["token"] not in listed.text


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({}, 422),
        ({"name": ""}, 422),
        ({"name": "x" * (NAME_CHARS + 1)}, 422),
        ({"name": "Bo", "id": "host"}, 422),
        ({"name": "Bo", "id": "agent:demo"}, 422),
        ({"name": "Bo", "id": "local"}, 422),
        ({"name": "Bo", "id": "a\nb"}, 422),
        ({"name": "Bo", "id": "x" * (ID_CHARS + 1)}, 422),
        ({"name": "Bo", "role": "king"}, 422),
        ({"name": "Bo", "expiresIn": 0}, 422),
        ({"name": "Bo", "expiresIn": TOKEN_LIFETIME_LIMIT_SECONDS + 1}, 422),
        ({"name": "Bo", "sessions": []}, 422),
        ({"name": "Bo", "sessions": ["x:y"] * (SESSIONS_PER_TOKEN + 1)}, 422),
        ({"name": "Bo", "sessions": ["ahp-session:/none"]}, 404),
    ],
)
def test_a_token_that_cannot_be_is_refused(
    owner: httpx2.Client, wanted: dict[str, Any], status: int
) -> None:
    assert owner.post("/v1/tokens", json=wanted).status_code == status


@pytest.mark.parametrize("what", ["tokens", "shares"])
def test_a_retry_gets_the_same_token_or_link_again(owner: httpx2.Client, what: str) -> None:
    session = f"/v1/sessions/{name_of(new_session(owner))}"
    path = "/v1/tokens" if what == "tokens" else f"{session}/shares"
    key = {"Idempotency-Key": f"try {what}"}
    known = len(owner.get(path).json()["items"])
    first, second = (owner.post(path, json={"name": "Bo"}, headers=key) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert owner.post(path, json={"name": "Cy"}, headers=key).status_code == 422
    assert len(owner.get(path).json()["items"]) == known + 1


# Share links


@pytest.mark.proves("design.access.share")
async def test_a_link_opens_one_session_in_one_role_until_it_is_revoked(
    server: ServerProcess, owner: httpx2.Client
) -> None:
    mine, other = new_session(owner), new_session(owner)
    link = shared(owner, mine, role="observer")
    guest = await arrived(server, link["token"], "guest", mine, other, ROOT)
    assert [s["resource"] for s in guest.received[0]["result"]["snapshots"]] == [mine]
    assert (await guest.call("subscribe", other))["code"] == -32001
    with api(server, link["token"]) as client:
        assert client.get(f"/v1/sessions/{name_of(mine)}").status_code == 200
        assert client.get(f"/v1/sessions/{name_of(other)}").status_code in (403, 404)
        shares = client.post(f"/v1/sessions/{name_of(mine)}/shares", json={})
        assert shares.status_code == 403
    listed = owner.get(f"/v1/sessions/{name_of(mine)}/shares").json()["items"]
    assert [item["id"] for item in listed] == [link["id"]]
    assert owner.get(f"/v1/sessions/{name_of(other)}/shares").json()["items"] == []
    wrong = owner.delete(f"/v1/sessions/{name_of(other)}/shares/{link['id']}")
    assert wrong.status_code == 404
    assert owner.delete(f"/v1/tokens/{link['id']}").status_code == 404
    gone = owner.delete(f"/v1/sessions/{name_of(mine)}/shares/{link['id']}")
    assert gone.status_code == 204
    assert (await end_of(guest))[0] == 4500
    assert await dialled(server, link["token"]) == 403
    assert await dialled(server, link["token"][:-5]) == 403


def test_a_link_has_a_picture_and_says_if_others_cannot_use_it(
    server: ServerProcess, owner: httpx2.Client
) -> None:
    uri = new_session(owner)
    link = shared(owner, uri)
    assert link["url"] == f"{server.url}/?tkn={link['token']}#/s/{name_of(uri)}"
    assert "loopback" in link["warning"]
    assert link["qr"].startswith("<svg")
    assert link["role"] == "answerer"
    listed = owner.get(f"/v1/sessions/{name_of(uri)}/shares").json()["items"][0]
    assert listed["expiresAt"] - listed["createdAt"] == SHARE_LIFETIME_SECONDS * 1000


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"role": "agent"}, 422),
        ({"role": "king"}, 422),
        ({"expiresIn": 0}, 422),
        ({"expiresIn": SHARE_LIFETIME_LIMIT_SECONDS + 1}, 422),
        ({"name": ""}, 422),
    ],
)
def test_a_link_that_cannot_be_is_refused(
    owner: httpx2.Client, wanted: dict[str, Any], status: int
) -> None:
    name = name_of(new_session(owner))
    assert owner.post(f"/v1/sessions/{name}/shares", json=wanted).status_code == status
    assert owner.post("/v1/sessions/none/shares", json={}).status_code == 404
    assert owner.get("/v1/sessions/none/shares").status_code == 404


async def test_the_links_of_a_session_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_routes, "SHARES_PER_SESSION", 2)
    app = create_app("memory:")
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        session = (await client.post("/v1/sessions", json={})).headers["location"]
        made = [await client.post(f"{session}/shares", json={}) for _ in range(3)]
        assert [answer.status_code for answer in made] == [201, 201, 422]
        assert "2 links already; revoke some" in made[-1].json()["detail"]
