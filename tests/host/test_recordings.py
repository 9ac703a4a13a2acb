"""Sessions as files: out, in, and out again the same; without secrets, and without a life."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_server.host import recordings
from session_server.host.async_api import write
from session_server.host.channels.channel import ENTRIES_BETWEEN_SNAPSHOTS
from session_server.host.host import Host
from session_server.host.recordings import CassetteError, exported, played, replayed
from session_server.log.opening import open_log
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.codec import encode
from session_server.schemas.errors import CommandError, NotSavedError, RefusedError
from session_server.schemas.limits import ENVELOPES_KEPT
from session_server.schemas.log_entries import SessionOpened
from session_server.schemas.principals import HOST, Provenance
from session_server.schemas.record import (
    Asked,
    Call,
    CallFinished,
    CallInputRequired,
    CallSent,
    CallStarted,
    RecordAction,
)
from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    title_changed,
    turn_started,
)
from tests.host.harness import (
    AGENT,
    ANA,
    BO,
    SESSION,
    hosting,
    joined,
    record_of,
    until_trimmed,
    with_session,
)
from tests.sessions import session

SECRET, STATE = "canary-argument", "canary-state"


async def recording(host: Host, uri: str = SESSION) -> bytes:
    return b"".join(await exported(host, uri))


async def lines(text: bytes) -> AsyncIterator[bytes]:
    for line in text.splitlines():
        yield line


async def asked_and_answered(host: Host) -> None:
    """A session in which people did all kinds of things."""
    ana = await with_session(host)
    bo = await joined(host, BO, "phone", SESSION)
    agent = await joined(host, AGENT, "agent", SESSION)
    await agent.act(input_requested("r", text_question()))
    await bo.act(answer_changed("Fj"))
    await ana.act(answer_changed("Fj", state="submitted"))
    await ana.act(input_completed())
    await ana.wait_for_action("session/turnComplete")
    await ana.act(title_changed("Übermorgen 🚀"))


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


async def test_a_recording_played_back_and_exported_again_is_the_same() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        first = await recording(host)
    async with hosting() as empty:
        assert await replayed(empty, lines(first)) == SESSION
        assert await recording(empty) == first
        record = record_of(empty)
        assert record.public.summary.title == "Übermorgen 🚀"
        assert [outcome.via for outcome in record.private.outcomes] == [Provenance.PERSON]


async def test_every_entry_keeps_its_marks() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        told = [json.loads(line) for line in (await recording(host)).splitlines()]
    assert told[0] == {"kind": "cassette", "version": 1, "session": SESSION}
    assert told[-1] == {"kind": "end", "entries": len(told) - 2}
    kinds = [line["action"]["type"] for line in told[1:-1]]
    assert kinds[0] == "private/sessionOpened"
    assert "private/outcomeRecorded" in kinds
    drafted = next(line for line in told if "answer" in line.get("action", {}))
    assert drafted["stamp"]["by"] == {"id": "bo", "name": "Bo"}
    assert drafted["origin"] == {"clientId": "phone", "clientSeq": 1}
    assert "serverSeq" not in str(told)


@pytest.mark.proves("design.calls.secret-protocols")
async def test_no_secret_of_a_call_is_on_a_recording() -> None:
    async with hosting() as host:
        await with_session(host)
        await wrote(host, CallStarted(call=call()), CallSent(call_id="c", leg=0), ROUND)
        text = (await recording(host)).decode()
        assert "canary" not in text
        assert '"requestState":"sha256:' in text
        assert '"token":"•••"' in text
        await wrote(
            host,
            CallSent(call_id="c", leg=1),
            CallFinished(call_id="c", leg=1, result={"content": [{"text": f"as {SECRET}"}]}),
        )
        assert "canary" not in (await recording(host)).decode()
        first = await recording(host)
    async with hosting() as empty:
        await replayed(empty, lines(first))
        assert await recording(empty) == first


async def test_what_was_open_stays_as_it_was_and_is_never_done(tmp_path: Path) -> None:
    async with hosting() as host:
        ana = await with_session(host, provider="demo")
        await ana.act(turn_started())
        await ana.wait_for_action("session/inputRequested")
        await wrote(host, CallStarted(call=call()))
        first = await recording(host)
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with hosting(await open_log(store)) as empty:
        await replayed(empty, lines(first))
        bo = await joined(empty, BO, "phone", SESSION)
        no = await bo.act(input_completed("t:trip", "decline"))
        assert no["rejectionReason"] == "This is a recording; it can only be watched."
        with pytest.raises(RefusedError, match="only be watched"):
            await wrote(empty, CallSent(call_id="c", leg=0))
        # Clients can say why: it is in the state that they see, and not in what is exported.
        played_back = record_of(empty)
        assert played_back.public.meta == {"recording": True}
        assert played_back.public.summary.project == recordings.RECORDINGS
        assert await recording(empty) == first
    async with hosting(await open_log(store)) as again:
        ana = await joined(again, ANA, "laptop", SESSION)
        await ana.call("ping")
        record = record_of(again)
        assert record.public.active_turn is not None
        assert record.private.calls["c"].is_open
        assert await recording(again) == first
        assert await ana.call("disposeSession", SESSION) is None
        await replayed(again, lines(first))
        assert await recording(again) == first


async def test_a_session_whose_beginning_is_forgotten_opens_as_it_was_then() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        number = ENVELOPES_KEPT + ENTRIES_BETWEEN_SNAPSHOTS
        await wrote(host, *(TitleChanged(title=f"Title {n}") for n in range(number)))
        await until_trimmed(host)
        await wrote(host, TitleChanged(title="The last one"))
        first = await recording(host)
        told = [json.loads(line) for line in first.splitlines()]
        assert told[1]["action"]["trimmed"] is True
        assert told[1]["action"]["record"]["public"]["summary"]["title"].startswith("Title")
        outcomes = told[1]["action"]["record"]["private"]["outcomes"]
        assert [outcome["response"] for outcome in outcomes] == ["accept"]
    async with hosting() as empty:
        await replayed(empty, lines(first))
        assert await recording(empty) == first
        assert record_of(empty).public.summary.title == "The last one"
        empty.maintenance.take_snapshot(empty.sessions[SESSION])
        assert [s.channel for s in await empty.log.snapshots()] == []
        assert await recording(empty) == first


async def test_a_recording_can_be_watched_while_it_plays() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        first = await recording(host)
    feed: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def fed() -> AsyncIterator[bytes]:
        while (line := await feed.get()) is not None:
            yield line

    async with hosting() as empty:
        root = await joined(empty, ANA, "wall", "ahp-root://")
        playing = asyncio.create_task(played(empty, fed()))
        header, opening, *rest = first.splitlines()
        feed.put_nowait(header)
        feed.put_nowait(opening)
        await root.wait_for(lambda frame: frame.get("method") == "root/sessionAdded")
        bo = await joined(empty, BO, "phone", SESSION)
        for line in rest:
            feed.put_nowait(line)
        done = await bo.wait_for_action("session/inputCompleted")
        assert done["_meta"]["by"] == {"id": "ana", "name": "Ana"}
        feed.put_nowait(None)
        assert await playing == SESSION
        news = [f for f in root.received if f.get("method") == "root/sessionSummaryChanged"]
        assert any(f["params"]["changes"].get("status") == 24 for f in news)
        assert await recording(empty) == first
        assert empty.counts.outcomes == {}


async def test_a_session_that_is_there_is_not_played_over() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        first = await recording(host)
        for play in (replayed, played):
            with pytest.raises(CommandError, match="There is a session"):
                await play(host, lines(first))
        assert await recording(host) == first


HEADER = b'{"kind":"cassette","version":1,"session":"ahp-session:/1"}'
END = b'{"kind":"end","entries":1}'
STAMP = b'"stamp":{"at":1}'
READY = b'{"kind":"entry","action":{"type":"session/ready"},%s}' % STAMP


def opening(resource: str = SESSION) -> bytes:
    record = session()
    summary = msgspec.structs.replace(record.public.summary, resource=resource)
    public = msgspec.structs.replace(record.public, summary=summary)
    action = SessionOpened(record=msgspec.structs.replace(record, public=public))
    return b'{"kind":"entry","action":%s,%s}' % (encode(action), STAMP)


ROOTED = (
    b'{"kind":"entry","action":{"type":"root/activeSessionsChanged","activeSessions":1},%s}' % STAMP
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ([], "cut off"),
        ([HEADER], "cut off"),
        ([HEADER, opening()], "cut off"),
        ([b"nonsense"], "Line 1 cannot be read"),
        ([b'{"kind":"cassette","version":2,"session":"x:/1"}'], "reads version 1"),
        ([HEADER, HEADER], "Line 2 is a second header"),
        ([opening()], "Line 1 comes before the header"),
        ([HEADER, READY], "Line 2 comes before the session is opened"),
        ([HEADER, opening("ahp-session:/2")], "opens another session"),
        ([HEADER, opening(), opening()], "Line 3 is not of a session"),
        ([HEADER, opening(), ROOTED], "Line 3 is not of a session"),
        ([HEADER, opening(), READY, END], "says that there are 1 entries, and there are 2"),
        ([HEADER, END], "and there are 0"),
        ([HEADER, opening(), END, READY], "Line 4 comes after the end"),
    ],
)
async def test_an_invalid_recording_is_refused_whole(text: list[bytes], reason: str) -> None:
    async with hosting() as host:
        with pytest.raises(CassetteError, match=reason):
            await replayed(host, lines(b"\n".join(text)))
        assert host.sessions == {}
        assert await host.log.read(after=0, limit=10, channels=(SESSION,)) == []
        assert await replayed(host, lines(b"\n".join([HEADER, opening(), END]))) == SESSION


async def test_a_recording_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        entries = len(await host.log.read(after=0, limit=100, channels=(SESSION,)))
        monkeypatch.setattr(recordings, "CASSETTE_ENTRIES", entries)
        assert await recording(host)
        monkeypatch.setattr(recordings, "CASSETTE_ENTRIES", 3)
        with pytest.raises(CommandError, match="more than 3 entries"):
            await recording(host)
        text = b"\n".join([HEADER, opening(), READY, READY, READY])
        with pytest.raises(CassetteError, match="at most 3 entries"):
            await replayed(host, lines(text))


async def test_a_session_that_is_not_there_has_no_recording() -> None:
    async with hosting() as host:
        with pytest.raises(CommandError, match="There is no session"):
            await recording(host)


async def test_a_recording_that_cannot_be_saved_leaves_nothing() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        first = await recording(host)
    async with hosting() as empty:
        await empty.log.close()
        with pytest.raises(NotSavedError):
            await replayed(empty, lines(first))
        assert SESSION not in empty.sessions
        with pytest.raises(NotSavedError):
            await played(empty, lines(first))
