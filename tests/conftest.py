"""What every test stands on: hypothesis profiles, coroutines as tests, and plugins of our own."""

import asyncio
import functools
import gc
import inspect
import signal
import sys
from pathlib import Path
from typing import Any

import httpx2._transports.default as transports
import pytest
from hypothesis import settings

from tests.effort import is_quick, tries

pytest_plugins = ["pytester", "tests.measurements", "tests.requirements_check", "tests.xdist_order"]

EXAMPLES = tries(in_ci=100, at_hand=10)
settings.register_profile("effort", max_examples=EXAMPLES, deadline=None, print_blob=True)
settings.load_profile("effort")

# A run in the background may have been started with interrupts ignored, and would hand that on to
# the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each client reads all certificates of the machine when it is made, which takes longer than most of
# the requests that tests send over plain HTTP. Here they are read once.
cached: Any = functools.cache(transports.create_ssl_context)
transports.create_ssl_context = cached


BOUND = 300.0
"""Seconds after which a test that waits for something has failed, on the slowest machine."""


SLOW = frozenset({"benchmarks", "end_to_end", "gateway", "mcp", "page", "stored_data"})
"""Folders whose tests start servers and browsers. Elsewhere, a slow test is marked."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are not wanted, their modules need not even be read."""
    return (is_quick(config) and collection_path.name in SLOW) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.nodeid.split("/")[1] in SLOW:
        item.add_marker("slow")


def pytest_collection_finish() -> None:
    """What is loaded by now stays, so the garbage collector need not go through it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A coroutine is a test too, in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), BOUND))
    return True


def pytest_sessionfinish() -> None:
    """Loaded only where tests have used them: they need a driver."""
    postgres, nats = sys.modules.get("tests.postgres"), sys.modules.get("tests.nats")
    if nats is not None:
        nats.remove_servers()
    if postgres is not None:
        postgres.remove_clusters()
