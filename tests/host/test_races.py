"""Two who do the same at once: one of them wins, and the other is told who."""

from random import Random
from typing import Any

from session_server.host.host import Host
from session_server.log.memory import MemoryLog
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import Outcome
from tests.effort import tries
from tests.host.faults import SlowLog
from tests.host.harness import AGENT, SESSION, Client, hosting, joined, run, with_session

RACES = tries(in_ci=1_000, at_hand=200)
RIVALS = (
    Principal(id="bo", name="Bo", role=Role.ANSWERER),
    Principal(id="di", name="Di", role=Role.ANSWERER),
)
VERBS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}


def asked(number: int) -> dict[str, Any]:
    question = {"kind": "text", "id": "t", "message": "What?", "required": True}
    request = {"id": f"r{number}", "message": f"Number {number}?", "questions": [question]}
    return {"type": "session/inputRequested", "request": request}


def completed(number: int, response: str, text: str) -> dict[str, Any]:
    answer = {"state": "submitted", "value": {"kind": "text", "value": text}}
    return {
        "type": "session/inputCompleted",
        "requestId": f"r{number}",
        "response": response,
        "answers": {"t": answer} if response == "accept" else {},
    }


def outcome(host: Host, number: int) -> Outcome:
    record = host.record(SESSION)
    assert record is not None
    (found,) = (o for o in record.private.outcomes if o.request.id == f"r{number}")
    return found


async def echo(client: Client, client_seq: int) -> dict[str, Any]:
    """The envelope that answers an action of this client's, accepted or refused."""
    mine = client.connection.peer.principal.client_id
    wanted = {"clientId": mine, "clientSeq": client_seq}
    frame = await client.wait_for(
        lambda f: (
            f.get("params", {}).get("origin") == wanted
            and f["params"]["action"]["type"] == "session/inputCompleted"
        )
    )
    params: dict[str, Any] = frame["params"]
    return params


@run
async def test_of_two_completions_at_once_one_wins_and_the_other_learns_who_did() -> None:
    dice = Random(1)
    log = SlowLog(MemoryLog(), dice, history={})
    log.is_slow = False
    async with hosting(log) as host:
        await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        rivals = [await joined(host, who, who.id, SESSION) for who in RIVALS]
        won = {who.id: 0 for who in RIVALS}
        for number in range(RACES):
            await agent.act(asked(number))
            first, second = dice.sample(rivals, 2)
            responses = {c: dice.choice(("accept", "accept", "decline", "cancel")) for c in rivals}
            log.is_slow = True
            seqs = {
                client: client.dispatch(completed(number, responses[client], str(number)))
                for client in (first, second)
            }
            if dice.random() < 0.5:
                log.release(1)  # the second is judged on what is not written yet, or no longer
            log.is_slow = False
            log.release(len(log.held))
            accepted = await echo(first, seqs[first])
            refused = await echo(second, seqs[second])
            winner = first.connection.peer.principal
            verb = VERBS[responses[first]]
            assert "rejectionReason" not in accepted
            assert refused["rejectionReason"] == (
                f"Too late: {winner.name} {verb} “Number {number}?”."
            )
            assert refused["serverSeq"] >= accepted["serverSeq"]
            ended = outcome(host, number)
            assert (ended.by, ended.response) == (winner.author, responses[first])
            won[winner.id] += 1
            for client in (agent, *rivals):
                completions = [
                    e for e in client.envelopes() if e["action"]["type"] == "session/inputCompleted"
                ]
                assert len(completions) == 1
                client.received.clear()
        assert sum(won.values()) == RACES
        assert min(won.values()) > RACES // 4


@run
async def test_a_draft_that_comes_after_the_completion_is_told_so() -> None:
    async with hosting() as host:
        await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        bo, di = [await joined(host, who, who.id, SESSION) for who in RIVALS]
        await agent.act(asked(1))
        bo.dispatch(completed(1, "accept", "Oslo"))
        answer = {"state": "draft", "value": {"kind": "text", "value": "Ber"}}
        refused = await di.act(
            {
                "type": "session/inputAnswerChanged",
                "requestId": "r1",
                "questionId": "t",
                "answer": answer,
            }
        )
        assert refused["rejectionReason"] == "Too late: Bo answered “Number 1?”."


@run
async def test_a_completion_and_the_end_of_its_turn_do_not_both_happen() -> None:
    dice = Random(2)
    async with hosting() as host:
        owner = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        bo = await joined(host, RIVALS[0], "bo", SESSION)
        for number in range(100):
            await agent.act(asked(number))
            started = await owner.wait_for_action("session/turnStarted")
            cancel = {"type": "session/turnCancelled", "turnId": started["action"]["turnId"]}
            is_answered_first = dice.random() < 0.5
            if not is_answered_first:
                owner.dispatch(cancel)
            seq = bo.dispatch(completed(number, "accept", "Oslo"))
            if is_answered_first:
                owner.dispatch(cancel)
            answer = await echo(bo, seq)
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
