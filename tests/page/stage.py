"""The other side of the page: sessions, turns and questions, created as an agent.

It speaks plain AHP over a socket of its own, with a token of the role `agent`.
"""

import contextlib
import json
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any

from websockets.sync.client import connect

from tests.servers import ServerProcess

DEADLINE = 20
ROOT = "ahp-root://"


def http(method: str, url: str, body: Mapping[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Stage:
    def __init__(self, server: ServerProcess) -> None:
        self.url = server.url
        wanted = {"name": "Stage", "role": "agent"}
        token = http("POST", f"{self.url}/v1/tokens", wanted)["token"]
        self._open = contextlib.ExitStack()
        address = f"{server.ahp}?tkn={token}"
        self._socket = self._open.enter_context(
            connect(address, max_size=None, open_timeout=DEADLINE)
        )
        self._seq = 0
        self._ids = 0
        self._call("initialize", protocolVersions=["0.3.0"], clientId=f"stage-{uuid.uuid4()}")

    def close(self) -> None:
        self._open.close()

    def sent(self, session: str) -> Any:
        """What the asker of a session's form receives."""
        return http("GET", f"{self.url}/v1/sessions/{session}/requests/r?wait=10")["content"]

    def session(self, name: str, title: str | None = None, provider: str = "scene") -> str:
        uri = f"ahp-session:/{name}"
        wanted = {"resource": uri, "title": title or name, "provider": provider}
        http("POST", f"{self.url}/v1/sessions", wanted)
        self.joins(uri)
        return uri

    def form(
        self, session: str, *questions: Mapping[str, Any], title: str | None = None, **more: Any
    ) -> str:
        """A session with a turn in which these questions are asked."""
        uri = self.session(session, title)
        self.begins(uri)
        self.asks(uri, *questions, **more)
        return uri

    def joins(self, uri: str) -> None:
        self._call("subscribe", channel=uri)

    def act(self, uri: str, kind: str, **fields: Any) -> None:
        """Says something and waits until the host has taken it."""
        self._seq += 1
        seq = self._seq
        action = {"type": f"session/{kind}", **fields}
        self._send("dispatchAction", {"channel": uri, "clientSeq": seq, "action": action})
        while True:
            frame = self._next()
            params = frame.get("params", {})
            if params.get("origin", {}).get("clientSeq") == seq:
                assert "rejectionReason" not in params, params["rejectionReason"]
                return

    # Turns

    def begins(self, uri: str, turn: str = "t", text: str = "Do something") -> None:
        self.act(
            uri, "turnStarted", turnId=turn, message={"text": text, "origin": {"kind": "user"}}
        )

    def says(self, uri: str, text: str, turn: str = "t", kind: str = "markdown") -> None:
        part = {"kind": kind, "id": str(uuid.uuid4()), "content": text}
        self.act(uri, "responsePart", turnId=turn, part=part)

    def ends(self, uri: str, turn: str = "t") -> None:
        self.act(uri, "turnComplete", turnId=turn)

    def asks(self, uri: str, *questions: Mapping[str, Any], name: str = "r", **more: Any) -> None:
        request = {"id": name, "message": "Some questions", **more}
        if questions:
            request["questions"] = list(questions)
        self.act(uri, "inputRequested", request=request)

    def tool(self, uri: str, call: str, turn: str = "t", **ready: Any) -> None:
        on_call = {"turnId": turn, "toolCallId": call}
        name = ready.pop("name", "run_command")
        shown = ready.pop("shown", name)
        self.act(uri, "toolCallStart", **on_call, toolName=name, displayName=shown)
        self.act(uri, "toolCallReady", **on_call, **{"invocationMessage": "Run it", **ready})

    def tool_done(self, uri: str, call: str, turn: str = "t", **more: Any) -> None:
        confirm = more.pop("requiresResultConfirmation", None)
        extra = {} if confirm is None else {"requiresResultConfirmation": confirm}
        result = {"success": True, "pastTenseMessage": "Ran it", **more}
        self.act(uri, "toolCallComplete", turnId=turn, toolCallId=call, result=result, **extra)

    # The wire

    def _call(self, method: str, **params: Any) -> Any:
        self._ids += 1
        number = self._ids
        self._send(method, {"channel": ROOT, **params}, number)
        while True:
            frame = self._next()
            if frame.get("id") == number:
                assert "error" not in frame, frame["error"]
                return frame["result"]

    def _send(self, method: str, params: Mapping[str, Any], number: int | None = None) -> None:
        frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            frame["id"] = number
        self._socket.send(json.dumps(frame))

    def _next(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self._socket.recv(timeout=DEADLINE))
        return frame


def text(name: str = "name", **more: Any) -> dict[str, Any]:
    return {**_about(name, f"Your {name}?"), "kind": "text", **more}


def one_of(name: str, *labels: str, **more: Any) -> dict[str, Any]:
    options = [{"id": label.lower(), "label": label} for label in labels]
    return {**_about(name, f"Which {name}?"), "kind": "single-select", "options": options, **more}


def many_of(name: str, *labels: str, **more: Any) -> dict[str, Any]:
    return {**one_of(name, *labels), "kind": "multi-select", **more}


def yes_no(name: str, **more: Any) -> dict[str, Any]:
    return {**_about(name, f"{name}?"), "kind": "boolean", **more}


def whole(name: str, **more: Any) -> dict[str, Any]:
    return {**_about(name, f"{name}?"), "kind": "integer", **more}


def _about(name: str, message: str) -> dict[str, Any]:
    return {"id": name, "title": name.capitalize(), "message": message}
