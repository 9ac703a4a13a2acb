"""Requests of the 2026 era as they are on the wire, and people who answer over HTTP."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx2

from tests.mcp import zoo
from tests.servers import ServerProcess, serving

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
SECONDS = 60.0
TOKEN = "an-owners-token-long-enough"
LEGS = 200

CAN_ASK: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}

HELLO_2025: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test-client", "version": "1"},
    },
}
"""The first message of a client of the 2025 era."""


def envelope(
    method: str,
    params: Mapping[str, Any],
    capabilities: Mapping[str, Any] | None = None,
    client: str = "test-client",
) -> dict[str, Any]:
    meta = {
        f"{META}protocolVersion": VERSION,
        f"{META}clientInfo": {"name": client, "version": "1"},
        f"{META}clientCapabilities": capabilities or {},
        **params.get("_meta", {}),
    }
    body = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": body}


def headers_for(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    named = params.get("name") or params.get("uri")
    return {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        **({"Mcp-Name": str(named)} if named else {}),
    }


def rpc(
    url: str,
    method: str,
    params: Mapping[str, Any],
    *,
    capabilities: Mapping[str, Any] | None = None,
    client: str = "test-client",
    headers: Mapping[str, str] | None = None,
    timeout: float = SECONDS,
) -> dict[str, Any]:
    """One request and its whole answer: `result` or `error`."""
    response = httpx2.post(
        url,
        json=envelope(method, params, capabilities, client),
        headers={**headers_for(method, params), **(headers or {})},
        timeout=timeout,
    )
    return answer_of(response)


def answer_of(response: httpx2.Response) -> dict[str, Any]:
    if response.headers["content-type"].startswith("text/event-stream"):
        events = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        last: dict[str, Any] = json.loads(events[-1])
        return last
    body: dict[str, Any] = response.json()
    return body


def call(url: str, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """A leg of a tool call; `retry` holds what a retry adds."""
    retry = more.pop("retry", {})
    params = {"name": tool, "arguments": dict(arguments or {}), **retry}
    return rpc(url, "tools/call", params, **more)


def finished(
    url: str, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """The whole call, as clients make it: told to come back, it comes back."""
    for _ in range(LEGS):
        answer: dict[str, Any] = call(url, tool, arguments, **more)
        result = answer.get("result", {})
        if result.get("resultType") != "input_required" or "inputRequests" in result:
            return answer
        more["retry"] = {"requestState": result["requestState"]}
    raise TimeoutError("it never ended")


def text(answer: Mapping[str, Any]) -> str:
    said: str = answer["result"]["content"][0]["text"]
    return said


def bearer(token: str = TOKEN, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def issued(people: "People", **what: Any) -> str:
    made = people.http.post("/v1/tokens", json=what).raise_for_status().json()
    return str(made["token"])


class People:
    """The people of a host, all at once."""

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def sessions(self) -> list[str]:
        listed = self.http.get("/v1/sessions").raise_for_status().json()["items"]
        return [summary["resource"] for summary in listed]

    def questions(self, session: str) -> list[dict[str, Any]]:
        response = self.http.get(f"{path_of(session)}/requests")
        if response.status_code == 404:
            return []
        return list(response.raise_for_status().json()["items"])

    def asked(self, session: str, count: int = 1) -> list[dict[str, Any]]:
        """Waits until so many questions are open."""
        found: list[dict[str, Any]] = wait_for(
            lambda: open_ if len(open_ := self.questions(session)) == count else None
        )
        return found

    def answer(
        self, session: str, content: Mapping[str, Any] | None = None, response: str = "accept"
    ) -> None:
        """Answers the one question that is open, or will be."""
        (question,) = self.asked(session)
        self.complete(session, question, content, response)

    def complete(
        self,
        session: str,
        question: Mapping[str, Any],
        values: Mapping[str, Any] | None = None,
        response: str = "accept",
    ) -> None:
        """With those of the values that it asks for."""
        asked = {one["id"] for one in question["request"].get("questions", [])}
        content = {name: value for name, value in (values or {}).items() if name in asked}
        path = f"{path_of(session)}/requests/{quote(question['id'], safe='')}/complete"
        body = {"response": response, **({"content": content} if content else {})}
        self.http.post(path, json=body).raise_for_status()

    def calls(self, session: str) -> list[dict[str, Any]]:
        return list(self.http.get(f"{path_of(session)}/calls").raise_for_status().json()["items"])


def path_of(session: str) -> str:
    return f"/v1/sessions/{quote(session, safe='')}"


class Room:
    """A session of one's own at a gateway, named in the header."""

    def __init__(self, url: str, people: People, name: str) -> None:
        self.url = url
        self.people = people
        self.session = f"ahp-session:/{name}"
        self.headers = {"Session-Server-Session": self.session}

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Any:
        return call(self.url, tool, arguments, headers=self.headers, **more)

    def rpc(self, method: str, params: Mapping[str, Any], **more: Any) -> Any:
        return rpc(self.url, method, params, headers=self.headers, **more)

    def answer(self, content: Mapping[str, Any] | None = None, response: str = "accept") -> None:
        self.people.answer(self.session, content, response)

    def spec(self, *calls: list[Any], **more: Any) -> dict[str, Any]:
        """For a client of the zoo."""
        return {"url": self.url, "headers": self.headers, "calls": list(calls), **more}

    def ended(self) -> dict[str, Any]:
        """The latest call, once it is over."""
        found: dict[str, Any] = wait_for(
            lambda: call if "endedAt" in (call := self.people.calls(self.session)[0]) else None
        )
        return found


def leaving(room: Room, tool: str, arguments: Mapping[str, Any]) -> Callable[[], None]:
    """A client that has asked; called, it is gone without a word."""
    params = {"name": tool, "arguments": dict(arguments)}
    address = httpx2.URL(room.url)
    connection = HTTPConnection(address.host, address.port or 80)
    headers = {**headers_for("tools/call", params), **room.headers}
    connection.request(
        "POST",
        address.path,
        json.dumps(envelope("tools/call", params)),
        {**headers, "Content-Type": "application/json"},
    )
    return connection.close


def wait_for(look: Any, seconds: float = SECONDS) -> Any:
    """What `look` finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise TimeoutError("it never came true")


@contextlib.contextmanager
def host(
    folder: Path,
    servers: Mapping[str, dict[str, Any]],
    *arguments: str,
    store: str = "memory:",
    port: int = 0,
) -> Iterator[ServerProcess]:
    """A host with these MCP servers."""
    config = zoo.mcp_json(folder, dict(servers))
    data = ("--data-dir", str(folder / "data"))
    with serving(store, "--mcp-config", str(config), *data, *arguments, port=port) as server:
        yield server
