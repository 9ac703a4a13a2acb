"""A log that is copied to another backend is the same log, in an epoch of its own."""

import pytest
from msgspec.structs import replace

from session_server.log import Batch, Durable, RefusedBecause, StoredSnapshot
from session_server.log.migration import Migrated, UnlikeError, migrate
from session_server.log.protocol import DamagedError, InUseError, OpenError, UrlError
from tests.log.logs import (
    Backend,
    Nats,
    Postgres,
    Sqlite,
    batch,
    damage_entry,
    entries,
    everything,
    refused,
    settled,
    stored,
)

A, B, C, D = "ahp-session:/a", "ahp-session:/b", "ahp-root://", "ahp-session:/d"
WITH_A_SERVER = [
    (Sqlite, Postgres),
    (Postgres, Sqlite),
    (Postgres, Postgres),
    (Sqlite, Nats),
    (Nats, Postgres),
    (Nats, Nats),
]
PAIRS = [
    (Sqlite, Sqlite),
    *(pytest.param(*pair, marks=pytest.mark.slow) for pair in WITH_A_SERVER),
]


def url_of(backend: Backend) -> str:
    if isinstance(backend, Postgres | Nats):
        return backend.url
    assert isinstance(backend, Sqlite)
    return f"sqlite:///{backend.path}"


@pytest.fixture
def made(tmp_path):
    """A backend of a kind, in a folder of its own."""

    def make(kind: type[Backend], name: str) -> Backend:
        (tmp_path / name).mkdir()
        return kind(tmp_path / name)

    return make


async def fill(backend: Backend) -> dict[str, int]:
    """Channels with a past of every kind; where each ends."""
    async with backend.opened() as log:
        *_, a = await stored(log, A, 0, *[b"%d" % n for n in range(2_500)])
        (b,) = await stored(log, B, 0, b"all of it is trimmed")
        lasting = [replace(entry, lasts_until=100 * n) for n, entry in enumerate(entries(*b"1234"))]
        lasting = [replace(entry, data=b"%d" % n) for n, entry in enumerate(lasting)]
        outcome = await settled(log, Batch(C, 0, tuple(lasting)))
        assert isinstance(outcome, Durable)
        c = outcome.seqs[-1]
        for channel, last in ((A, a - 1_000), (B, b), (C, c)):
            await log.save_snapshot(
                StoredSnapshot(channel, last, channel.encode(), outline=b"short")
            )
            await log.trim(channel, last, 50)
        await log.save_snapshot(StoredSnapshot(D, 0, b"before anything"))
        await stored(log, "gone", 0, b"x")
        await log.drop("gone")
    return {A: a, B: b, C: c, D: 0}


@pytest.mark.proves("design.log.migrate")
@pytest.mark.parametrize(("kind", "other"), PAIRS)
async def test_a_copied_log_goes_on_where_the_original_ended(made, kind, other) -> None:
    source, target = made(kind, "source"), made(other, "target")
    ends = await fill(source)
    assert await migrate(url_of(source), url_of(target)) == Migrated(1_003, 4, 4)
    async with source.opened() as old, target.opened() as new:
        assert await everything(new) == await everything(old)
        assert sorted(await new.snapshots()) == sorted(await old.snapshots())
        assert await new.floors() == await old.floors()
        assert new.epoch != old.epoch
        assert new.epoch.first > old.last_seq
        for channel, end in ends.items():
            assert await refused(new, batch(channel, end + 1, b"x")) == RefusedBecause.CONFLICT
            (last,) = await stored(new, channel, end, b"goes on")
            assert last > new.epoch.first
        await new.trim(C, ends[C], 250)
        assert [e.data for e in await everything(new, channels=[C])] == [b"3", b"goes on"]


async def test_a_target_that_is_not_empty_is_left_alone(made) -> None:
    source, target = made(Sqlite, "source"), made(Sqlite, "target")
    await fill(source)
    async with target.opened() as log:
        await stored(log, A, 0, b"mine")
    with pytest.raises(OpenError, match="is not empty"):
        await migrate(url_of(source), url_of(target))
    async with target.opened() as log:
        assert [e.data for e in await everything(log)] == [b"mine"]


async def test_a_log_in_use_or_in_memory_is_not_copied(made) -> None:
    source, target = made(Sqlite, "source"), made(Sqlite, "target")
    async with source.opened():
        with pytest.raises(InUseError):
            await migrate(url_of(source), url_of(target))
    with pytest.raises(UrlError, match="gone with its process"):
        await migrate(url_of(source), "memory:")


async def test_a_damaged_log_is_not_copied(made) -> None:
    source, target = made(Sqlite, "source"), made(Sqlite, "target")
    ends = await fill(source)
    damage_entry(source.path, ends[A])
    with pytest.raises(DamagedError, match=r"ahp-session:/a is damaged: its entry \d+ does not"):
        await migrate(url_of(source), url_of(target))


@pytest.mark.proves("design.log.migrate")
@pytest.mark.parametrize("fault", ["entry", "floor", "lasting"])
async def test_a_copy_that_differs_is_noticed(made, monkeypatch, fault: str) -> None:
    source, target = made(Sqlite, "source"), made(Sqlite, "target")
    await fill(source)
    log_class = type(await (opened := target.opened()).__aenter__())
    await opened.__aexit__(None, None, None)
    adopt, adopt_floors = log_class.adopt, log_class.adopt_floors

    async def bad_adopt(log, pairs):
        first, until = pairs[0]
        changed = {
            "entry": (replace(first, data=b"other"), until),
            "lasting": (first, until + 5),
        }
        await adopt(log, [changed.get(fault, pairs[0]), *pairs[1:]])

    async def bad_floors(log, floors):
        await adopt_floors(log, {} if fault == "floor" else floors)

    monkeypatch.setattr(log_class, "adopt", bad_adopt)
    monkeypatch.setattr(log_class, "adopt_floors", bad_floors)
    with pytest.raises(UnlikeError):
        await migrate(url_of(source), url_of(target))
