"""Calls over HTTP, against a real host and a real server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.mcp import zoo
from tests.servers import ServerProcess, serving

SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    config = zoo.mcp_json(tmp_path_factory.mktemp("doors"), {"zoo": zoo.stdio_entry("modern")})
    with serving("memory:", "--mcp-config", str(config)) as server:
        yield server


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=SECONDS) as client:
        yield client


@pytest.fixture
def session(http: httpx2.Client) -> str:
    resource: str = http.post("/v1/sessions", json={}).json()["resource"]
    return resource.removeprefix("ahp-session:/")


def make(http: httpx2.Client, session: str, tool: str, **more: Any) -> httpx2.Response:
    body = {"server": "zoo", "tool": tool, **more}
    return http.post(f"/v1/sessions/{session}/calls", json=body)


def answer(http: httpx2.Client, session: str, **content: Any) -> None:
    url = f"/v1/sessions/{session}/requests"
    (item,) = http.get(f"{url}?wait={SECONDS}").json()["items"]
    rid = item["id"].replace("/", "%2F")
    done = http.post(f"{url}/{rid}/complete", json={"content": content})
    assert done.status_code == 200, done.text


def test_a_call_is_made_waited_for_and_fetched(http: httpx2.Client, session: str) -> None:
    made = make(http, session, "weather")
    assert made.status_code == 201
    call_id = made.json()["id"]
    assert made.headers["Location"] == f"/v1/calls/{call_id}"
    answer(http, session, city="Oslo")
    view = http.get(f"/v1/calls/{call_id}?wait={SECONDS}").json()
    assert view["state"] == "finished"
    assert zoo.text_of(view["result"]) == "Sunny in Oslo"
    assert (view["server"], view["target"], view["round"]) == ("zoo", "weather", 1)
    assert "arguments" not in view
    (listed,) = http.get(f"/v1/sessions/{session}/calls").json()["items"]
    assert listed["id"] == call_id


def test_the_result_comes_with_the_request_if_it_is_there_in_time(
    http: httpx2.Client, session: str
) -> None:
    body = {"server": "zoo", "tool": "echo", "arguments": {"text": "hi"}}
    made = http.post(f"/v1/sessions/{session}/calls?wait={SECONDS}", json=body)
    assert made.status_code == 201
    assert zoo.text_of(made.json()["result"]) == "hi"


def test_the_same_request_is_the_same_call_until_its_result_was_fetched(
    http: httpx2.Client, session: str
) -> None:
    first = make(http, session, "weather")
    again = make(http, session, "weather")
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    answer(http, session, city="Oslo")
    http.get(f"/v1/calls/{first.json()['id']}?wait={SECONDS}")
    anew = make(http, session, "weather")
    assert anew.json()["id"] != first.json()["id"]
    assert http.get(f"/v1/calls/{first.json()['id']}").json()["state"] == "finished"


def test_a_key_makes_one_call_for_good(http: httpx2.Client, session: str) -> None:
    key = {"Idempotency-Key": "once"}
    url = f"/v1/sessions/{session}/calls?wait={SECONDS}"
    body = {"server": "zoo", "tool": "echo", "arguments": {"text": "hi"}}
    first = http.post(url, json=body, headers=key)
    again = http.post(url, json=body, headers=key)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = http.post(url, json={**body, "arguments": {"text": "ho"}}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotencyKeyReused")


def test_prompts_and_resources_have_their_own_params(http: httpx2.Client, session: str) -> None:
    url = f"/v1/sessions/{session}/calls?wait={SECONDS}"
    prompt = {"server": "zoo", "method": "prompts/get", "params": {"name": "greeting"}}
    prompt["params"] |= {"arguments": {"name": "Ana"}}  # type: ignore[operator]
    said = http.post(url, json=prompt).json()["result"]["messages"][0]["content"]["text"]
    assert said == "Greet Ana."
    resource = {"server": "zoo", "method": "resources/read", "params": {"uri": "zoo://sign"}}
    read = http.post(url, json=resource).json()["result"]["contents"][0]["text"]
    assert read == "Do not feed."


def test_a_call_can_be_given_up(http: httpx2.Client, session: str) -> None:
    call_id = make(http, session, "weather").json()["id"]
    http.get(f"/v1/sessions/{session}/requests?wait={SECONDS}")
    ended = http.delete(f"/v1/calls/{call_id}")
    assert ended.status_code == 200
    assert ended.json()["state"] == "abandoned"
    assert http.delete(f"/v1/calls/{call_id}").json()["state"] == "abandoned"
    assert http.get(f"/v1/sessions/{session}/requests").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"server": "nowhere", "tool": "echo"}, 422, "unknownServer"),
        ({"server": "zoo"}, 422, "invalidCall"),
        ({"server": "zoo", "tool": "x", "params": {"name": "x"}}, 422, "invalidCall"),
        ({"server": "zoo", "method": "prompts/get", "tool": "x"}, 422, "invalidCall"),
        ({"server": "zoo", "params": {"name": ""}}, 422, "invalidCall"),
        ({"server": "zoo", "params": {"name": "x", "arguments": [1]}}, 422, "invalidCall"),
        ({"server": "zoo", "method": "tools/list", "params": {}}, 422, "mismatch"),
        ({"tool": "echo"}, 422, "mismatch"),
    ],
)
def test_calls_that_cannot_be_made_get_an_error(
    http: httpx2.Client, session: str, body: dict[str, Any], status: int, code: str
) -> None:
    refused = http.post(f"/v1/sessions/{session}/calls", json=body)
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text


def test_calls_that_are_not_there(http: httpx2.Client) -> None:
    missing = http.get("/v1/calls/call-nowhere")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknownCall")
    assert http.delete("/v1/calls/call-nowhere").status_code == 404
    body = {"server": "zoo", "tool": "echo"}
    assert http.post("/v1/sessions/nowhere/calls", json=body).status_code == 404
    assert http.get("/v1/sessions/nowhere/calls").status_code == 404


def test_a_share_link_does_not_let_others_call_or_look(http: httpx2.Client, session: str) -> None:
    call_id = make(http, session, "echo", arguments={"text": "mine"}).json()["id"]
    share = http.post(f"/v1/sessions/{session}/shares", json={"role": "answerer"}).json()
    token = {"Authorization": f"Bearer {share['token']}"}
    body = {"server": "zoo", "tool": "echo", "arguments": {"text": "theirs"}}
    refused = http.post(f"/v1/sessions/{session}/calls", json=body, headers=token)
    assert (refused.status_code, refused.json()["code"]) == (403, "role")
    assert http.get(f"/v1/calls/{call_id}", headers=token).status_code == 403
    assert http.get(f"/v1/sessions/{session}/calls", headers=token).json()["items"] == []


def test_a_file_that_is_not_a_configuration_ends_the_start_with_a_message(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text("mcpServers: {}")
    with pytest.raises(RuntimeError) as raised:
        ServerProcess("memory:", "--mcp-config", str(config))
    reason = str(raised.value)
    assert "is not a configuration of MCP servers" in " ".join(reason.split())
    assert "Traceback" not in reason
