"""Lengths of time as people write them: `90`, `90s`, `10m`, `1h30m`, `2d`."""

import re
from collections.abc import Callable
from typing import Any

import typer

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")

EXAMPLE = "90s, 10m, 1h30m or 2d"


def seconds(text: str) -> float:
    """Raises `ValueError` for anything else."""
    written = text.strip().lower()
    if _PLAIN.fullmatch(written):
        return float(written)
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise ValueError(f"{text!r} is not a valid duration. Use {EXAMPLE}.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration(given: Any) -> float:
    """For options."""
    if isinstance(given, int | float):
        return float(given)
    try:
        return seconds(str(given))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def lasting(at_most: float) -> Callable[[Any], float]:
    """For options that say how long something lives: longer than no time, and bounded."""

    def checked(given: Any) -> float:
        length = duration(given)
        if not 0 < length <= at_most:
            words = f"{given!r} is too short or too long: at most {at_most / 86_400:g} days."
            raise typer.BadParameter(words)
        return length

    return checked
