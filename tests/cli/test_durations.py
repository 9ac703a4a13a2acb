"""Lengths of time as people write them."""

import pytest

from session_server.cli.values import seconds


@pytest.mark.parametrize(
    ("text", "length"),
    [("90", 90), ("0.5", 0.5), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800)],
)
def test_a_length_of_time(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "soon", "10 minutes", "-5", "5x", "h"])
def test_anything_else_is_explained(text: str) -> None:
    with pytest.raises(ValueError, match="10m"):
        seconds(text)
