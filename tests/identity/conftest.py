"""Servers at whose doors tests knock, one of a kind for each file."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.identity.credentialed_clients import WITH_TOKEN, api
from tests.servers import ServerProcess, serving


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """On loopback, with a connection token."""
    with serving("memory:", *WITH_TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def open_server() -> Iterator[ServerProcess]:
    with serving("memory:", "--allowed-origins", "https://my.app") as running:
        yield running


@pytest.fixture
def owner(server: ServerProcess) -> Iterator[httpx2.Client]:
    with api(server) as client:
        yield client
