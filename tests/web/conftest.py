"""One browser for all tests of the page, and a host of its own for each module that asks."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.servers import ServerProcess, serving
from tests.web.browser import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def host() -> Iterator[ServerProcess]:
    with serving("memory:") as server:
        yield server
