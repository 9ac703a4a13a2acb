"""The same as in tests/host, with a server process, real sockets and a real file."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ahp.oracle import Diverged
from tests.effort import tries
from tests.end_to_end.random_schedules import ScheduleSeries
from tests.servers import PLAIN, SERVE, sqlite_store

SCHEDULES = tries(in_ci=30, at_hand=10)


@pytest.mark.proves("ahp.reconnect.seamless", "design.deliver.order")
async def test_clients_server_and_log_agree_whatever_breaks(
    tmp_path: Path, record_property: Any
) -> None:
    series = ScheduleSeries(sqlite_store(tmp_path), SERVE)
    await series.run(range(SCHEDULES))
    for name, value in series.measured().items():
        record_property(name, value)


@pytest.mark.proves("design.speed.embedded")
async def test_they_agree_under_another_websocket_implementation(tmp_path: Path) -> None:
    await ScheduleSeries(sqlite_store(tmp_path), PLAIN).run(range(5))


@pytest.mark.parametrize("defect", ["losing", "shuffling", "hasty"])
async def test_the_check_notices_a_server_that_is(defect: str, tmp_path: Path) -> None:
    defective = (sys.executable, "-m", "tests.end_to_end.defective_server", defect, "serve")
    with pytest.raises(Diverged):
        await ScheduleSeries(sqlite_store(tmp_path), defective).run((1, 4, 7))
