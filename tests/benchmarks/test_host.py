"""What is measured of a host works, with a handful of everything."""

import shutil

import pytest

from benchmarks import draft, gateway, host, versions
from benchmarks.fanout.peers import MEMORY
from benchmarks.results import Results

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


def measured(results: Results, table: str, row: str) -> dict[str, float]:
    figures = {column: results.find(table, row, column) for column in results.columns(table)}
    return {column: figure.median for column, figure in figures.items() if figure is not None}


def test_clients_come_back_with_a_replay_after_a_crash() -> None:
    results = Results()
    host.reconnects(results, 10)
    found = measured(results, host.RECONNECTS, "10 clients")
    assert found["`reconnect`"] > 0
    assert found["bare WebSocket connects"] > 0


def test_a_longer_session_has_a_larger_snapshot() -> None:
    results = Results()
    host.snapshot(results, 1)
    host.snapshot(results, 20)
    sizes = [
        measured(results, host.SNAPSHOT, row)["size, kB"] for row in results.rows(host.SNAPSHOT)
    ]
    assert sizes[0] < sizes[1]


def test_idle_connections_starts_and_growth_are_measured() -> None:
    results = Results()
    host.idle(results, 50, (MEMORY,))
    host.start(results, sessions=2, actions=1)
    host.growth(results, "grown", others=2, turns=2, age=10, seconds=0.05)
    assert results.columns(host.IDLE) == ["at 50"]
    assert measured(results, host.START, "2 sessions, 1 actions in each")["after a crash"] > 0
    assert measured(results, host.GROWTH, "grown")["CPU per action, µs"] > 0


def test_clients_of_several_versions_are_measured_together() -> None:
    results = Results()
    versions.run(results, rounds=1, seconds=0.05)
    assert results.rows(versions.VERSIONS) == [*versions.CROWDS]
    for row in versions.CROWDS:
        assert measured(results, versions.VERSIONS, row)[versions.COLUMN] > 0


def test_the_number_of_typing_sessions_is_searched_for() -> None:
    results = Results()
    host.typing(results, most=host.TYPING_STEP, seconds=0.2)
    held = measured(results, host.TYPING, "held with p99 < 50 ms")["sessions"]
    assert held in (0, host.TYPING_STEP)


def test_the_gateway_is_measured_next_to_the_direct_call() -> None:
    results = Results()
    gateway.run(results, gateway.CASES[::3], gateway.Effort(calls=gateway.AT_ONCE, rounds=1))
    modes = {
        "HTTP, 2026": ("direct", "bare proxy", "client mode", "session mode"),
        "stdio, 2025": ("direct", "client mode", "session mode"),
    }
    rows = [f"{case}: {mode}" for case, those in modes.items() for mode in those]
    assert results.rows(gateway.GATEWAY) == results.rows(gateway.GATEWAY_AT_ONCE) == rows


def test_one_draft_is_measured_next_to_other_ways_to_write_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draft, "SECONDS_PER_ROUND", 0.001)
    results = Results()
    draft.run(results, lengths=(0, 3))
    assert len(results.rows(draft.DRAFT)) == 3
