"""Streams of events: whole at first, resumed by position, bounded, and ended with a reason."""

import asyncio
import json
import socket
import time
from typing import Any

import pytest

from session_server.host.channels.messages import Message
from session_server.http.streaming import HEARTBEAT, OPENING, EventOutbox
from session_server.schemas.codec import encode
from session_server.schemas.limits import OUTBOX_BYTES
from tests.effort import PATIENCE
from tests.http.sessions import Api, Event, events, numbers, text
from tests.servers import ServerProcess, serving
from tests.waiting import wait_until


def seq(event: Event) -> int:
    return int(event["id"].partition("-")[0])


def test_a_stream_begins_with_a_snapshot_and_goes_on_with_actions(api: Api, session: str) -> None:
    asked = api.ask(session)
    with events(api, f"{session}/events") as stream:
        assert next(stream) == {"retry": "1000"}
        snapshot = next(stream)
        assert snapshot["event"] == "snapshot"
        shown = json.loads(snapshot["data"])
        assert shown["state"]["inputRequests"][0]["id"] == asked["id"]
        assert shown["fromSeq"] == seq(snapshot)
        api.answer(session, asked["id"], "name", text("blue", "draft"))
        action = next(stream)
        assert action["event"] == "action"
        envelope = json.loads(action["data"])
        assert envelope["serverSeq"] == seq(action) > seq(snapshot)
        assert envelope["action"]["answer"]["value"]["value"] == "blue"


@pytest.mark.parametrize("by", ["header", "query"])
def test_a_stream_goes_on_after_the_last_event_that_was_seen(
    api: Api, session: str, by: str
) -> None:
    asked = api.ask(session)
    with events(api, f"{session}/events") as stream:
        next(stream)
        last = next(stream)["id"]
    for number in range(3):
        api.answer(session, asked["id"], "name", text(str(number), "draft"))
    if by == "query":
        options: dict[str, Any] = {"params": {"lastEventId": last}}
    else:
        options = {"headers": {"Last-Event-ID": last}}
    with events(api, f"{session}/events", **options) as stream:
        next(stream)
        replayed = [next(stream) for _ in range(3)]
        assert [event["event"] for event in replayed] == ["action"] * 3
        values = [json.loads(event["data"])["action"]["answer"] for event in replayed]
        assert [value["value"]["value"] for value in values] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "seen", ["{old}", "0", "999999999", "{now}0", "nonsense", "", "-1", "1.5", "9" * 40]
)
def test_a_position_that_is_too_old_or_says_nothing_gets_a_snapshot(api: Api, seen: str) -> None:
    old = int(numbers(api)["position"])
    session = api.post("/v1/sessions", json={}).headers["location"]
    now = int(numbers(api)["position"])
    headers = {"Last-Event-ID": seen.format(old=old, now=now)}
    with events(api, f"{session}/events", headers=headers) as stream:
        next(stream)
        assert next(stream)["event"] == "snapshot"


def test_the_list_begins_whole_and_tells_what_changes(api: Api) -> None:
    kept = api.post("/v1/sessions", json={"title": "Kept"}).json()["resource"]
    with events(api, "/v1/events") as stream:
        next(stream)
        first = next(stream)
        assert first["event"] == "sessions"
        assert kept in {item["resource"] for item in json.loads(first["data"])["items"]}
        made = api.post("/v1/sessions", json={"title": "New"})
        resource, where = made.json()["resource"], made.headers["location"]
        news = (event for event in stream if resource in event["data"])
        added = next(news)
        assert added["event"] == "sessionAdded"
        assert json.loads(added["data"])["summary"]["title"] == "New"
        api.ask(where)
        changed = next(news)
        assert changed["event"] == "sessionSummaryChanged"
        assert json.loads(changed["data"])["session"] == resource
        assert json.loads(changed["data"])["changes"]["status"] == 24
        api.delete(where)
        removed = next(event for event in news if event["event"] == "sessionRemoved")
        assert json.loads(removed["data"])["session"] == resource


def test_a_stream_ends_with_its_session(api: Api, session: str) -> None:
    with events(api, f"{session}/events") as stream:
        next(stream)
        api.delete(session)
        names = [event["event"] for event in stream]
    assert names[-1] == "sessionRemoved"


def test_a_client_that_disconnects_leaves_nothing_behind(api: Api, session: str) -> None:
    asked, before = api.ask(session), numbers(api)
    for _ in range(10):
        with events(api, f"{session}/events") as stream:
            next(stream)
    wait_until(lambda: numbers(api)["connections"] <= before["connections"])
    api.answer(session, asked["id"], "name", text("x", "draft"))
    assert numbers(api)["deliveries_total"] == before["deliveries_total"]


def test_stopping_ends_what_waits_and_says_so() -> None:
    with serving("memory:") as server, Api(server.url) as api:
        session = api.post("/v1/sessions", json={}).headers["location"]
        poll = api.later("GET", f"{session}/requests?wait=60")
        with events(api, "/v1/events") as stream, events(api, f"{session}/events") as other:
            next(stream)
            server.stop()
            *_, last = stream
            *_, also_last = other
        assert last == also_last
        assert last["event"] == "end"
        assert json.loads(last["data"])["code"] == 1012
        assert poll.result(timeout=PATIENCE).json() == {"items": []}
        assert "Cancel" not in "".join(server.output)  # said when the time for stopping is over


@pytest.mark.slow
def test_a_slow_reader_is_disconnected_and_nobody_else_notices(
    server: ServerProcess, api: Api
) -> None:
    session = api.post("/v1/sessions", json={}).headers["location"]
    big = {"kind": "text", "id": "big", "message": "?"}
    asked = api.ask(session, questions=[big])
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(PATIENCE)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(f"GET {session}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = slow.recv(64)
        with events(api, f"{session}/events") as stream:
            next(stream)
            next(stream)
            for number in range(4 * OUTBOX_BYTES // 60_000):
                value = f"{number}:".ljust(60_000, "x")
                api.answer(session, asked["id"], "big", text(value, "draft"))
                answer = json.loads(next(stream)["data"])["action"]["answer"]
                assert answer["value"]["value"] == value
        rest = head + drained(slow)
    assert rest.rstrip().endswith(b"0")  # the last chunk: the answer is complete
    told = rest[rest.rindex(b"event: end") :]
    assert b'"code":4000' in told


def drained(slow: socket.socket) -> bytes:
    pieces, deadline = [b""], time.monotonic() + 30
    while not pieces[-1].endswith(b"0\r\n\r\n"):
        assert time.monotonic() < deadline, "the stream goes on"
        pieces.append(slow.recv(1 << 20))
        if not pieces[-1]:
            break
    return b"".join(pieces)


class AnyHost:
    """What an outbox looks at."""

    position = 7


def outbox(heartbeat: float = 60) -> EventOutbox:
    return EventOutbox(AnyHost(), heartbeat)  # type: ignore[arg-type]


def message(number: int, size: int = 0) -> Message:
    params = {"serverSeq": number, "x": "y" * size}
    return Message(encode({"jsonrpc": "2.0", "method": "action", "params": params}))


async def test_an_event_is_made_once_for_all_who_watch() -> None:
    first, second, sent = outbox(), outbox(), message(3)
    first.send(sent)
    made = sent.event
    second.send(sent)
    assert sent.event is made
    assert made == b'id: 3\nevent: action\ndata: {"serverSeq":3,"x":""}\n\n'


async def test_all_that_is_ready_leaves_in_one_piece() -> None:
    box = outbox()
    for number in range(3):
        box.send(message(number))
    box.finish()
    pieces = [piece async for piece in box.chunks()]
    assert len(pieces) == 1
    assert pieces[0].startswith(OPENING)
    assert pieces[0].count(b"event: action") == 3


async def test_silence_is_filled_with_comments() -> None:
    chunks = outbox(heartbeat=0.01).chunks()
    assert await anext(chunks) == OPENING
    assert await anext(chunks) == HEARTBEAT
    assert await asyncio.wait_for(anext(chunks), PATIENCE) == HEARTBEAT


async def test_a_full_outbox_drops_its_backlog_and_says_why() -> None:
    box = outbox()
    for number in range(7):
        box.send(message(number, OUTBOX_BYTES // 4))
    box.send(message(8))
    pieces = [piece async for piece in box.chunks()]
    assert pieces == [
        b'event: end\ndata: {"code":4000,"reason":"reads too slowly; come back to resume"}\n\n'
    ]


async def test_one_event_may_be_bigger_than_the_outbox() -> None:
    box = outbox()
    box.send(message(1, OUTBOX_BYTES + 1))
    assert len(await anext(box.chunks())) > OUTBOX_BYTES
    box.send(message(2))
    assert b"id: 2" in await anext(box.chunks())
