"""What a log that several nodes have open promises beyond the contract of every log."""

import asyncio

import pytest

from session_server.log.protocol import MESSAGE_BYTES, SharedLog
from tests.log.logs import BOUND, Backend, NatsShared, PostgresShared, stored
from tests.waiting import until

pytestmark = [pytest.mark.proves("design.log.contract"), pytest.mark.slow]


@pytest.fixture(params=[PostgresShared, NatsShared])
def backend(request, tmp_path) -> Backend:
    return request.param(tmp_path)


async def test_after_a_refresh_the_end_is_not_before_what_others_have_stored(
    backend: Backend,
) -> None:
    async with backend.opened() as one, backend.opened() as other:
        node: SharedLog = other  # type: ignore[assignment]
        last = 0
        for number in range(50):
            (last,) = await stored(one, "c", last, b"%d" % number)
            await node.refresh()
            assert node.last_seq >= last


async def test_what_a_node_tells_reaches_all_nodes_in_order_and_itself(backend: Backend) -> None:
    async with backend.opened() as one, backend.opened() as other:
        nodes: tuple[SharedLog, ...] = (one, other)  # type: ignore[assignment]
        heard: list[list[str]] = [[], []]
        for node, messages in zip(nodes, heard, strict=True):
            node.listen(messages.append)
        async with asyncio.timeout(BOUND):
            while not all(heard):  # whoever is not connected yet does not hear it
                nodes[1].broadcast("begin")
                await asyncio.sleep(0.01)
        wanted = [*(f"{n}" for n in range(50)), "ü" * (MESSAGE_BYTES // 2)]
        for message in wanted:
            nodes[0].broadcast(message)
        await stored(one, "c", 0, b"an entry is not a message")
        await until(lambda: all(messages[-1] == wanted[-1] for messages in heard))
        for messages in heard:
            assert [message for message in messages if message != "begin"] == wanted


async def test_a_drop_tells_up_to_where_the_channel_is_gone_whoever_wrote_last(
    backend: Backend,
) -> None:
    async with backend.opened() as one, backend.opened() as other:
        for number in range(10):
            (first,) = await stored(one, "c", 0, b"opened")
            await other.refresh()  # type: ignore[attr-defined]
            (last,) = await stored(one, "c", first, b"written before it was dropped elsewhere")
            reached = await other.drop("c")
            assert last <= reached, number
            await one.refresh()  # type: ignore[attr-defined]
            (again,) = await stored(one, "c", 0, b"opened under the same name")
            assert again > reached
            await one.drop("c")
            await other.refresh()  # type: ignore[attr-defined]
