"""Two who do the same at once: one of them wins, and the other is told who."""

from random import Random
from typing import Any

import pytest

from session_server.host.host import Host
from session_server.log.memory import MemoryLog
from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import Outcome
from tests.ahp.actions import input_completed, input_requested, text_question, turn_cancelled
from tests.effort import tries
from tests.host.ahp1 import CHAT, Ahp1Client, opened
from tests.host.faulty_logs import SlowLog
from tests.host.harness import (
    SESSION,
    Client,
    hosting,
    joined,
    record_of,
    with_agent,
)

RACES = tries(in_ci=500, at_hand=100)
RIVALS = (
    Principal(id="bo", name="Bo", role=Role.ANSWERER),
    Principal(id="di", name="Di", role=Role.ANSWERER),
)
COMPLETED = "session/inputCompleted"
VERBS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}


def asked(number: int) -> dict[str, Any]:
    question = text_question("t", required=True)
    return input_requested(f"r{number}", question, message=f"Number {number}?")


def completed(number: int, response: str, text: str) -> dict[str, Any]:
    answers = {"t": text} if response == "accept" else {}
    return input_completed(f"r{number}", response, **answers)


def outcome(host: Host, number: int) -> Outcome:
    outcomes = record_of(host).private.outcomes
    (found,) = (o for o in outcomes if o.request.id == f"r{number}")
    return found


def completion(client: Client) -> str:
    return "chat/inputCompleted" if isinstance(client, Ahp1Client) else COMPLETED


def as_seen_by(client: Client, action: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The action as this client's version has it, and on which channel."""
    if not isinstance(client, Ahp1Client):
        return action, SESSION
    return {**action, "type": action["type"].replace("session/", "chat/")}, CHAT


async def rival(host: Host, who: Principal, version: str) -> Client:
    if version == PROTOCOL_VERSION:
        return await joined(host, who, who.id, SESSION)
    return await opened(host, who.id, SESSION, CHAT, version=version, principal=who)


@pytest.mark.proves("ahp.ahp1.mixed")
@pytest.mark.parametrize(
    "versions", [("0.3.0", "0.3.0"), ("0.3.0", "1.0.0"), ("0.9.0", "1.0.0")], ids="-".join
)
async def test_of_two_completions_at_once_one_wins_and_the_other_learns_who_did(
    versions: tuple[str, str],
) -> None:
    dice = Random(1)
    log = SlowLog(MemoryLog(), dice, history={})
    log.is_slow = False
    async with hosting(log) as host:
        _, agent = await with_agent(host)
        rivals = [await rival(host, *each) for each in zip(RIVALS, versions, strict=True)]
        won = {who.id: 0 for who in RIVALS}
        for number in range(RACES):
            await agent.act(asked(number))
            first, second = dice.sample(rivals, 2)
            responses = {c: dice.choice(("accept", "accept", "decline", "cancel")) for c in rivals}
            log.is_slow = True
            seqs = {}
            for client in (first, second):
                action = completed(number, responses[client], str(number))
                seqs[client] = client.dispatch(*as_seen_by(client, action))
            if dice.random() < 0.5:
                log.release(1)  # the second is judged on what is not written yet, or no longer
            log.is_slow = False
            log.release(len(log.held))
            accepted = await first.echo(seqs[first], completion(first))
            refused = await second.echo(seqs[second], completion(second))
            winner = first.connection.peer.principal
            verb = VERBS[responses[first]]
            assert "rejectionReason" not in accepted
            assert refused["rejectionReason"] == (
                f"Too late: {winner.name} {verb} “Number {number}?”."
            )
            if versions[0] == versions[1]:
                assert refused["serverSeq"] >= accepted["serverSeq"]
            ended = outcome(host, number)
            assert (ended.by, ended.response) == (winner.author, responses[first])
            won[winner.id] += 1
            for client in (agent, *rivals):
                kinds = [envelope["action"]["type"] for envelope in client.envelopes()]
                assert kinds.count(completion(client)) == 1
                client.received.clear()
        for client in rivals:
            assert not isinstance(client, Ahp1Client) or await client.is_up_to_date()
        assert sum(won.values()) == RACES
        assert min(won.values()) > RACES // 4


async def test_a_completion_and_the_end_of_its_turn_do_not_both_happen() -> None:
    dice = Random(2)
    async with hosting() as host:
        owner, agent = await with_agent(host)
        bo = await joined(host, RIVALS[0], "bo", SESSION)
        for number in range(100):
            await agent.act(asked(number))
            started = await owner.wait_for_action("session/turnStarted")
            cancel = turn_cancelled(started["action"]["turnId"])
            is_answered_first = dice.random() < 0.5
            if not is_answered_first:
                owner.dispatch(cancel)
            seq = bo.dispatch(completed(number, "accept", "Oslo"))
            if is_answered_first:
                owner.dispatch(cancel)
            answer = await bo.echo(seq, COMPLETED)
            assert ("rejectionReason" not in answer) == is_answered_first
            via = outcome(host, number).via
            assert via == ("person" if is_answered_first else "abandoned")
            await owner.wait_for(
                lambda f: (
                    f.get("method") == "action"
                    and f["params"]["action"]["type"]
                    in ("session/turnCancelled", "session/turnComplete")
                )
            )
            for client in (owner, agent, bo):
                client.received.clear()
