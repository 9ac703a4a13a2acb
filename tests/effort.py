"""How hard tests look for what is wrong: long in CI, briefly while somebody waits for them."""

import os

IS_CI = os.environ.get("CI") == "true"
FACTOR = int(os.environ.get("TRIES", "1"))
"""`TRIES=10 make test` looks ten times as hard, for a night."""


def tries(in_ci: int, at_hand: int) -> int:
    return FACTOR * (in_ci if IS_CI else at_hand)


PATIENCE = 60.0
"""Seconds for something that should happen at once, on a machine that is busy with other things."""
