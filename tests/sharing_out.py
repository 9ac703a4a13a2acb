"""How tests are shared out among processes, as a pytest plugin.

Much of the time goes into waiting for servers and browsers, so there is one process more than there
are cores. What starts processes comes first and what only computes last, so that in the end no core
waits for the other. Files stay whole, since the tests of many share a server.
"""

import os

import pytest

FIRST = (
    "page",
    "gateway",
    "calls",
    "end_to_end",
    "benchmarks",
    "cli",
    "client",
    "identity",
    "mcp",
    "http",
    "log",
)
LAST = ("reducers", "schemas")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or (os.cpu_count() or 1) + 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = config.rootpath / "tests"

    def rank(item: pytest.Item) -> int:
        if not item.path.is_relative_to(tests):
            return 0
        folder = item.path.relative_to(tests).parts[0]
        if folder in FIRST:
            return FIRST.index(folder)
        return len(FIRST) + (folder in LAST)

    items.sort(key=rank)
