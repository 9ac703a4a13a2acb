"""Which nodes live, and what each of them has, as the others know it."""

import asyncio
from collections.abc import Callable

import pytest

from session_server.host.nodes import BEATS_PER_LEASE, GATHERED_SECONDS, KEPT_PER_NODE, Nodes
from session_server.log.memory import MemoryLog
from session_server.log.protocol import MESSAGE_BYTES
from tests.host.manual_clock import ManualClock

LEASE = 10.0
PAUSE = LEASE / BEATS_PER_LEASE


class Network(MemoryLog):
    """Of the log, only what carries messages."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.sizes: list[int] = []

    def broadcast(self, message: str) -> None:
        self.sizes.append(len(message.encode()))
        super().broadcast(message)


class Wire(Network):
    """One node's connection to a network, which can be cut."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.is_cut = False

    def broadcast(self, message: str) -> None:
        if not self.is_cut:
            self.network.broadcast(message)

    def listen(self, heard: Callable[[str], None]) -> None:
        self.network.listen(lambda message: None if self.is_cut else heard(message))


class Node(Nodes):
    def __init__(self, network: Network, name: str, *, is_first: bool = False) -> None:
        self.wire = Wire(network)
        super().__init__(self.wire, name, network.clock, LEASE, is_first=is_first)
        self.lost = 0
        self.on_lost.append(self._count)
        self.task = asyncio.get_running_loop().create_task(self.run())

    def _count(self) -> None:
        self.lost += 1

    def die(self) -> None:
        self.wire.is_cut = True
        self.task.cancel()


@pytest.mark.proves("design.nodes.taken-over")
async def test_a_node_that_is_silent_for_a_lease_is_lost_to_all_others() -> None:
    network = Network()
    nodes = [Node(network, name, is_first=name == "a") for name in "abc"]
    one, two, three = nodes
    await network.clock.advance(3 * LEASE)
    assert all(node.is_alive(name) for node in nodes for name in "abc")
    assert not one.is_alive("earlier")
    lost = [one.lost, two.lost]
    three.die()
    await network.clock.advance(LEASE - PAUSE)
    assert one.is_alive("c")
    await network.clock.advance(2 * PAUSE)
    assert not one.is_alive("c")
    assert not two.is_alive("c")
    assert [one.lost, two.lost] == [n + 1 for n in lost]


async def test_a_node_that_leaves_is_lost_at_once_and_one_that_comes_back_is_not() -> None:
    network = Network()
    one, two = Node(network, "a", is_first=True), Node(network, "b")
    await network.clock.advance(PAUSE)
    two.leave()
    await network.clock.advance(0)
    assert not one.is_alive("b")
    again = Node(network, "b")
    await network.clock.advance(PAUSE)
    assert one.is_alive("b")
    again.die()


@pytest.mark.proves("design.nodes.taken-over")
async def test_a_node_that_hears_nobody_takes_nobody_for_lost() -> None:
    """Not even itself: then it is the network, or the servers."""
    network = Network()
    one, two = Node(network, "a", is_first=True), Node(network, "b")
    await network.clock.advance(PAUSE)
    one.wire.is_cut = True
    await network.clock.advance(5 * LEASE)
    assert one.is_alive("b")
    assert one.lost == 0
    assert not two.is_alive("a")
    one.wire.is_cut = False
    await network.clock.advance(PAUSE)
    assert two.is_alive("a")


async def test_after_a_start_any_node_may_be_alive_until_a_lease_has_passed() -> None:
    network = Network()
    one = Node(network, "a")
    await network.clock.advance(LEASE - PAUSE)
    assert one.is_alive("earlier")
    assert not one.is_settled
    await network.clock.advance(2 * PAUSE)
    assert not one.is_alive("earlier")
    assert one.lost == 1


async def test_what_a_node_has_is_known_to_the_others_until_it_has_it_no_longer_or_is_gone() -> (
    None
):
    network = Network()
    one, two = Node(network, "a", is_first=True), Node(network, "b")
    news: list[str] = []
    two.listen("room", news.append)
    one.publish("room", "x", [1])
    await network.clock.advance(PAUSE)
    assert two.elsewhere("room", "x") == ([1],)
    assert two.elsewhere("client", "x") == ()
    assert one.elsewhere("room", "x") == ()
    one.publish("room", "x", [1, 2])
    one.publish("client", "ana", True)
    await network.clock.advance(PAUSE)
    assert two.elsewhere("room", "x") == ([1, 2],)
    late = Node(network, "c")
    await network.clock.advance(PAUSE)
    assert late.elsewhere("room", "x") == ([1, 2],)
    one.publish("room", "x", None)
    await network.clock.advance(PAUSE)
    assert two.elsewhere("room", "x") == ()
    one.publish("room", "x", [3])
    await network.clock.advance(PAUSE)
    one.die()
    await network.clock.advance(LEASE + PAUSE)
    assert two.elsewhere("room", "x") == ()
    assert two.elsewhere("client", "ana") == ()
    assert set(news) == {"x"}


async def test_what_was_missed_while_a_node_was_disconnected_is_told_again() -> None:
    network = Network()
    one, two = Node(network, "a", is_first=True), Node(network, "b")
    await network.clock.advance(PAUSE)
    two.wire.is_cut = True
    one.publish("room", "x", [1])
    await network.clock.advance(PAUSE)
    assert two.elsewhere("room", "x") == ()
    two.wire.is_cut = False
    await network.clock.advance(2 * PAUSE)
    assert two.elsewhere("room", "x") == ([1],)


async def test_a_single_message_that_was_lost_between_two_beats_is_noticed() -> None:
    network = Network()
    one, two = Node(network, "a", is_first=True), Node(network, "b")
    one.publish("room", "x", [1])
    one.publish("room", "y", [1])
    await network.clock.advance(3 * PAUSE)
    two.wire.is_cut = True
    one.publish("room", "x", None)
    one.publish("room", "y", [2])
    await network.clock.advance(2 * GATHERED_SECONDS)
    two.wire.is_cut = False
    assert two.elsewhere("room", "x") == ([1],)
    await network.clock.advance(3 * PAUSE)
    assert two.elsewhere("room", "x") == ()
    assert two.elsewhere("room", "y") == ([2],)


async def test_messages_and_what_is_remembered_are_bounded() -> None:
    network = Network()
    one, two = Node(network, "a", is_first=True), Node(network, "b")
    await network.clock.advance(PAUSE)
    one.publish("room", "large", "x" * MESSAGE_BYTES)
    for number in range(KEPT_PER_NODE + 10):
        one.publish("client", f"client-ü-{number}", True)
    await network.clock.advance(PAUSE)
    assert max(network.sizes) <= MESSAGE_BYTES
    assert two.elsewhere("room", "large") == ()
    known = [two.elsewhere("client", f"client-ü-{n}") for n in range(KEPT_PER_NODE + 10)]
    assert sum(map(bool, known)) == KEPT_PER_NODE
    two.wire.broadcast("not a message")
    await network.clock.advance(PAUSE)
    assert two.is_alive("a")
