"""How hard tests look for what is wrong: long in CI, briefly while somebody waits for them."""

import os

import pytest

IS_CI = os.environ.get("CI") == "true"
FACTOR = int(os.environ.get("TRIES", "1"))
"""`TRIES=10 make test` looks ten times as hard, for a night."""


def tries(in_ci: int, at_hand: int) -> int:
    return FACTOR * (in_ci if IS_CI else at_hand)


def is_quick(config: pytest.Config) -> bool:
    """Whether slow tests are not wanted, and some of them not looked at."""
    return bool(config.getoption("markexpr") == "not slow")


PATIENCE = 60.0
"""Seconds for something that should happen at once, on a machine that is busy with other things."""
