"""What only the log over JetStream has: its stream, its claim, several nodes on one stream."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from nats.aio.msg import Msg

from session_server.log import Durable, RefusedBecause, StoredSnapshot, Unknown
from session_server.log.nats import NatsLog, servers, tail
from session_server.log.nats.claim import Membership
from session_server.log.nats.diagnostics import examined_server
from session_server.log.nats.messages import content_of, token_of
from session_server.log.nats.servers import Publication
from session_server.log.nats.tail import EXPECTED
from session_server.log.protocol import DamagedError, FailedError, OpenError
from tests.log.logs import (
    Nats,
    NatsShared,
    batch,
    everything,
    following,
    refused,
    settled,
    stored,
)
from tests.nats import own_server, shared_server
from tests.waiting import until

pytestmark = pytest.mark.slow

A, B = "ahp-session:/a", "ahp-session:/b"
CONFLICT = RefusedBecause.CONFLICT

NO_LEADER = b'{"error": {"err_code": 10008, "description": "no leader"}}'
FULL = b'{"error": {"err_code": 10023, "description": "insufficient resources"}}'
WRONG_LAST = b'{"error": {"err_code": 10164, "description": "wrong last sequence"}}'


async def state_of(log: NatsLog) -> dict[str, int]:
    """How many messages each subject has."""
    stream = log._address.stream
    question = {"subjects_filter": ">"}
    info = await log._servers.api(f"STREAM.INFO.{stream}", question)
    return info["state"].get("subjects", {})


# Its stream


async def test_a_stream_with_fewer_replicas_than_configured_is_refused(tmp_path) -> None:
    backend = Nats(tmp_path)
    async with backend.opened():
        pass
    with pytest.raises(OpenError, match=r"has 1 replica\(s\), and 3 are configured"):
        await NatsLog.open(backend.url.replace("replicas=1", "replicas=3"))


async def test_a_single_server_cannot_keep_three_replicas(tmp_path) -> None:
    with pytest.raises(OpenError, match=r"a single server can keep only replicas=1"):
        await NatsLog.open(Nats(tmp_path).url.replace("replicas=1", "replicas=3"))


async def test_a_stream_that_forgets_by_itself_is_refused(tmp_path) -> None:
    backend = Nats(tmp_path)
    async with backend.opened() as log:
        stream = log._address.stream
        config = (await log._servers.api(f"STREAM.INFO.{stream}"))["config"]
        config["max_age"] = 3_600_000_000_000
        assert "error" not in await log._servers.api(f"STREAM.UPDATE.{stream}", config)
    with pytest.raises(DamagedError, match="max_age = 3600000000000, and a log needs 0"):
        await backend.open()


async def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_server.log.nats.servers.OPENING_SECONDS", 0.5)
    with pytest.raises(OpenError, match=r"nats://user@127\.0\.0\.1:1, stream x cannot be opened"):
        await NatsLog.open("nats://user:secret@127.0.0.1:1?stream=x")


async def test_a_channels_name_may_hold_anything(tmp_path) -> None:
    channels = ["a.b", "*", ">", "a b", "ü\U0001f600", "x" * 500, "%2E", "a\0b", ""]
    assert len({token_of(channel) for channel in channels}) == len(channels)
    async with Nats(tmp_path).opened() as log:
        for channel in channels[:-1]:
            await stored(log, channel, 0, channel.encode())
        found = await everything(log)
        assert [(e.channel, e.data) for e in found] == [(c, c.encode()) for c in channels[:-1]]


async def test_what_is_larger_than_a_message_is_stored_in_several(tmp_path) -> None:
    async with Nats(tmp_path).opened() as log:
        datas = [b"a" * 700_000, b"b" * 2_500_000, b"", b"c"]
        *_, last = await stored(log, A, 0, *datas)
        assert (await state_of(log))[f"{log._address.stream}.entries.{token_of(A)}"] > 1
        await log.save_snapshot(StoredSnapshot(A, last, b"s" * 3_000_000))
        assert [e.data for e in await everything(log)] == datas
        log._tail._recent.clear()
        assert [e.data for e in await everything(log)] == datas
        assert await log.snapshots() == [StoredSnapshot(A, last, b"s" * 3_000_000)]


async def test_what_is_too_large_for_the_servers_is_refused(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "PARTS_AT_MOST", 2)
    async with Nats(tmp_path).opened() as log:
        assert await refused(log, batch(A, 0, b"x" * 3_200_000)) == RefusedBecause.BROKEN
        await stored(log, A, 0, b"y")


async def test_a_damaged_entry_is_marked_and_keeps_no_other_from_being_read(tmp_path) -> None:
    backend = NatsShared(tmp_path)
    async with backend.opened() as log, backend.opened() as other:
        await stored(log, A, 0, b"1", b"2")
        await stored(log, B, 0, b"3")
        await until(lambda: other.last_seq == log.last_seq)
        for one in (log, other):
            message = next(iter(one._tail._recent.values()))
            assert content_of(message.body).data == b"12"
            damaged = message._replace(body=message.body[:-1] + b"!")
            one._tail._recent[message.stream_seq] = damaged
            found = await everything(one)
            assert [(e.data, e.is_intact) for e in found] == [
                (b"1", True),
                (b"", False),
                (b"3", True),
            ]


async def test_trimming_removes_messages_but_for_the_last(tmp_path) -> None:
    backend = Nats(tmp_path)
    async with backend.opened() as log:
        last = 0
        for n in range(50):
            (last,) = await stored(log, A, last, b"%d" % n)
        subject = f"{log._address.stream}.entries.{token_of(A)}"
        await log.save_snapshot(StoredSnapshot(A, last, b"all"))
        assert (await state_of(log))[subject] == 50
        await log.trim(A, last)
        assert (await state_of(log))[subject] == 1
        await log.drop(A)
        assert (await state_of(log))[subject] == 1


# Who has it open


async def test_a_log_that_was_taken_over_stores_nothing_more(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was cut off when the other one asked whether it is there."""
    backend = Nats(tmp_path)
    async with backend.opened() as old:
        (last,) = await stored(old, A, 0, b"x")

        async def gone(self: Membership, name: str) -> bool:
            return False

        monkeypatch.setattr(Membership, "_is_there", gone)
        async with backend.opened() as new:
            await stored(new, A, last, b"y")
            await until(lambda: old._tail.fault is not None)
            assert await refused(old, batch(B, 0, b"z")) == RefusedBecause.BROKEN
            with pytest.raises(FailedError, match="taken this log over"):
                await old.drop(A)
            assert [e.data for e in await everything(new)] == [b"x", b"y"]


@pytest.mark.parametrize("data", [b"x", b"x" * 3_000_000], ids=["one message", "several"])
async def test_what_a_replaced_leader_has_stored_is_durable_although_it_said_otherwise(
    tmp_path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """Such a leader answers like one that did nothing; what is sent again meets itself."""
    async with Nats(tmp_path).opened() as log:
        answered(log, monkeypatch, [NO_LEADER])
        (first,) = await stored(log, A, 0, data)
        (second,) = await stored(log, A, first, b"y")
        assert [(e.seq, e.data) for e in await everything(log)] == [(first, data), (second, b"y")]


UNREACHABLE = FailedError(RefusedBecause.BROKEN, "cannot be reached")


@pytest.mark.parametrize(
    "then", [NO_LEADER, FULL, UNREACHABLE], ids=["no leader", "full", "unreachable"]
)
async def test_what_may_have_been_stored_by_a_replaced_leader_is_in_doubt(
    tmp_path, monkeypatch: pytest.MonkeyPatch, then: bytes | FailedError
) -> None:
    async with Nats(tmp_path).opened() as log:
        monkeypatch.setattr(servers, "PATIENCE_SECONDS", 0.2)
        await in_doubt(log, monkeypatch, [NO_LEADER, *[then] * 20])


async def test_what_meets_a_newer_message_and_then_no_server_is_in_doubt(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Nats(tmp_path).opened() as log:
        await in_doubt(log, monkeypatch, [NO_LEADER, WRONG_LAST], mark=UNREACHABLE)


async def in_doubt(
    log: NatsLog,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[bytes | FailedError],
    mark: FailedError | None = None,
) -> None:
    answered(log, monkeypatch, answers, mark)
    wanted = batch(A, 0, b"x")
    assert isinstance(await settled(log, wanted), Unknown)
    monkeypatch.undo()
    assert list(await log.find([entry.id for entry in wanted.entries])) == [wanted.entries[0].id]
    assert [e.data for e in await everything(log)] == [b"x"]


def answered(
    log: NatsLog,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[bytes | FailedError],
    mark: FailedError | None = None,
) -> None:
    """The first batch is stored, whatever is answered to it and when it is sent again."""
    ask, is_stored = log._servers.ask, False

    async def ask_leader(publications: Sequence[Publication], **options: Any) -> list[Msg]:
        nonlocal is_stored
        if EXPECTED not in publications[0].headers:
            if mark is not None and is_stored and publications[0].subject == log._subjects.marks:
                raise mark
            return await ask(publications, **options)
        answer = answers.pop(0) if answers else None
        if answer is None or not is_stored:
            is_stored = True
            messages: list[Msg] = await ask(publications, **options)
            if answer is None:
                return messages
        if isinstance(answer, FailedError):
            raise answer
        return [Msg(log._servers._client, data=answer)]

    monkeypatch.setattr(log._servers, "ask", ask_leader)


# Several nodes


async def test_a_node_follows_what_others_write_trim_and_drop(tmp_path) -> None:
    backend = NatsShared(tmp_path)
    async with backend.opened() as one, backend.opened() as other:
        first, last = await stored(one, A, 0, b"1", b"2")
        assert [e.data for e in await following(other, 0, 2)] == [b"1", b"2"]
        (last,) = await stored(other, A, last, b"3")
        await other.save_snapshot(StoredSnapshot(A, last, b"all"))
        await other.trim(A, first)
        await until(lambda: one._index.position == other._index.position)
        assert await one.floors() == {A: first}
        assert [e.data for e in await everything(one)] == [b"2", b"3"]
        assert await one.snapshots() == [StoredSnapshot(A, last, b"all")]
        await one.drop(A)
        await until(lambda: one._index.position == other._index.position)
        assert await everything(other) == []
        assert await other.snapshots() == []
        assert await refused(other, batch(A, last, b"x")) == CONFLICT
        await stored(other, A, 0, b"again")


async def test_an_older_snapshot_of_a_slower_node_does_not_replace_a_newer_one(tmp_path) -> None:
    backend = NatsShared(tmp_path)
    async with backend.opened() as one, backend.opened() as other:
        first, last = await stored(one, A, 0, b"1", b"2")
        await until(lambda: other.last_seq == last)
        await asyncio.gather(
            one.save_snapshot(StoredSnapshot(A, last, b"newer")),
            other.save_snapshot(StoredSnapshot(A, first, b"older")),
        )
        await until(lambda: one._index.position == other._index.position)
        for node in (one, other):
            assert await node.snapshots() == [StoredSnapshot(A, last, b"newer")]


async def test_a_channel_whose_trace_has_expired_begins_anew(tmp_path) -> None:
    """A node knows the end of a subject from a message that is gone by now."""
    async with Nats(tmp_path).opened() as log:
        await stored(log, A, 0, b"1")
        await log.drop(A)
        stream = log._address.stream
        purge = {"filter": f"{stream}.entries.{token_of(A)}"}
        await log._servers.api(f"STREAM.PURGE.{stream}", purge)
        await stored(log, A, 0, b"2")
        assert [e.data for e in await everything(log)] == [b"2"]


# Lost history


@pytest.mark.proves("design.log.epoch")
async def test_a_stream_that_was_deleted_stops_the_log_until_the_host_is_restarted(
    tmp_path,
) -> None:
    backend = Nats(tmp_path)
    async with backend.opened() as log:
        (last,) = await stored(log, A, 0, b"lost")
        epoch = log.epoch
        stream = log._address.stream
        config = (await log._servers.api(f"STREAM.INFO.{stream}"))["config"]
        await log._servers.api(f"STREAM.DELETE.{stream}")
        await log._servers.api(f"STREAM.CREATE.{stream}", config)
        outcome = await settled(log, batch(A, last, b"x"))
        assert not isinstance(outcome, Durable)
        log._tail._catch_up_to(0)
        await until(lambda: log._tail.fault is not None)
        assert await refused(log, batch(B, 0, b"x")) == RefusedBecause.BROKEN
    async with backend.opened() as log:
        assert log.epoch != epoch
        assert log.epoch.first > last
        assert await everything(log) == []


async def test_a_foreign_message_in_the_stream_harms_nobody(tmp_path) -> None:
    backend = Nats(tmp_path)
    async with backend.opened() as log:
        subject = f"{log._address.stream}.marks"
        await log._servers.publish([Publication(subject, b"not ours")])
        await stored(log, A, 0, b"x")
    async with backend.opened() as log:
        assert [e.data for e in await everything(log)] == [b"x"]


def test_the_server_is_recent_enough() -> None:
    version = shared_server().monitored("varz")["version"]
    assert tuple(int(part) for part in version.split(".")[:2]) >= (2, 12)


async def test_a_server_without_jetstream_is_explained() -> None:
    with own_server(has_jetstream=False) as server, pytest.raises(OpenError, match="JetStream"):
        await NatsLog.open(server.url())


# What `doctor` looks at


async def test_doctor_warns_unless_servers_sync_before_they_acknowledge(tmp_path) -> None:
    async with Nats(tmp_path).opened():
        pass
    monitor = f"&monitor=http://127.0.0.1:{shared_server().monitor_port}"
    facts = await examined_server(Nats(tmp_path).url + monitor)
    warned = [fact for fact in facts if "acknowledges before its disk" in fact.text]
    assert len(warned) == 1
    assert "sync_interval: always" in warned[0].advice
    unseen = await examined_server(Nats(tmp_path).url)
    assert [f for f in unseen if "cannot be seen" in f.text and "monitor=" in f.advice]
    with own_server(sync="always") as server:
        url = server.url(monitor=f"http://127.0.0.1:{server.monitor_port}")
        facts = await examined_server(url)
        assert any("not there yet" in fact.text for fact in facts)
        assert not [fact for fact in facts if fact.advice]


async def test_doctor_names_a_monitor_that_does_not_answer(tmp_path) -> None:
    facts = await examined_server(Nats(tmp_path).url + "&monitor=http://127.0.0.1:1")
    assert any("http://127.0.0.1:1 does not answer" in fact.text for fact in facts)
