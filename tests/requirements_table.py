"""Prints the state of the rules at a glance: `make requirements`."""

import contextlib
import io
import sys
from collections import Counter

import pytest
from rich.console import Console
from rich.table import Table

from tests.requirements_check import PENDING, Proofs, proofs_of, unproven


def table_of(proofs: Proofs) -> Table:
    """One row per namespace: what is proven, what lacks its test, and what waits for work."""
    columns = ("proven", "unproven", PENDING)
    counts: dict[str, Counter[str]] = {}
    for rule in proofs.rules:
        today = "proven" if rule.id in proofs.tests else "unproven"
        counts.setdefault(rule.namespace, Counter())[PENDING if rule.is_pending else today] += 1
    total = sum(counts.values(), Counter[str]())
    table = Table(show_footer=True, title=f"{total.total()} rules")
    table.add_column("rules", footer="all")
    for column in columns:
        table.add_column(column, footer=str(total[column]), justify="right")
    for namespace, count in sorted(counts.items()):
        table.add_row(namespace, *(str(count[column] or "") for column in columns))
    return table


class ProofsKept:
    """Keeps the proofs of a pytest run that is over."""

    proofs: Proofs | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.proofs = proofs_of(session.config)


def main() -> int:
    kept, said = ProofsKept(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main(["--collect-only", "-qq"], plugins=[kept])
    if status is not pytest.ExitCode.OK or kept.proofs is None:
        sys.stderr.write(said.getvalue())
        return 1
    console = Console()
    console.print(table_of(kept.proofs))
    missing = unproven(kept.proofs.rules, kept.proofs.tests)
    if missing:
        console.print("Unproven:", *missing, sep="\n  ", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
