"""The rules of `requirements.toml` and the tests that prove them, as a pytest plugin.

A test says `@pytest.mark.proves("some.rule.id")`. An unknown id stops the collection; what is
proven is in `proofs_of(config)`, judged by `test_requirements.py` and shown by
`requirements_table.py`, which imports this before pytest does: PYTEST_DONT_REWRITE.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.effort import is_quick

PENDING = "pending"
ID = re.compile(r"[a-z]+(\.[a-z0-9-]+){2,}")


class Rule(NamedTuple):
    """What must be true; a pending one not yet, but after work that is still to come."""

    id: str
    text: str
    is_pending: bool = False

    @property
    def namespace(self) -> str:
        return ".".join(self.id.split(".")[:2])


class Proofs(msgspec.Struct, kw_only=True):
    """The rules, the tests that prove each, and whether every test was looked at."""

    rules: tuple[Rule, ...]
    tests: dict[str, list[str]] = {}
    is_partial: bool = False


PROOFS = pytest.StashKey[Proofs]()


def load_rules(path: Path) -> tuple[Rule, ...]:
    """A table `[area.topic]` has a line for each rule: its name and its text."""
    areas = tomllib.loads(path.read_text())
    pending = areas.pop(PENDING, {}).items()
    return (
        *(
            Rule(f"{area}.{topic}.{name}", text)
            for area, topics in areas.items()
            for topic, rules in topics.items()
            for name, text in rules.items()
        ),
        *(Rule(id_, text, is_pending=True) for id_, text in pending),
    )


def proofs_of(config: pytest.Config) -> Proofs:
    return config.stash[PROOFS]


def unproven(rules: Iterable[Rule], proven: Mapping[str, object]) -> list[str]:
    """Rules that hold now according to the list, but that no test proves."""
    return [rule.id for rule in rules if not rule.is_pending and rule.id not in proven]


def overtaken(rules: Iterable[Rule], proven: Mapping[str, object]) -> list[str]:
    """Rules that a test proves although the list says that they are pending."""
    return [rule.id for rule in rules if rule.is_pending and rule.id in proven]


def faults(rules: Iterable[Rule]) -> list[str]:
    """What is wrong with the list itself."""
    rules = tuple(rules)
    ids = Counter(rule.id for rule in rules)
    texts = Counter(rule.text for rule in rules)
    found = [f"{id_}: listed {count} times" for id_, count in ids.items() if count > 1]
    for rule in rules:
        if not ID.fullmatch(rule.id):
            found.append(f"{rule.id}: not an id of the form area.topic.rule")
        if not rule.text or texts[rule.text] > 1:
            found.append(f"{rule.id}: its text is empty or not its own")
    return found


def pytest_configure(config: pytest.Config) -> None:
    rules = load_rules(config.rootpath / "tests" / "requirements.toml")
    config.stash[PROOFS] = Proofs(rules=rules, is_partial=is_partial(config))


def is_partial(config: pytest.Config) -> bool:
    """Whether some tests are never looked at. Those deselected by a mark or a name still are."""
    whole = {config.rootpath, config.rootpath / "tests"}
    chosen = {config.invocation_params.dir / argument for argument in config.args}
    narrowing = ("ignore", "ignore_glob", "deselect", "lf")
    is_narrowed = any(config.getoption(option, None) for option in narrowing)
    return not chosen & whole or is_narrowed or is_quick(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    if any(item.iter_markers("skip")) or any(item.iter_markers("xfail")):
        return
    tests = proofs_of(item.config).tests
    for mark in item.iter_markers("proves"):
        for id_ in mark.args:
            tests.setdefault(id_, []).append(item.nodeid)


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    proofs = proofs_of(config)
    known = {rule.id for rule in proofs.rules}
    unknown = [f"{id_} in {tests[0]}" for id_, tests in proofs.tests.items() if id_ not in known]
    if unknown:
        raise pytest.UsageError("tests prove rules that requirements.toml lacks:", *unknown)
