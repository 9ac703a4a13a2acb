"""One server process for all of these tests, and a client and a session for each."""

from collections.abc import Iterator

import pytest

from tests.http.sessions import Api
from tests.servers import ServerProcess, serving


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    with serving("memory:", "--actions-per-second", "0") as running:  # some tests send much
        yield running


@pytest.fixture
def api(server: ServerProcess) -> Iterator[Api]:
    with Api(server.url) as client:
        yield client


@pytest.fixture
def session(api: Api) -> str:
    """The address of a session that nobody else uses."""
    made = api.post("/v1/sessions", json={})
    assert made.status_code == 201
    return made.headers["location"]
