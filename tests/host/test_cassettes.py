"""Sessions as files: out, in, and out again the same; without secrets, and without a life."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from session_server.host import cassettes, host as hosts
from session_server.host.cassettes import CassetteError, exported, played, replayed
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.host.performing import NotSavedError, RefusedError, write
from session_server.log import Log
from session_server.log.memory import MemoryLog
from session_server.log.sqlite import SqliteLog
from session_server.schemas.calls import Asked, Call
from session_server.schemas.codec import encode
from session_server.schemas.principals import HOST, Provenance
from session_server.schemas.record import (
    CallFinished,
    CallInputRequired,
    CallSent,
    CallStarted,
    RecordAction,
)
from tests.host.faults import FaultyLog  # noqa: F401
from tests.host.harness import AGENT, ANA, BO, SESSION, Client, hosting, joined, run, with_session

SECRET, STATE = "canary-argument", "canary-state"
PATIENCE = 5.0


async def cassette(host: Host, uri: str = SESSION) -> bytes:
    return b"".join(await exported(host, uri))


async def lines(text: bytes) -> AsyncIterator[bytes]:
    for line in text.splitlines():
        yield line


async def asked_and_answered(host: Host) -> None:
    """A session in which people did all kinds of things."""
    ana = await with_session(host)
    bo = await joined(host, BO, "phone", SESSION)
    agent = await joined(host, AGENT, "agent", SESSION)
    question = {"id": "q", "kind": "text", "message": "Where to?"}
    asking = {"id": "r", "message": "Well?", "questions": [question]}
    await agent.act({"type": "session/inputRequested", "request": asking})
    draft = {"state": "draft", "value": {"kind": "text", "value": "Fj"}}
    change = {"type": "session/inputAnswerChanged", "requestId": "r", "questionId": "q"}
    await bo.act({**change, "answer": draft})
    await ana.act({**change, "answer": {**draft, "state": "submitted"}})
    await ana.act({"type": "session/inputCompleted", "requestId": "r", "response": "accept"})
    await ana.wait_for_action("session/turnComplete")
    await ana.act({"type": "session/titleChanged", "title": "Über­morgen 🚀"})


def call(**fields: Any) -> Call:
    return Call(
        id="c",
        server="cloud",
        method="tools/call",
        params={"name": "deploy", "arguments": {"to": "eu", "token": SECRET}},
        turn_id="t",
        started_at=1,
        private_arguments=("token",),
        **fields,
    )


async def wrote(host: Host, *actions: RecordAction) -> None:
    await write(host, SESSION, lambda *_: actions, by=HOST)


ROUND = CallInputRequired(
    call_id="c",
    leg=0,
    asked=(Asked(key="k", request_id="call:c/0/k", fingerprint="f"),),
    request_state=STATE,
)


@pytest.mark.proves("ux.headless.replay")
@run
async def test_a_cassette_played_back_and_exported_again_is_the_same() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        first = await cassette(host)
    async with hosting() as empty:
        assert await replayed(empty, lines(first)) == SESSION
        assert await cassette(empty) == first
        record = empty.record(SESSION)
        assert record is not None
        assert record.public.summary.title == "Über­morgen 🚀"
        assert [outcome.via for outcome in record.private.outcomes] == [Provenance.PERSON]


@run
async def test_every_entry_keeps_its_marks() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        told = [json.loads(line) for line in (await cassette(host)).splitlines()]
    assert told[0] == {"kind": "cassette", "version": 1, "session": SESSION}
    assert told[-1] == {"kind": "end", "entries": len(told) - 2}
    kinds = [line["action"]["type"] for line in told[1:-1]]
    assert kinds[0] == "private/sessionOpened"
    assert "private/outcomeRecorded" in kinds
    drafted = next(line for line in told if "answer" in line.get("action", {}))
    assert drafted["stamp"]["by"] == {"id": "bo", "name": "Bo"}
    assert drafted["origin"] == {"clientId": "phone", "clientSeq": 1}
    assert "serverSeq" not in str(told)


@pytest.mark.proves("design.calls.secret-doors")
@run
async def test_no_secret_of_a_call_is_on_a_cassette() -> None:
    async with hosting() as host:
        await with_session(host)
        await wrote(host, CallStarted(call=call()), CallSent(call_id="c", leg=0), ROUND)
        text = (await cassette(host)).decode()
        assert "canary" not in text
        assert '"requestState":"sha256:' in text
        assert '"token":"•••"' in text
        await wrote(
            host,
            CallSent(call_id="c", leg=1),
            CallFinished(call_id="c", leg=1, result={"content": [{"text": f"as {SECRET}"}]}),
        )
        assert "canary" not in (await cassette(host)).decode()
        first = await cassette(host)
    async with hosting() as empty:
        await replayed(empty, lines(first))
        assert await cassette(empty) == first


@run
async def test_what_was_open_stays_as_it_was_and_is_never_done() -> None:
    async with hosting() as host:
        ana = await with_session(host, provider="demo")
        started = {"turnId": "t", "message": {"text": "Hi", "origin": {"kind": "user"}}}
        await ana.act({"type": "session/turnStarted", **started})
        await ana.wait_for_action("session/inputRequested")
        await wrote(host, CallStarted(call=call()))
        first = await cassette(host)
    log = MemoryLog()
    async with hosting(log) as empty:
        await replayed(empty, lines(first))
        bo = await joined(empty, BO, "phone", SESSION)
        no = await bo.act(
            {"type": "session/inputCompleted", "requestId": "t:trip", "response": "decline"}
        )
        assert no["rejectionReason"] == "This is a recording; it can only be watched."
        with pytest.raises(RefusedError, match="only be watched"):
            await wrote(empty, CallSent(call_id="c", leg=0))
        assert await cassette(empty) == first
    async with hosting(reopened(log)) as again:
        await asyncio.sleep(0)
        record = again.record(SESSION)
        assert record is not None
        assert record.public.active_turn is not None
        assert record.private.calls["c"].is_open
        assert await cassette(again) == first


def reopened(log: MemoryLog) -> Log:
    """What is in memory outlives its host, as a file does."""
    copy = MemoryLog()
    copy.__dict__.update({k: v for k, v in log.__dict__.items() if k not in copy.__dict__})
    for name in ("_entries", "_channels", "_snapshots", "_floors", "_ids"):
        if hasattr(log, name):
            setattr(copy, name, getattr(log, name))
    return copy
