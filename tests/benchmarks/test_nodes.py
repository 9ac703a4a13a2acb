"""What is measured of several nodes works, briefly."""

import shutil

import pytest

from benchmarks import nodes
from benchmarks.load import scratch
from benchmarks.results import Results

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


@pytest.mark.parametrize(
    ("on_store", "row"),
    [(nodes.on_sqlite, "SQLite"), (nodes.on_postgres, "PostgreSQL, nodes: 2")],
)
def test_nodes_under_load_are_measured(on_store: nodes.OnStore, row: str) -> None:
    results = Results()
    with scratch() as folder, on_store(folder) as store:
        count = 2 if store.is_shared else 1
        assert nodes.measured(results, store, folder, count, seconds=0.2) > 0
    assert results.rows(nodes.COST) == results.rows(nodes.PACE) == [row]
    costs = [results.find(nodes.COST, row, column) for column in results.columns(nodes.COST)]
    assert all(cost is not None and cost.median > 0 for cost in costs)
    assert len(costs) == (2 if store.is_shared else 1)
