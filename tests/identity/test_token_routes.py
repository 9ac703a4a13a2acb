"""Tokens and links given away at a real server: bounded, told once, and taken back."""

from typing import Any

import httpx2
import pytest

from session_server.schemas.limits import (
    ID_CHARS,
    NAME_CHARS,
    SESSIONS_PER_TOKEN,
    SHARE_LIFETIME_LIMIT_SECONDS,
    SHARE_LIFETIME_SECONDS,
    SHARES_PER_SESSION,
    TOKEN_LIFETIME_LIMIT_SECONDS,
)
from tests.ahp.actions import title_changed
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


async def test_a_token_makes_somebody_of_that_name_and_role(
    server: ServerProcess, owner: httpx2.Client
) -> None:
    uri = new_session(owner)
    token = issued(owner, "observer", name="Bo")
    bo = await arrived(server, token["token"], "bo-phone", uri)
    bo.dispatch(title_changed("Mine"), uri)
    refused = await bo.until(lambda f: f.get("method") == "action")
    assert "watch" in refused["params"]["rejectionReason"]
    await bo.close()


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


def test_a_retry_gets_the_same_token_again(owner: httpx2.Client) -> None:
    key = {"Idempotency-Key": "try-1"}
    first = owner.post("/v1/tokens", json={"name": "Bo"}, headers=key)
    second = owner.post("/v1/tokens", json={"name": "Bo"}, headers=key)
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert owner.post("/v1/tokens", json={"name": "Cy"}, headers=key).status_code == 422


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


async def test_a_token_may_be_for_some_sessions_only(
    server: ServerProcess, owner: httpx2.Client
) -> None:
    mine, other = new_session(owner), new_session(owner)
    token = issued(owner, "owner", sessions=[mine])["token"]
    bo = await arrived(server, token, "bo-watch")
    assert [item["resource"] for item in (await bo.call("listSessions"))["items"]] == [mine]
    assert "snapshot" in await bo.call("subscribe", mine)
    for uri in (other, f"ahp-presence:/{name_of(other)}", "session-server:tokens"):
        assert (await bo.call("subscribe", uri))["code"] == -32001
    assert (await bo.call("fetchTurns", other))["code"] == -32001
    assert (await bo.call("createSession", "ahp-session:/bo", provider="people"))["code"] == -32009
    assert (await bo.call("disposeSession", mine))["code"] == -32009
    assert owner.get("/v1/tokens", headers=bearer(token)).status_code == 403
    await bo.close()


@pytest.mark.parametrize("how", ["subscribe", "initialize", "reconnect"])
async def test_a_limited_token_hears_of_its_sessions_and_of_no_others(
    server: ServerProcess, owner: httpx2.Client, how: str
) -> None:
    mine, other = new_session(owner), new_session(owner)
    token = issued(owner, "answerer", sessions=[mine])["token"]
    bo = await arrived(server, token, f"bo-{how}", *((ROOT,) if how == "initialize" else ()))
    if how == "subscribe":
        assert await bo.call("subscribe", ROOT) == {}
    elif how == "reconnect":
        await bo.close()
        bo = await dialled(server, token)  # type: ignore[assignment]
        back = await bo.call(
            "reconnect", clientId=f"bo-{how}", lastSeenServerSeq=0, subscriptions=[ROOT]
        )
        assert back.get("missing", []) == []
    for uri in (other, mine):
        asked = owner.post(f"/v1/sessions/{name_of(uri)}/requests", json={"message": "Go?"})
        assert asked.status_code == 201
    changed = await bo.until(lambda f: f.get("method") == "root/sessionSummaryChanged")
    assert changed["params"]["session"] == mine
    assert changed["params"]["changes"]["status"] == 24
    owner.delete(f"/v1/sessions/{name_of(other)}")
    await bo.call("ping")
    methods = [f["method"] for f in bo.received if "method" in f]
    assert set(methods) == {"root/sessionSummaryChanged"}
    assert all(f["params"]["session"] == mine for f in bo.received if "method" in f)
    bo.say({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": ROOT}})
    owner.post(f"/v1/sessions/{name_of(mine)}/requests", json={"message": "Again?"})
    count = len(methods)
    await bo.call("ping")
    assert sum("method" in f for f in bo.received) == count
    await bo.close()


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


@pytest.mark.slow
async def test_a_link_ends_by_itself(server: ServerProcess, owner: httpx2.Client) -> None:
    link = shared(owner, new_session(owner), expiresIn=1)
    guest = await arrived(server, link["token"], "short-guest")
    assert (await end_of(guest))[1] == "your token has expired"


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


@pytest.mark.slow
def test_the_links_of_a_session_are_bounded(owner: httpx2.Client) -> None:
    name = name_of(new_session(owner))
    made = [
        owner.post(f"/v1/sessions/{name}/shares", json={}) for _ in range(SHARES_PER_SESSION + 1)
    ]
    assert [answer.status_code for answer in made] == [201] * SHARES_PER_SESSION + [422]
    assert "revoke some" in made[-1].json()["detail"]


def test_a_retry_gets_the_same_link_again(owner: httpx2.Client) -> None:
    path = f"/v1/sessions/{name_of(new_session(owner))}/shares"
    key = {"Idempotency-Key": "share-1"}
    first, second = (owner.post(path, json={}, headers=key) for _ in range(2))
    assert first.json() == second.json()
    assert len(owner.get(path).json()["items"]) == 1
