"""The host killed at every step of a call of three rounds.

Appends do not depend on the transport, so each of them is tried over one transport in each era;
in CI, sends and receives are tried over both.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.calls.host_kills import (
    IN_DOUBT,
    Era,
    Pairing,
    Way,
    appends,
    comes_by,
    messages,
    paired,
    survives,
)
from tests.effort import IS_CI

ROUNDS = range(1, 4)
LEGS: dict[Era, range] = {"modern": range(1, 5), "legacy": range(1, 2)}
"""A 2025-era server keeps the one request open."""

DOUBTED: dict[Era, str] = {"modern": "mcp.sent#4", "legacy": "mcp.receive#2"}
"""Where a death leaves it unknown whether the tool has run."""

WITH_APPENDS: list[tuple[Era, Way]] = [("modern", "http"), ("legacy", "stdio")]
OTHERS: list[tuple[Era, Way]] = [("modern", "stdio"), ("legacy", "http")]
PAIRINGS = [*WITH_APPENDS, *(OTHERS if IS_CI else ())]

Pairings = Callable[[Era, Way], Pairing]


def places(era: Era) -> list[str]:
    return [*appends(LEGS[era], ROUNDS), *messages(ROUNDS)]


@pytest.fixture(scope="module")
def pairings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairings]:
    known: dict[tuple[Era, Way], Pairing] = {}
    with ExitStack() as stack:

        def pairing(era: Era, way: Way) -> Pairing:
            if (era, way) not in known:
                folder = tmp_path_factory.mktemp("kill")
                known[era, way] = stack.enter_context(paired(era, way, folder))
            return known[era, way]

        yield pairing


@pytest.mark.slow
@pytest.mark.parametrize(("era", "way"), PAIRINGS)
def test_a_call_of_three_rounds_comes_by_every_place(
    era: Era, way: Way, pairings: Pairings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_by(places(era), pairings(era, way), tmp_path, monkeypatch)


DEATHS: list[tuple[Era, Way, tuple[str, ...]]] = [
    *(
        (era, way, (place,))
        for era, way in PAIRINGS
        for place in (places(era) if (era, way) in WITH_APPENDS else messages(ROUNDS))
    ),
    *((era, way, (DOUBTED[era], place)) for era, way in WITH_APPENDS for place in IN_DOUBT),
]
"""One each, or another one while it is in doubt whether the tool has run."""


@pytest.mark.slow
@pytest.mark.proves("design.session.restart")
@pytest.mark.parametrize(("era", "way", "deaths"), DEATHS, ids=str)
def test_a_call_survives_the_deaths_of_its_process(
    era: Era,
    way: Way,
    deaths: tuple[str, ...],
    pairings: Pairings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person = survives(deaths, pairings(era, way), tmp_path, monkeypatch)
    assert len(deaths) == 1 or person.doubts
