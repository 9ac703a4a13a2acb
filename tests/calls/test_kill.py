"""The process killed at every step of a three-round call: it finishes, run once or by leave."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.calls.zygote import Forked, Zygote
from tests.mcp import zoo
from tests.servers import sqlite_store

KEY = "a key that outlives any process of this server"
SECONDS = 40
ANSWERS = {
    "go?": {"environment": "production"},
    "Really?": {"sure": True},
    "take": {"minutes": 5},
}
AGAIN = "Run it again?"

LEGS, ROUNDS = range(1, 5), range(1, 4)
APPENDS = [
    "callStarted#1",
    *(f"callSent#{leg}" for leg in LEGS),
    *(f"callInputRequired#{number}" for number in ROUNDS),
    *(f"outcomeRecorded#{number}" for number in ROUNDS),
    "callFinished#1",
    "callCollected#1",
]
PLACES = [
    *(f"{when}.{name}" for name in APPENDS for when in ("append", "appended")),
    *(f"mcp.{what}#{leg}" for leg in LEGS for what in ("send", "sent", "receive")),
]
"""Before and after every append, every send and every receive of a call of three rounds."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kill") / "effects"


@pytest.fixture(scope="module")
def config(effects: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with zoo.http_server("modern", "--key", KEY, "--effects", str(effects)) as server:
        yield zoo.mcp_json(tmp_path_factory.mktemp("config"), {"zoo": {"url": server.url}})


class Person:
    """Makes the call, answers what is asked, and notices when the server is gone."""

    def __init__(self, url: str, service: str) -> None:
        self.http = httpx2.Client(base_url=url, timeout=SECONDS)
        self.service = service
        self.asked: list[str] = []
        self.fetched: dict[str, Any] | None = None

    def work(self) -> dict[str, Any]:
        """Until the call has ended; a server that dies meanwhile is a `TransportError`."""
        made = self.http.post("/v1/sessions", json={"resource": "ahp-session:/kill"})
        assert made.status_code in (201, 409), made.text
        wanted = {"server": "zoo", "tool": "release", "arguments": {"service": self.service}}
        call = self.http.post("/v1/sessions/kill/calls", json=wanted).json()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            view: dict[str, Any] = self.http.get(f"/v1/calls/{call['id']}?wait=0.05").json()
            if view["state"] in ("finished", "failed", "abandoned"):
                self.fetched = view
                return view
            for request in self.http.get("/v1/sessions/kill/requests").json()["items"]:
                self.answer(request["request"])
        raise AssertionError("the call did not end in time")

    def work_to_the_death(self) -> None:
        """Until the server dies, which is a `TransportError`."""
        self.work()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            self.http.get("/healthz")

    def answer(self, request: dict[str, Any]) -> None:
        message = request["message"]
        content = next((c for words, c in ANSWERS.items() if words in message), {})
        done = self.http.post(
            f"/v1/sessions/kill/requests/{request['id'].replace('/', '%2F')}/complete",
            json={"response": "accept", "content": content},
        )
        assert done.status_code in (200, 409), done.text
        self.asked.append(message)


def served(server: Forked) -> str:
    """Where it listens, once it does."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        url = server.url()
        if url is not None:
            return url
        time.sleep(0.01)
    raise AssertionError(f"the server did not start: {server.output.read_text()}")


def finished(server: Forked, service: str) -> tuple[dict[str, Any], list[str]]:
    person = Person(served(server), service)
    with person.http:
        return person.work(), person.asked


def later(server: Forked, fetched: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Who has the result does not ask for it again, but could, by its id."""
    with httpx2.Client(base_url=served(server), timeout=SECONDS) as http:
        return http.get(f"/v1/calls/{fetched['id']}").json(), []


def wait_for(trace: Path, place: str) -> None:
    deadline = time.monotonic() + SECONDS
    while place not in trace.read_text():
        assert time.monotonic() < deadline, f"{place} was not reached"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_call_of_three_rounds_comes_by_every_place(
    zygote: Zygote, config: Path, effects: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    arguments = ("--mcp-config", str(config))
    server = zygote.start(
        sqlite_store(tmp_path), tmp_path / "out", *arguments, failpoints=f"trace={trace}"
    )
    try:
        view, asked = finished(server, "plain")
        wait_for(trace, "appended.callCollected#1")
    finally:
        server.kill()
    assert view["result"]["content"][0]["text"] == "plain is in production within 5 minutes"
    assert len(asked) == 3
    assert sorted(trace.read_text().split()) == sorted(PLACES)
    assert len(ran(effects, "plain")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_call_survives_the_death_of_its_process(
    place: str, zygote: Zygote, config: Path, effects: Path, tmp_path: Path
) -> None:
    store, arguments = sqlite_store(tmp_path), ("--mcp-config", str(config))
    trace = tmp_path / "trace"
    doomed = zygote.start(store, tmp_path / "out1", *arguments, failpoints=f"{place};trace={trace}")
    person = Person(served(doomed), place)
    with pytest.raises(httpx2.TransportError), person.http:
        person.work_to_the_death()
    assert doomed.ended() == -9
    assert trace.read_text().split()[-1] == place
    survivor = zygote.start(store, tmp_path / "out2", *arguments)
    try:
        view, asked_later = (
            finished(survivor, place) if person.fetched is None else later(survivor, person.fetched)
        )
    finally:
        survivor.kill()
    asked = person.asked + asked_later
    assert view["state"] == "finished", view
    assert view["result"]["content"][0]["text"] == f"{place} is in production within 5 minutes"
    times = len(ran(effects, place))
    again = [message for message in asked if AGAIN in message]
    assert times == 1 or (times == 2 and again), (times, asked)
    asked_once = [message for message in asked if message not in again]
    assert len(set(asked_once)) == len(asked_once), asked


def ran(effects: Path, service: str) -> list[dict[str, Any]]:
    return [row for row in zoo.effects(effects, "release") if row["service"] == service]
