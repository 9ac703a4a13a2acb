"""A client at a model host of its own, whose session asks two questions."""

import pytest

from tests.client.model_clients import Device, asking_host


@pytest.fixture
def laptop() -> Device:
    return Device(asking_host())
