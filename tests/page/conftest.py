"""Fixtures: a browser, a host with a scripted agent, and people."""

import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.page.browser import Person, chromium
from tests.page.stage import Stage
from tests.servers import ServerProcess, serving

SCENE_HOST = (sys.executable, "-m", "tests.page.scene_host")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer: while it is there, this thread has an event loop that keeps others away."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def host() -> Iterator[ServerProcess]:
    with serving("memory:", command=SCENE_HOST) as server:
        yield server


@pytest.fixture(scope="module")
def stage(host: ServerProcess) -> Iterator[Stage]:
    stage = Stage(host)
    yield stage
    stage.close()


@pytest.fixture
def person(browser: Browser, host: ServerProcess) -> Iterator[Callable[..., Person]]:
    """People come by name; none of them may have seen an error in the end."""
    people: list[Person] = []

    def arrives(name: str | None = None, url: str = host.url, **options: object) -> Person:
        people.append(Person(browser, url, name, **options))
        return people[-1]

    yield arrives
    complaints = [words for each in people for words in each.complaints]
    for each in people:
        each.closes()
    assert complaints == []
