"""A call of three questions whose host is killed at a named place, and what must be true after.

Used by the tests of each pairing: revision 2026-07-28 or the 2025 era, over HTTP or as a process of
the host.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx2
import pytest

from session_server.mcp_client.failpoints import VARIABLE
from tests.mcp import zoo
from tests.servers import ServerProcess, serving, sqlite_store

KEY = "a key that outlives any process of this server"
SECONDS = 60
ANSWERS: dict[str, dict[str, Any]] = {
    "go?": {"environment": "production"},
    "Really?": {"sure": True},
    "take": {"minutes": 5},
}
DRAFT = {"state": "draft", "value": {"kind": "text", "value": "written before"}}
AGAIN = "Run it again?"

Era = Literal["modern", "legacy"]
Way = Literal["http", "stdio"]


class Pairing(NamedTuple):
    """A server that hosts are configured with, and where it writes down what really ran."""

    config: Path
    effects: Path

    def ran(self, service: str) -> int:
        rows = zoo.effects(self.effects, "release")
        return len([row for row in rows if row["service"] == service])


@contextlib.contextmanager
def paired(era: Era, way: Way, folder: Path) -> Iterator[Pairing]:
    effects = folder / "effects"
    arguments = ["--effects", str(effects), *(["--key", KEY] if era == "modern" else [])]
    with contextlib.ExitStack() as stack:
        if way == "http":
            url = stack.enter_context(zoo.http_server(era, *arguments)).url
            entry: dict[str, Any] = {"url": url}
        else:
            entry = zoo.stdio_entry(era, *arguments)
        yield Pairing(zoo.mcp_json(folder, {"zoo": entry}), effects)


def messages(rounds: range) -> list[str]:
    """Before and after every send, and at every receive, of a call with so many questions."""
    return [
        f"mcp.{what}#{number}"
        for number in range(1, len(rounds) + 2)
        for what in ("send", "sent", "receive")
    ]


def appends(legs: range, rounds: range) -> list[str]:
    """Before and after every append of such a call."""
    names = [
        "callStarted#1",
        *(f"callSent#{leg}" for leg in legs),
        *(f"callInputRequired#{number}" for number in rounds),
        *(f"outcomeRecorded#{number}" for number in rounds),
        "callFinished#1",
        "callCollected#1",
    ]
    return [f"{when}.{name}" for name in names for when in ("append", "appended")]


IN_DOUBT = [
    f"{when}.{name}#1"
    for name in ("callDoubted", "outcomeRecorded", "callSent")
    for when in ("append", "appended")
]
"""What the next process comes by, which asks first whether the call is run again."""


class Person:
    """Makes the call, drafts and answers what is asked, and notices when the server is gone.

    What a person wrote stays written: a question that is asked again has to show it.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.asked: list[str] = []
        self.doubts: set[str] = set()
        self.drafted: set[str] = set()
        self.fetched: dict[str, Any] | None = None

    def work(self, url: str) -> dict[str, Any]:
        """Until the call has ended; a server that dies meanwhile is a `TransportError`."""
        with httpx2.Client(base_url=url, timeout=SECONDS) as http:
            made = http.post("/v1/sessions", json={"resource": "ahp-session:/kill"})
            assert made.status_code in (201, 409), made.text
            wanted = {"server": "zoo", "tool": "release", "arguments": {"service": self.service}}
            call = http.post("/v1/sessions/kill/calls", json=wanted).json()
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                view: dict[str, Any] = http.get(f"/v1/calls/{call['id']}?wait=0.05").json()
                if view["state"] in ("finished", "failed", "abandoned"):
                    self.fetched = view
                    return view
                for item in http.get("/v1/sessions/kill/requests").json()["items"]:
                    self._answer(http, item["request"])
        raise AssertionError("the call did not end in time")

    def work_to_the_death(self, url: str) -> None:
        """Until the server dies, which is a `TransportError`."""
        self.work(url)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            httpx2.get(f"{url}/healthz")

    def _answer(self, http: httpx2.Client, request: dict[str, Any]) -> None:
        message = request["message"]
        if AGAIN in message:
            self.doubts.add(request["id"])
        path = f"/v1/sessions/kill/requests/{request['id'].replace('/', '%2F')}"
        if message in self.drafted:
            kept = request.get("answers", {}).get("reason")
            assert kept is not None, f"what was written is gone: {request}"
            assert kept["value"] == DRAFT["value"]
        elif any(question["id"] == "reason" for question in request.get("questions", ())):
            drafted = http.put(f"{path}/answers/reason", json=DRAFT)
            assert drafted.status_code in (200, 404, 409), drafted.text
            if drafted.status_code == 200:
                self.drafted.add(message)
        content = next((c for reason, c in ANSWERS.items() if reason in message), {})
        done = http.post(f"{path}/complete", json={"response": "accept", "content": content})
        assert done.status_code in (200, 404, 409), done.text
        if done.status_code == 200:
            self.asked.append(message)


def comes_by(
    all_places: list[str], pairing: Pairing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that nothing happens to passes every place, and no other."""
    trace, person = folder / "trace", Person("plain")
    monkeypatch.setenv(VARIABLE, f"trace={trace}")
    with serving(sqlite_store(folder), "--mcp-config", str(pairing.config)) as server:
        view = person.work(server.url)
        _wait_for(trace, "appended.callCollected#1")
    assert zoo.text_of(view["result"]) == "plain is in production within 5 minutes"
    assert len(person.asked) == 3
    assert sorted(trace.read_text().split()) == sorted(all_places)
    assert pairing.ran("plain") == 1


def survives(
    deaths: tuple[str, ...], pairing: Pairing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Person:
    """Killed at places, the call is finished by the last process, run once or by leave."""
    service = " ".join(deaths)
    arguments = (sqlite_store(folder), "--mcp-config", str(pairing.config))
    trace, person = folder / "trace", Person(service)
    for place in deaths:
        monkeypatch.setenv(VARIABLE, f"{place};trace={trace}")
        _die(arguments, person)
        assert trace.read_text().split()[-1] == place
    monkeypatch.delenv(VARIABLE)
    with serving(*arguments) as survivor:
        view = _later(survivor.url, person.fetched) or person.work(survivor.url)
    check(view, person, pairing)
    return person


def check(view: dict[str, Any], person: Person, pairing: Pairing) -> None:
    """The call has its result, and ran once or by leave; nothing was asked twice but that."""
    assert view["state"] == "finished", view
    assert zoo.text_of(view["result"]) == f"{person.service} is in production within 5 minutes"
    times = pairing.ran(person.service)
    assert 1 <= times <= 1 + len(person.doubts), (times, person.asked)
    asked_once = [message for message in person.asked if AGAIN not in message]
    assert len(set(asked_once)) == len(asked_once), person.asked


def _die(arguments: tuple[str, ...], person: Person) -> None:
    """A process at work until it dies: maybe of what the one before has left it to do at once."""
    try:
        doomed = ServerProcess(*arguments)
    except RuntimeError as error:
        assert "Traceback" not in str(error)  # noqa: PT017 - it may also start
        return
    with pytest.raises(httpx2.TransportError):
        person.work_to_the_death(doomed.url)
    doomed.kill()
    assert doomed.process.returncode == -9


def _later(url: str, fetched: dict[str, Any] | None) -> dict[str, Any] | None:
    """Who has the result does not ask for it again, but could, by its id."""
    if fetched is None:
        return None
    view: dict[str, Any] = httpx2.get(f"{url}/v1/calls/{fetched['id']}").json()
    return view


def _wait_for(trace: Path, place: str) -> None:
    deadline = time.monotonic() + SECONDS
    while place not in trace.read_text():
        assert time.monotonic() < deadline, f"{place} was not reached"
        time.sleep(0.01)
