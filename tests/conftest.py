"""What every test stands on: hypothesis profiles, checks of marks, and shares of the work."""

import functools
import signal
import sys
from typing import Any

import httpx._transports.default as transports
from hypothesis import settings

from tests.effort import IS_CI

pytest_plugins = ["pytester", "tests.measurements", "tests.requirements_check", "tests.sharing_out"]

settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None, derandomize=False, print_blob=True)
settings.load_profile("ci" if IS_CI else "dev")

# A run in the background may have been started with interrupts ignored, and would hand that on to
# the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each client reads all certificates of the machine when it is made, which takes longer than most of
# the requests that tests send over plain HTTP. Here they are read once.
cached: Any = functools.cache(transports.create_ssl_context)
transports.create_ssl_context = cached


def pytest_sessionfinish() -> None:
    """Loaded only where tests have used it: it needs a driver."""
    postgres = sys.modules.get("tests.postgres")
    if postgres is not None:
        postgres.remove_clusters()
