"""A session that cannot be read from the log is set aside; everything else goes on."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from session_server.app import create_app
from session_server.host.host import Host
from session_server.host.persistence import maintenance
from session_server.host.recordings import exported, replayed
from session_server.identity.signing_key import SigningKey
from session_server.identity.tokens import Tokens
from session_server.log import Entry
from session_server.log.opening import open_log
from session_server.log.protocol import LogError
from session_server.log.sqlite import schema
from session_server.schemas.errors import StartError, UnreadableSessionError
from session_server.schemas.http import TokenKind
from session_server.schemas.limits import DECISION_LIFETIME_MS
from session_server.schemas.log_entries import CLIENTS_CHANNEL, TokenIssued, TokenRevoked
from session_server.schemas.principals import Principal, Role
from session_server.settings import Settings
from tests.ahp.actions import answer_changed, input_requested, text_question, title_changed
from tests.ahp.client import ROOT
from tests.host.harness import (
    AGENT,
    ANA,
    SESSION,
    Client,
    hosting,
    joined,
    record_of,
    until_trimmed,
    with_session,
)
from tests.host.test_recordings import asked_and_answered, lines
from tests.identity.test_tokens import token
from tests.log.logs import change, damage_entry, damage_snapshot
from tests.log.test_sqlite import overwrite
from tests.waiting import until

pytestmark = pytest.mark.proves("design.log.quarantine")

OTHER = "ahp-session:/2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def store(path: Path) -> str:
    return f"sqlite:///{path}"


async def entries_of(host: Host, uri: str) -> list[Entry]:
    return list(await host.log.read(after=0, limit=10_000, channels=(uri,)))


async def has_no_entries(host: Host) -> bool:
    return not await entries_of(host, SESSION)


async def two_sessions(path: Path, *, snapshot: bool = False) -> list[Entry]:
    """The entries of the one that tests will damage; the other is called Oslo."""
    async with hosting(await open_log(store(path))) as host:
        await asked_and_answered(host)
        ana = await joined(host, ANA, "other", SESSION)
        await ana.call("createSession", OTHER, provider="people")
        await ana.call("subscribe", OTHER)
        await ana.act(title_changed("Oslo"), OTHER)
        if snapshot:
            host.maintenance.take_snapshot(host.sessions[SESSION])
            await ana.act(title_changed("After the snapshot"), SESSION)
        return await entries_of(host, SESSION)


def not_json(path: Path, seq: int) -> None:
    """Not the disk's fault: its checksum is right, or of a time before there were any."""
    change(path, f"UPDATE entries SET data = x'7b', checksum = NULL WHERE seq = {seq}")


def unknown_action(path: Path, seq: int) -> None:
    text = json.dumps({"action": {"type": "session/future"}, "stamp": {"at": 1}})
    data = f"data = CAST('{text}' AS BLOB), checksum = NULL"
    change(path, f"UPDATE entries SET {data} WHERE seq = {seq}")


def opening_gone(path: Path, seq: int) -> None:
    of_channel = f"channel = (SELECT channel FROM entries WHERE seq = {seq})"
    opening = f"(SELECT min(seq) FROM entries WHERE {of_channel})"
    change(path, f"DELETE FROM entries WHERE seq = {opening}")


@pytest.mark.parametrize("damage", [damage_entry, not_json, unknown_action, opening_gone])
async def test_a_damaged_session_is_not_served_and_the_others_are(
    path: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stored = await two_sessions(path)
    damage(path, stored[-3].seq)
    with caplog.at_level(logging.ERROR):
        async with hosting(await open_log(store(path))) as host:
            assert list(host.unreadable) == [SESSION]
            assert list(host.sessions) == [OTHER]
            ana = await joined(host, ANA, "laptop", OTHER, SESSION)
            listed = (await ana.call("listSessions"))["items"]
            assert [item["title"] for item in listed] == ["Oslo"]
            error = await ana.call("subscribe", SESSION)
            assert error["code"] == -32001
            assert error["data"] == {"reason": "unreadable"}
            assert "is damaged and cannot be opened: its entry" in error["message"]
            assert "restore a backup" in error["message"]
            assert (await ana.act(title_changed("Bergen"), OTHER))["action"]["title"] == "Bergen"
            taken = await ana.call("createSession", SESSION, provider="people")
            assert taken["code"] == -32003
    assert f"session {SESSION} is damaged and is not served: its entry" in caplog.text
    assert "Traceback" not in caplog.text
    async with hosting(await open_log(store(path))) as host:
        left = await entries_of(host, SESSION)
        assert len(left) == len(stored) - (damage is opening_gone), "nothing wrote to it"


async def test_a_damaged_session_is_hidden_from_principals_without_access(path: Path) -> None:
    stored = await two_sessions(path)
    damage_entry(path, stored[-1].seq)
    async with hosting(await open_log(store(path))) as host:
        limited = Principal(id="cy", role=Role.OBSERVER, sessions=(OTHER,))
        cy = await joined(host, limited, "tablet")
        error = await cy.call("subscribe", SESSION)
        assert (error["code"], "data" in error) == (-32001, False)


async def test_damage_that_a_snapshot_covers_keeps_no_session_from_being_served(
    path: Path,
) -> None:
    stored = await two_sessions(path, snapshot=True)
    damage_entry(path, stored[2].seq)
    async with hosting(await open_log(store(path))) as host:
        assert host.unreadable == {}
        assert record_of(host).public.summary.title == "After the snapshot"
        text = b"".join(await exported(host, SESSION))
        told = [json.loads(line) for line in text.splitlines()]
        assert told[1]["action"]["trimmed"] is True
        earlier = [entry["action"]["type"] for entry in told[1]["action"]["earlier"]]
        assert earlier == ["private/outcomeRecorded", "session/inputCompleted"]
        assert "damaged" not in told[-1]


async def test_a_damaged_snapshot_is_made_again_from_the_entries(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await two_sessions(path, snapshot=True)
    damage_snapshot(path, SESSION)
    async with hosting(await open_log(store(path))) as host:
        assert host.unreadable == {}
        assert record_of(host).public.summary.title == "After the snapshot"
    assert "does not match its checksum; its entries are read instead" in caplog.text


@pytest.mark.parametrize("damage", ["changed", "gone"])
async def test_without_its_snapshot_a_session_that_was_trimmed_is_damaged(
    path: Path, damage: str
) -> None:
    async with hosting(await open_log(store(path))) as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        channel = host.sessions[SESSION]
        channel.publisher.history.skip(channel.last_seq)
        host.maintenance.take_snapshot(channel)
        await until_trimmed(host)
        await ana.act(title_changed("Bergen"))
    if damage == "gone":
        change(path, "DELETE FROM snapshots")
    else:
        damage_snapshot(path, SESSION)
    async with hosting(await open_log(store(path))) as host:
        reason = "its snapshot is missing" if damage == "gone" else "its snapshot at"
        assert host.unreadable[SESSION].startswith(reason)
        with pytest.raises(UnreadableSessionError):
            await exported(host, SESSION)


async def test_what_is_readable_of_a_damaged_session_can_be_exported(path: Path) -> None:
    stored = await two_sessions(path)
    damage_entry(path, stored[-2].seq)
    async with hosting(await open_log(store(path))) as host:
        first = b"".join(await exported(host, SESSION))
        told = [json.loads(line) for line in first.splitlines()]
        assert told[-1] == {"kind": "end", "entries": len(stored) - 2, "damaged": True}
        assert "private/outcomeRecorded" in [line["action"]["type"] for line in told[1:-1]]
        ana = await joined(host)
        assert await ana.call("disposeSession", SESSION) is None
        assert host.unreadable == {}
        assert await entries_of(host, SESSION) == []
        assert await replayed(host, lines(first)) == SESSION
    async with hosting(await open_log(store(path))) as host:
        assert set(host.sessions) == {SESSION, OTHER}


def is_root_whole(host: Host) -> bool:
    root = host.root.committed
    return root is not None and bool(root.agents) and root.active_sessions == 2


@pytest.mark.parametrize("channel", [ROOT, CLIENTS_CHANNEL])
async def test_a_damaged_channel_of_the_hosts_own_begins_again(
    path: Path, channel: str, caplog: pytest.LogCaptureFixture
) -> None:
    await two_sessions(path)
    async with hosting(await open_log(store(path))) as host:
        seq = (await entries_of(host, channel))[-1].seq
    damage_entry(path, seq)
    for _ in range(2):
        async with hosting(await open_log(store(path))) as host:
            assert host.unreadable == {}
            assert set(host.sessions) == {SESSION, OTHER}
            await joined(host, ANA, "laptop", ROOT)
            await until(lambda: is_root_whole(host))
    assert caplog.text.count(f"{channel} is damaged and begins again empty") == 1


async def test_with_damaged_tokens_a_host_does_not_start(path: Path) -> None:
    """The second entry may be a revocation: without it, the token would work again."""
    async with hosting(await open_log(store(path))) as host:
        for action in (TokenIssued(token=token(id="t")), TokenRevoked(token_id="t")):
            host.write(host.tokens, lambda *_, action=action: (action,))
        await until(lambda: host.tokens.last_seq > 0 and not host.tokens.committed.tokens)
        revoked = host.tokens.last_seq
    damage_entry(path, revoked)
    host = Host(await open_log(store(path)), ())
    with pytest.raises(StartError, match=r"list of issued tokens is damaged: its entry .* doctor"):
        await host.start()
    await host.stop()


async def test_an_application_that_cannot_start_says_why_without_a_traceback(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage in a file too large to be looked through when it is opened."""
    monkeypatch.setattr(schema, "CHECKED_BYTES", 0)
    async with hosting(await open_log(store(path))) as host:
        ana = await with_session(host)
        for _ in range(20):
            await ana.act(title_changed("x" * 400))
    overwrite(path, 4096 * 3, bytes(range(256)) * 160)
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = create_app(store(path), settings=Settings(data_dir=path.parent))
    with pytest.raises(LogError):
        await app({"type": "lifespan", "app": app, "state": {}}, receive, send)
    (failed,) = sent
    assert failed["type"] == "lifespan.startup.failed"
    assert "is damaged: database disk image is malformed" in failed["message"]
    assert "backup" in failed["message"]
    assert "Traceback" not in failed["message"]


async def test_links_to_a_damaged_session_stay(path: Path) -> None:
    stored = await two_sessions(path)
    async with hosting(await open_log(store(path))) as host:
        link = token(id="link", kind=TokenKind.SHARE, sessions=(SESSION,))
        host.write(host.tokens, lambda *_: (TokenIssued(token=link),))
        await host.log.find(())
    damage_entry(path, stored[-1].seq)
    async with hosting(await open_log(store(path))) as host:
        tokens = Tokens(host, SigningKey(key=b"x" * 32))
        tokens.restarted()
        await host.log.find(())
        assert set(host.tokens.committed.tokens) == {"link"}


# What outlives the rest


async def approved(host: Host, agent: Client, ana: Client) -> None:
    """A tool call that Ana lets run."""
    turn = record_of(host).public.active_turn
    call = {"turnId": turn.id, "toolCallId": "c"}
    start = {**call, "toolName": "rm", "displayName": "Remove"}
    await agent.act({"type": "session/toolCallStart", **start})
    await agent.act({"type": "session/toolCallReady", **call, "invocationMessage": "Removing"})
    yes = {**call, "approved": True, "confirmed": "user-action"}
    assert "rejectionReason" not in await ana.act({"type": "session/toolCallConfirmed", **yes})


@pytest.mark.proves("design.log.decisions")
async def test_an_export_has_every_decision_after_thousands_of_keystrokes(path: Path) -> None:
    async with hosting(await open_log(store(path))) as host:
        await asked_and_answered(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(input_requested("long", text_question()))
        ana = await joined(host, ANA, "keyboard", SESSION)
        await approved(host, agent, ana)
        for number in range(2_200):
            ana.dispatch(answer_changed("x" * (number % 40), "long"))
            if number % 200 == 0:
                await ana.call("ping")
        await ana.act(title_changed("The last one"))
        await until_trimmed(host)
        first = b"".join(await exported(host, SESSION))
    opening = json.loads(first.splitlines()[1])["action"]
    assert opening["trimmed"] is True
    outcomes = [e for e in opening["earlier"] if e["action"]["type"] == "private/outcomeRecorded"]
    approvals = [
        e for e in opening["earlier"] if e["action"]["type"] == "session/toolCallConfirmed"
    ]
    assert [e["stamp"]["by"] for e in (*outcomes, *approvals)] == [{"id": "ana", "name": "Ana"}] * 2
    async with hosting() as empty:
        await replayed(empty, lines(first))
        assert b"".join(await exported(empty, SESSION)) == first


@pytest.mark.proves("design.log.decisions")
async def test_decisions_go_when_their_own_time_is_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "AGING_SECONDS", 0.01)
    monkeypatch.setattr(maintenance, "TRIMMED_EVERY_MS", 0)
    async with hosting(await open_log(store(path))) as host:
        await asked_and_answered(host)
        channel = host.sessions[SESSION]
        channel.publisher.history.skip(channel.last_seq)
        host.maintenance.take_snapshot(channel)
        await until_trimmed(host)
        kept = {json.loads(e.data)["action"]["type"] for e in await entries_of(host, SESSION)}
        assert kept == {"session/inputCompleted", "private/outcomeRecorded"}
        monkeypatch.setattr(host.maintenance, "_now", lambda: host.now() + DECISION_LIFETIME_MS)
        await until(lambda: has_no_entries(host))


async def test_no_recording_passes_anything_else_off_as_an_earlier_decision() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        text = b"".join(await exported(host, SESSION))
    header, opening, *rest = text.splitlines()
    told = json.loads(opening)
    told["action"]["earlier"] = [{"action": {"type": "session/ready"}, "stamp": {"at": 1}}]
    wrong = b"\n".join([header, json.dumps(told).encode(), *rest])
    async with hosting() as empty:
        with pytest.raises(Exception, match="earlier entries that are not decisions"):
            await replayed(empty, lines(wrong))
