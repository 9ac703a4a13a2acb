"""Legs whose clients answer for themselves: what is asked, answered, given up and forgotten."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import ErrorData

from session_server.gateway.relayed import Asked, RelayedLeg, RelayedLegs

FORM = {"method": "elicitation/create", "params": {"message": "?"}}
ROOTS = {"method": "roots/list", "params": {}}


def spawned(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


def leg_asking(*questions: dict[str, Any]) -> RelayedLeg:
    """It asks these at the same time and ends with the answers."""
    leg = RelayedLeg("name", "key", "ana")

    async def work() -> dict[str, Any]:
        return {"answers": list(await asyncio.gather(*map(leg.ask, questions)))}

    leg.begin(work(), spawned)
    return leg


def test_questions_asked_together_are_shown_together_and_answered_one_by_one() -> None:
    async def story() -> None:
        leg = leg_asking(FORM, FORM)
        asked = await leg.wait(5)
        assert isinstance(asked, Asked)
        assert list(asked.questions) == ["q1", "q2"]
        leg.answer({"q1": {"action": "accept"}, "q9": {"action": "accept"}})
        left = await leg.wait(5)
        assert isinstance(left, Asked)
        assert list(left.questions) == ["q2"]
        assert await leg.wait(0.05, besides=("q2",)) is None
        leg.answer({"q2": {"action": "decline"}, "q1": {"action": "cancel"}})
        assert await leg.wait(5) == {"answers": [{"action": "accept"}, {"action": "decline"}]}

    asyncio.run(story())


def test_what_nobody_came_back_for_is_cancelled_and_never_declined() -> None:
    async def story() -> None:
        legs = RelayedLegs(seconds=0.05)
        leg = leg_asking(FORM, ROOTS)
        legs.add(leg)
        assert legs.named("name") is legs.same("key") is leg
        await leg.wait(0)
        result = await leg.wait(5, besides=("q1", "q2"))
        assert isinstance(result, dict)
        form, roots = result["answers"]
        assert form == {"action": "cancel"}
        assert isinstance(roots, ErrorData)
        assert legs.named("name") is legs.same("key") is None

    asyncio.run(story())


def test_a_leg_whose_client_is_there_is_not_given_up() -> None:
    async def story() -> None:
        legs = RelayedLegs(seconds=0.3)
        leg = leg_asking(FORM)
        legs.add(leg)
        for _ in range(10):
            await leg.wait(0.06, besides=("q1",))
        assert legs.named("name") is leg
        leg.answer({"q1": {"action": "accept"}})
        await leg.wait(5)

    asyncio.run(story())


def test_only_so_many_calls_are_under_way() -> None:
    async def story() -> None:
        legs = RelayedLegs(most=1)
        legs.add(RelayedLeg("a", "a", "ana"))
        with pytest.raises(MCPError, match="1 calls are under way; try again later"):
            legs.add(RelayedLeg("b", "b", "bo"))

    asyncio.run(story())
