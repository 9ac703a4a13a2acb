"""Using the server over HTTP as a program would."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from tests.servers import ServerProcess

DEADLINE = 20.0

REGION = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"], "title": "Region"},
        "copies": {"type": "integer", "minimum": 1, "default": 3},
    },
    "required": ["region"],
}

QUESTIONS = [
    {"kind": "text", "id": "name", "message": "What is it called?", "required": True},
    {"kind": "boolean", "id": "sure", "message": "Are you sure?"},
]


class Api(httpx2.Client):
    def __init__(self, url: str, **options: Any) -> None:
        # A connection that was kept may be closed by the server just when it is used again.
        limits = httpx2.Limits(max_keepalive_connections=0)
        super().__init__(base_url=url, timeout=DEADLINE, limits=limits, **options)

    def ask(self, session: str, **body: Any) -> dict[str, Any]:
        asked = self.post(f"{session}/requests", json=body or {"questions": QUESTIONS})
        assert asked.status_code == 201, asked.text
        return asked.json()

    def answer(self, session: str, request: str, question: str, answer: Any) -> httpx2.Response:
        return self.put(f"{session}/requests/{request}/answers/{question}", json=answer)

    def complete(self, session: str, request: str, **body: Any) -> httpx2.Response:
        return self.post(f"{session}/requests/{request}/complete", json=body)

    def later(self, method: str, path: str, **options: Any) -> "Future[httpx2.Response]":
        """A request that waits, in a thread of its own; it has left when this returns."""
        future: Future[httpx2.Response] = Future()
        has_left = threading.Event()

        def trace(step: str, _: Any) -> None:
            if step == "http11.send_request_body.complete":
                has_left.set()

        def send() -> None:
            try:
                with Api(str(self.base_url)) as own:
                    asked = own.request(method, path, extensions={"trace": trace}, **options)
                    future.set_result(asked)
            except Exception as error:  # noqa: BLE001 - handed on to whoever waits
                future.set_exception(error)

        threading.Thread(target=send, daemon=True).start()
        assert has_left.wait(DEADLINE)
        return future


@contextlib.contextmanager
def polling(server: ServerProcess, path: str) -> Iterator[None]:
    """A long poll on a connection that is cut in the end, as that of a killed process."""
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        head = f"GET {path}?wait=60 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
        line.sendall(head.encode())
        yield
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def text(value: str, state: str = "submitted") -> dict[str, Any]:
    return {"state": state, "value": {"kind": "text", "value": value}}


class Event(dict[str, str]):
    """One event of a stream: `id`, `event`, `data`; comments are under the empty name."""


@contextlib.contextmanager
def events(api: Api, path: str, **options: Any) -> Iterator[Iterator[Event]]:
    with api.stream("GET", path, **options) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield parsed(response.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    event = Event()
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")
        elif event:
            yield event
            event = Event()


Numbers = dict[str, float]


def numbers(api: Api) -> Numbers:
    page = api.get("/metrics")
    assert page.status_code == 200
    found: Numbers = {}
    for family in text_string_to_metric_families(page.text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sample.labels.items())
            name = sample.name.removeprefix("session_server_")
            found[f"{name}{{{labels}}}" if labels else name] = sample.value
    return found
