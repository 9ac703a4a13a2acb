"""Asking through the client: people answer, and whoever asked goes on with what they said."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from session_server.client import AskedQuestion, AskOutcome, AskRefused, Client, Session, connect
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.limits import LEASE_SECONDS
from tests.effort import PATIENCE
from tests.servers import ServerProcess, serving


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving("memory:") as server:
        yield server


async def complete(client: Client, uri: str, *answer: Any) -> InputRequest:
    """Answers the next question of a session that may not be there yet."""
    async with asyncio.timeout(PATIENCE):
        async for sessions in client.sessions():
            if any(summary.resource == uri for summary in sessions):
                break
    async with client.session(uri) as session:
        return await complete_in(session, *answer)


async def complete_in(session: Session, *answer: Any) -> InputRequest:
    request = await session.wait_for_request(timeout=PATIENCE)
    await session.complete(request.id, *answer)
    return request


async def test_typed_questions_come_back_as_plain_values(server: ServerProcess) -> None:
    questions = [
        "What is it called?",
        {"id": "env", "question": "Where to?", "options": ["staging", "prod"]},
        AskedQuestion(id="replicas", question="How many?", kind="integer", min=1, default=3),
    ]
    async with connect(server.url) as asker, connect(server.url, name="Ana") as person:
        asking = asyncio.create_task(asker.ask("Release", questions, session="typed"))
        answers = {"q1": "Fjord", "env": "prod", "replicas": 5}
        await complete(person, "ahp-session:/typed", "accept", answers)
        result = await asking
    assert result.outcome == "accepted"
    assert result.answers == answers
    assert result.by == "Ana"
    assert result.session == "ahp-session:/typed"


async def test_a_message_alone_asks_for_a_yes_or_no_in_a_session_of_its_own(
    server: ServerProcess,
) -> None:
    async with connect(server.url) as asker, connect(server.url) as person:
        before = {summary.resource for summary in await person.list_sessions()}
        asking = asyncio.create_task(asker.ask("Deploy 1.4?"))
        async for sessions in person.sessions():
            made = [s for s in sessions if s.resource not in before]
            if made:
                break
        assert made[0].title == "Deploy 1.4?"
        await complete(person, made[0].resource, "decline")
        result = await asking
    assert result.outcome is AskOutcome.DECLINED
    assert result.answers == {}


async def test_a_form_can_be_given_as_a_json_schema(server: ServerProcess) -> None:
    schema = {"type": "object", "properties": {"mail": {"type": "string", "format": "email"}}}
    async with connect(server.url) as asker, connect(server.url) as person:
        asking = asyncio.create_task(asker.ask("Who?", schema=schema, session="schema"))
        await complete(person, "ahp-session:/schema", "accept", {"mail": "ana@example.com"})
        assert (await asking).answers == {"mail": "ana@example.com"}


async def test_the_deadline_of_a_question_is_no_persons_no(server: ServerProcess) -> None:
    async with connect(server.url) as asker:
        result = await asker.ask("Still there?", expires_in=0.1)
        assert result.outcome is AskOutcome.TIMED_OUT
        question = AskedQuestion(question="Where?", id="env", default="eu", required=False)
        result = await asker.ask("Region", [question], expires_in=0.1, on_expiry="defaults")
        assert (result.answers, result.via) == ({"env": "eu"}, "default")


async def test_who_stops_waiting_withdraws_the_question(server: ServerProcess) -> None:
    async with connect(server.url) as asker, connect(server.url) as person:
        with pytest.raises(TimeoutError):
            await asker.ask("Nobody there?", session="late", timeout=0.1)
        async with person.session("ahp-session:/late") as session:
            await session.wait_until(lambda state: not state.input_requests, PATIENCE)
            asking = asyncio.create_task(asker.ask("And now?", session="late"))
            request = await session.wait_for_request(timeout=PATIENCE)
            assert request.meta.lease == LEASE_SECONDS
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await session.wait_until(lambda state: not state.input_requests, PATIENCE)


async def test_with_a_key_a_question_stays_open_and_is_asked_once(server: ServerProcess) -> None:
    async with connect(server.url) as asker, connect(server.url) as person:
        with pytest.raises(TimeoutError):
            await asker.ask("Release?", session="kept", key="1.4", timeout=1)
        async with person.session("ahp-session:/kept") as session:
            request = await complete_in(session)
            assert request.meta.lease is None
        again = await asker.ask("Release?", session="kept", key="1.4")
        assert (again.outcome, again.request_id) == (AskOutcome.ACCEPTED, request.id)
        with pytest.raises(ValueError, match="needs a `session`"):
            await asker.ask("Release?", key="1.4")


@pytest.mark.parametrize(
    ("questions", "options", "reason"),
    [
        ([{"prompt": "Where?"}], {}, "unknown field `prompt`"),
        ([{"question": "Where?", "kind": "text", "options": ["a"]}], {}, "has no options"),
        (["Where?"], {"schema": {"type": "object"}}, "not both"),
        ([AskedQuestion(question="Where?", kind="single-select")], {}, "no options to choose"),
        ([], {"url": "file:///etc/passwd"}, "address"),
    ],
)
async def test_what_cannot_be_asked_is_refused_and_leaves_no_session(
    server: ServerProcess, questions: list[Any], options: dict[str, Any], reason: str
) -> None:
    async with connect(server.url) as client:
        before = await client.list_sessions()
        with pytest.raises(AskRefused, match=reason):
            await client.ask("Odd", questions, **options)
        assert await client.list_sessions() == before
