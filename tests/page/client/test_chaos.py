"""Chaos: people type while pages reload, connections break and the host is killed."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.page.client.conftest import NewDevice
from tests.page.client.node import Device
from tests.page.client.open_requests import ask, get, new_session
from tests.servers import ServerProcess, sqlite_store

STEPS = 40
QUESTIONS = ("name", "note")


class Storm:
    """Each page has a question of its own, so that there is no doubt what must be there."""

    def __init__(self, store: str, new_device: NewDevice, chance: Random) -> None:
        self.store = store
        self.chance = chance
        self.server = ServerProcess(store)
        self.uri = new_session(self.server.url)
        self.request = ask(self.server.url, self.uri)
        self.written = dict.fromkeys(QUESTIONS, "")
        self.devices = {question: new_device(self.server.url) for question in QUESTIONS}
        for device in self.devices.values():
            device.load()
            device.look_at(self.uri)

    def step(self) -> None:
        question = self.chance.choice(QUESTIONS)
        device = self.devices[question]
        happenings = {
            self.types: 6,
            self.goes_offline: 2,
            self.comes_online: 2,
            self.loads_again: 1,
            self.crashes: 1,
        }
        (happens,) = self.chance.choices(list(happenings), list(happenings.values()))
        happens(device, question)
        if self.chance.random() < 0.1:
            self.server.kill()
            self.server = ServerProcess(self.store, port=self.server.port)
        time.sleep(self.chance.random() * 0.15)

    def types(self, device: Device, question: str) -> None:
        if device.run("session.phase") != "open":
            return  # there is no form to type into yet
        text = f"{question} {self.chance.randrange(10**6)}"
        device.run(
            "session.field(request, question).edit(text(value))",
            request=self.request,
            question=question,
            value=text,
        )
        self.written[question] = text

    def goes_offline(self, device: Device, _: str) -> None:
        device.run("offline()")

    def comes_online(self, device: Device, _: str) -> None:
        device.run("online()")

    def loads_again(self, device: Device, _: str) -> None:
        device.run("reload(); open(uri);", uri=self.uri)

    def crashes(self, device: Device, _: str) -> None:
        """A moment after the last keystroke: what was stored by then is there."""
        device.run("await sleep(300); crash(); load(); open(uri);", uri=self.uri)

    def calm(self) -> None:
        for device in self.devices.values():
            device.run("online()")
        for device in self.devices.values():
            device.until("session.phase === 'open' && host.status.phase === 'live'", 20)
            device.until("host.status.waiting === 0", 20)
            for question, text in self.written.items():
                if text:
                    device.until_held(question, text)
            device.until("unsent().length === 0")

    def close(self) -> None:
        if self.server.process.poll() is None:
            self.server.kill()


@pytest.mark.parametrize("seed", [1, 2])
def test_all_edits_arrive_and_all_pages_agree(
    tmp_path: Path, new_device: NewDevice, seed: int
) -> None:
    storm = Storm(sqlite_store(tmp_path), new_device, Random(seed))
    try:
        for _ in range(STEPS):
            storm.step()
        storm.calm()
        state = get(storm.server.url, storm.uri)
        for question, device in storm.devices.items():
            assert device.run("session.confirmed") == state
            assert device.run("session.state") == state
            assert device.shown(question) == (storm.written[question] or None)
            assert device.run("session.field(request().id, q).theirs ?? null", q=question) is None
    finally:
        storm.close()
