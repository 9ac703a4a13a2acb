"""What several nodes can share."""

import pytest


@pytest.fixture(params=["postgres", "nats"])
def engine(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind
