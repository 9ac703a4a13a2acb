"""Every backend for the tests of the log's contract."""

import pytest

from tests.log.logs import QUICK, SLOW, Backend

PARAMS = [
    *(pytest.param(backend, id=backend.__name__) for backend in QUICK),
    *(pytest.param(backend, id=backend.__name__, marks=pytest.mark.slow) for backend in SLOW),
]


@pytest.fixture(params=PARAMS)
def backend(request, tmp_path) -> Backend:
    return request.param(tmp_path)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """A schema or stream of its own."""
    return f"f_{abs(hash(request.node.nodeid)):x}"
