"""The host killed at every step of a call that a 2025-era server holds open for three questions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls.killing import IN_DOUBT, Pairing, comes_by, paired, places, survives

PLACES = places(legs=range(1, 2), rounds=range(1, 4))


@pytest.fixture(scope="module", params=["http", "stdio"])
def pairing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pairing]:
    with paired("legacy", request.param, tmp_path_factory.mktemp("kill")) as pairing:
        yield pairing


@pytest.mark.slow
def test_a_held_call_of_three_questions_comes_by_every_place(
    pairing: Pairing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_by(PLACES, pairing, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.proves("design.session.restart")
@pytest.mark.parametrize("place", PLACES)
def test_a_held_call_survives_the_death_of_its_process(
    place: str, pairing: Pairing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survives((place,), pairing, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("place", IN_DOUBT)
def test_a_held_call_survives_another_death_while_it_is_in_doubt(
    place: str, pairing: Pairing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = survives(("mcp.receive#2", place), pairing, tmp_path, monkeypatch)
    assert person.doubts
