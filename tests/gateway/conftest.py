"""People at the host of a module's tests, and where its MCP servers write down what really ran."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.requests_2026 import People
from tests.servers import ServerProcess


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("effects")


@pytest.fixture
def people(server: ServerProcess) -> Iterator[People]:
    with People(server.url) as everyone:
        yield everyone
