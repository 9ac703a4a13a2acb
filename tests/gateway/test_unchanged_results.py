"""What a server says goes through the gateway unchanged, known or not, between all eras."""

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.effort import PATIENCE
from tests.gateway.requests_2026 import (
    HELLO_2025,
    TOKEN,
    People,
    answer_of,
    bearer,
    envelope,
    headers_for,
    host,
    issued,
    rpc,
    wait_for,
)
from tests.mcp import zoo
from tests.mcp.servers import odd
from tests.servers import ServerProcess

MODES = ("session", "client", "both")
ERAS = ("modern", "legacy")
SECRET = "a-secret-of-the-server"
EXTRAS = {
    "experimental": {"example.com/hologram": {"depth": 3}},
    "extensions": {"example.com/scent": {"notes": ["pine"]}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    entries: dict[str, dict[str, Any]] = {
        f"{era}-{mode}": {
            "command": sys.executable,
            "args": [str(Path(odd.__file__)), *(["--legacy"] if era == "legacy" else [])],
            "answers": mode,
            "env": {"API_TOKEN": SECRET},
        }
        for era in ERAS
        for mode in MODES
    }
    with host(tmp_path_factory.mktemp("host"), entries) as running:
        yield running


class LegacyClient:
    """Requests of the 2025 era as they are on the wire."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._url = url
        self._headers = {"Accept": "application/json, text/event-stream", **(headers or {})}
        response = self.post("initialize", HELLO_2025["params"])
        self.hello = answer_of(response)["result"]
        self._headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]

    def post(self, method: str, params: dict[str, Any]) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx2.post(self._url, json=body, headers=self._headers, timeout=PATIENCE)

    def initialized(self) -> None:
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        httpx2.post(
            self._url, json=body, headers=self._headers, timeout=PATIENCE
        ).raise_for_status()

    @contextlib.contextmanager
    def listening(self, levels: list[str]) -> Iterator[None]:
        """On the stream that is kept open: the levels of log messages that come."""
        with httpx2.stream("GET", self._url, headers=self._headers, timeout=None) as response:

            def listen() -> None:
                lines = (line for line in response.iter_lines() if "notifications/message" in line)
                with contextlib.suppress(httpx2.HTTPError):
                    levels.extend(json.loads(line[6:])["params"]["level"] for line in lines)

            threading.Thread(target=listen, daemon=True).start()
            yield

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = answer_of(self.post(method, params))["result"]
        return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("era", ERAS)
def test_unknown_content_and_fields_are_passed_on(
    era: str, mode: str, server: ServerProcess
) -> None:
    url = f"{server.url}/mcp/{era}-{mode}"
    params = {"name": "future", "arguments": {}}
    modern = rpc(url, "tools/call", params)["result"]
    assert modern.pop("resultType") == "complete"
    stamp = modern["_meta"].pop("io.modelcontextprotocol/serverInfo", None)
    assert stamp is not None
    assert modern == odd.FUTURE
    assert LegacyClient(url).result("tools/call", params) == odd.FUTURE


@pytest.mark.parametrize("era", ERAS)
def test_unknown_fields_of_tools_are_listed(era: str, server: ServerProcess) -> None:
    url = f"{server.url}/mcp/{era}-session"
    listed = rpc(url, "tools/list", {})["result"]
    legacy = LegacyClient(url).result("tools/list", {})
    assert {tool["scent"]["notes"][0] for tool in listed["tools"]} == {"pine"}
    assert legacy["tools"] == listed["tools"]
    assert {"resultType", "ttlMs", "cacheScope"} <= listed.keys()
    if era == "legacy":
        assert not {"resultType"} & legacy.keys()


@pytest.mark.parametrize("era", ERAS)
def test_capabilities_that_are_not_of_mcp_itself_are_announced(
    era: str, server: ServerProcess
) -> None:
    url = f"{server.url}/mcp/{era}-session"
    found = rpc(url, "server/discover", {})["result"]["capabilities"]
    assert {name: found[name] for name in EXTRAS} == EXTRAS
    assert LegacyClient(url).hello["capabilities"]["experimental"] == EXTRAS["experimental"]


def test_what_a_client_says_of_itself_reaches_a_server_that_asks_clients(
    server: ServerProcess,
) -> None:
    tasks = {"io.modelcontextprotocol/tasks": {}}
    declared = {**EXTRAS, "extensions": {**EXTRAS["extensions"], **tasks}}
    url = f"{server.url}/mcp/modern-client"
    params = {"name": "capabilities", "arguments": {}}
    result = rpc(url, "tools/call", params, capabilities=declared)["result"]
    assert result["content"][0]["text"] == str(EXTRAS).replace("'", '"')


def reported(response: httpx2.Response) -> list[tuple[float, float | None, str]]:
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line[:6] == "data: "]
    assert events[-1]["result"]["content"][0]["text"] == "done"
    return [
        (told["progress"], told.get("total"), told["message"])
        for event in events[:-1]
        if (told := event["params"])
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("era", ERAS)
def test_progress_is_passed_on_with_its_own_numbers(
    era: str, mode: str, server: ServerProcess
) -> None:
    """Some may be left out where they come too fast, but never the last."""
    url = f"{server.url}/mcp/{era}-{mode}"
    params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "p"}}
    response = httpx2.post(
        url,
        json=envelope("tools/call", params),
        headers=headers_for("tools/call", params),
        timeout=PATIENCE,
    )
    for told in (reported(response), reported(LegacyClient(url).post("tools/call", params))):
        own = [report for report in told if not report[2].startswith("Calling ")]
        assert own
        assert own == [report for report in odd.REPORTS if report in own]
        assert own[-1] == odd.REPORTS[-1]
        numbers = [progress for progress, _, _ in told]
        assert numbers == sorted(set(numbers))


def test_errors_of_a_server_over_http_keep_their_code_and_data(tmp_path: Path) -> None:
    params = {"name": "test_missing_capability", "arguments": {}}
    with zoo.http_server("conformance") as web:
        entries = {mode: {"url": web.url, "answers": mode} for mode in MODES}
        with host(tmp_path, entries) as running:
            for mode in MODES:
                answer = rpc(f"{running.url}/mcp/{mode}", "tools/call", params)
                assert answer["error"] == {
                    "code": -32021,
                    "message": "Sampling is needed",
                    "data": {"requiredCapabilities": {"sampling": {}}},
                }


LEVEL = "io.modelcontextprotocol/logLevel"


def logged(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines if line.strip()]
    assert "result" in events[-1]
    return [e["params"] for e in events if e.get("method") == "notifications/message"]


def modern_call(url: str, tool: str, **meta: str) -> httpx2.Response:
    params = {"name": tool, "arguments": {}, "_meta": meta}
    body = envelope("tools/call", params)
    return httpx2.post(url, json=body, headers=headers_for("tools/call", params), timeout=PATIENCE)


@pytest.mark.proves("mcp.gateway.logging")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("era", ERAS)
def test_log_messages_reach_the_client_that_made_the_call(
    era: str, mode: str, server: ServerProcess
) -> None:
    url = f"{server.url}/mcp/{era}-{mode}"
    told = logged(modern_call(url, "log", **{LEVEL: "info"}))
    assert [one["level"] for one in told] == ["info", "error"]
    assert SECRET not in str(told)
    if era == "modern":
        assert told[0]["data"]["levels"] == ["info"]
    silent = modern_call(url, "log")  # in 2026, who says no level gets none
    assert "notifications/message" not in silent.text

    client = LegacyClient(url)
    assert client.hello["capabilities"]["logging"] == {}
    params = {"name": "log", "arguments": {}}
    levels = [one["level"] for one in logged(client.post("tools/call", params))]
    assert levels == ["debug", "info", "error"]
    assert client.result("logging/setLevel", {"level": "error"}) == {}
    (told_again,) = logged(client.post("tools/call", params))
    assert told_again["level"] == "error"
    assert "error" in told_again["data"]["levels"]


@pytest.mark.parametrize("era", ERAS)
def test_too_many_log_messages_are_left_out_and_counted(era: str, server: ServerProcess) -> None:
    told = logged(modern_call(f"{server.url}/mcp/{era}-session", "flood", **{LEVEL: "debug"}))
    own = [one["data"] for one in told if one["logger"] == "odd"]
    assert own == sorted(set(own))
    left_out = sum(int(one["data"].split()[0]) for one in told if one["logger"] != "odd")
    assert len(own) + left_out == 5_000


def test_log_messages_of_no_call_go_to_owners_that_have_set_a_level(tmp_path: Path) -> None:
    file = tmp_path / "now"
    odd_server = [str(Path(odd.__file__)), "--legacy"]
    entry = {"command": sys.executable, "args": odd_server, "env": {"LOG_WHEN": str(file)}}
    with (
        host(tmp_path, {"odd": entry}, "--connection-token", TOKEN) as running,
        People(running.url, TOKEN) as people,
        contextlib.ExitStack() as stack,
    ):
        agent = issued(people, role="agent", name="an agent")
        tokens = {"debug": TOKEN, "error": TOKEN, "agent": agent}
        told: dict[str, list[str]] = {name: [] for name in tokens}
        for name, token in tokens.items():
            client = LegacyClient(f"{running.url}/mcp/odd", bearer(token))
            client.result("logging/setLevel", {"level": "error" if name == "error" else "debug"})
            client.initialized()
            stack.enter_context(client.listening(told[name]))
        file.touch()
        wait_for(lambda: len(told["debug"]) == 3 and len(told["error"]) == 1)
    assert told == {"debug": ["debug", "info", "error"], "error": ["error"], "agent": []}
