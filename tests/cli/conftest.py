"""One host for the tests of a module; each test uses a session of its own name."""

from collections.abc import Iterator

import pytest

from tests.cli.shells import Shell, shell_of
from tests.servers import ServerProcess, serving


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving("memory:", "--demo") as server:
        yield server


@pytest.fixture(scope="module")
def shell(server: ServerProcess) -> Shell:
    return shell_of(server)
