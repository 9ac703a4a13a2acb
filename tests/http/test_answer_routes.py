"""What accepting over HTTP sends is what the request showed; agents and askers over HTTP."""

from collections.abc import Iterator

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_server.schemas.ahp.questions import TextValue
from session_server.schemas.codec import encode
from tests.http.sessions import Api
from tests.interleavings import DEFAULTS, QUESTIONS, Expected, Step, steps
from tests.servers import ServerProcess

FORM = msgspec.to_builtins(QUESTIONS)


@pytest.fixture
def people(server: ServerProcess, api: Api) -> Iterator[tuple[Api, Api]]:
    """Two people with a credential each."""
    issued = [
        api.post("/v1/tokens", json={"role": "answerer", "name": name}).json()["token"]
        for name in ("Ana", "Ben")
    ]
    headers = [{"Authorization": f"Bearer {token}"} for token in issued]
    with Api(server.url, headers=headers[0]) as ana, Api(server.url, headers=headers[1]) as ben:
        yield ana, ben


def do(api: Api, address: str, step: Step) -> None:
    path = f"{address}/answers/{step.question_id}"
    if step.answer is None:
        done = api.delete(path)
    else:
        headers = {"Content-Type": "application/json"}
        done = api.put(path, content=encode(step.answer), headers=headers)
    assert done.status_code == 200, done.text


def accept(api: Api, address: str, **body: object) -> httpx2.Response:
    return api.post(f"{address}/complete", json=body)


@pytest.mark.slow
@pytest.mark.proves("design.calls.sent-is-reviewed")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(steps(), max_size=12))
def test_what_is_sent_over_http_is_what_the_request_showed(
    api: Api, session: str, people: tuple[Api, Api], story: list[Step]
) -> None:
    asked = api.ask(session, message="Deploy", questions=FORM)
    address, expected = f"{session}/requests/{asked['id']}", Expected()
    seen = asked["reviewed"]
    assert seen == {"content": DEFAULTS}
    for step in (*story, Step(0, "name", "submit", TextValue(value="x"), "x")):
        do(people[step.who], address, step)
        expected.follow(step)
    now = people[1].get(address).json()
    assert now["reviewed"] == {"content": expected.content}
    sent = {item["questionId"] for item in now["review"] if "value" in item}
    assert sent == set(expected.content)
    outdated = accept(people[1], address, reviewed=seen)
    assert outdated.status_code == 409
    assert outdated.json()["code"] == "reviewChanged"
    ended = accept(people[1], address, reviewed=now["reviewed"])
    assert ended.status_code == 200, ended.text
    assert ended.json()["content"] == expected.content


@pytest.mark.proves("design.requests.asker")
def test_an_agent_cannot_withdraw_what_somebody_else_asked(
    server: ServerProcess, api: Api, session: str
) -> None:
    token = api.post("/v1/tokens", json={"role": "agent", "name": "bot"}).json()["token"]
    with Api(server.url, headers={"Authorization": f"Bearer {token}"}) as bot:
        theirs, own = api.ask(session), bot.ask(session)
        assert theirs["request"]["_meta"]["by"] == {"id": "local"}
        assert own["request"]["_meta"]["by"]["name"] == "bot"
        refused = bot.delete(f"{session}/requests/{theirs['id']}")
        assert (refused.status_code, refused.json()["code"]) == (403, "notYours")
        for client in (bot, api):
            mine = own if client is bot else theirs
            ended = client.delete(f"{session}/requests/{mine['id']}")
            assert ended.json()["outcome"]["via"] == "withdrawn"
        another = bot.ask(session)
        assert api.delete(f"{session}/requests/{another['id']}").status_code == 200
