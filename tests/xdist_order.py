"""The number of worker processes and the order of tests under xdist, as a pytest plugin.

Much of the time goes into waiting for servers and browsers, so there are twice as many processes as
cores. What starts processes comes first and what only computes last, so that in the end no core
waits for the other; among those, files that take long come before short ones. Files stay whole,
since the tests of many share a server.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

FIRST = (
    "test_packaging.py",  # waits for the network
    "page",
    "log",
    "gateway",
    "calls",
    "end_to_end",
    "cli",
    "stored_data",
    "client",
    "identity",
    "http",
    "benchmarks",
    "mcp",
)
LAST = ("reducers", "schemas")
EXAMPLES = 50
"""How many ordinary tests a property takes as long as, about."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or 2 * (os.cpu_count() or 1))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = config.rootpath / "tests"
    sizes: Counter[Path] = Counter()
    for item in items:
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        sizes[item.path] += EXAMPLES if is_property else 1

    def rank(path: Path) -> tuple[int, int]:
        if not path.is_relative_to(tests):
            return (0, 0)
        folder = path.relative_to(tests).parts[0]
        if folder in FIRST:
            return (FIRST.index(folder), 0)
        return (len(FIRST) + (folder in LAST), -sizes[path])

    ranks = {path: rank(path) for path in sizes}
    items.sort(key=lambda item: ranks[item.path])
