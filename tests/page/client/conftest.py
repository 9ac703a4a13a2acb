"""Fixtures: a host, and pages without a browser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.page.client.node import Device
from tests.page.client.open_requests import ask, new_session
from tests.servers import ServerProcess, serving

NewDevice = Callable[[str], Device]
Pages = tuple[Device, Device]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving("memory:") as running:
        yield running


@pytest.fixture(scope="module")
def started() -> Iterator[list[Device]]:
    """Node takes its time to start, so the tests of a module share a few."""
    devices: list[Device] = []
    yield devices
    with ExitStack() as closing:
        for device in devices:
            closing.callback(device.close)


@pytest.fixture
def new_device(started: list[Device]) -> Iterator[NewDevice]:
    """A browser that has never been anywhere, at a host; in the end its page is closed."""
    used: list[Device] = []

    def new(url: str) -> Device:
        if len(used) == len(started):
            started.append(Device())
        device = started[len(used)]
        used.append(device)
        device.begin(url)
        return device

    yield new
    for device in used:
        device.run("crash()")


@pytest.fixture
def session(server: ServerProcess) -> str:
    """A session with an open request."""
    uri = new_session(server.url)
    ask(server.url, uri)
    return uri


@pytest.fixture
def pages(server: ServerProcess, session: str, new_device: NewDevice) -> tuple[Device, Device]:
    """Two pages that look at the session's questions."""
    ana, bo = new_device(server.url), new_device(server.url)
    for device in (ana, bo):
        device.load()
        device.look_at(session)
    return ana, bo
