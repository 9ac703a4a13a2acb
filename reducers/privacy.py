"""What of a call may be shown."""

from typing import Any, TypeVar

import msgspec

from ..schemas.calls import Call

HIDDEN = "•••"

SHORTEST_SECRET = 4
"""Shorter texts occur by chance; hiding them everywhere would make nonsense of what is shown."""

T = TypeVar("T")


def shown_arguments(call: Call) -> str:
    """The arguments as text for people, with the private ones hidden."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    shown = {
        name: HIDDEN if name in call.private_arguments else value
        for name, value in arguments.items()
    }
    return msgspec.json.encode(masked(call, shown)).decode()


def masked(call: Call, value: T) -> T:
    """What a server says, without the private arguments that it repeats."""
    secrets = _secrets(call)
    return _masked(value, secrets) if secrets else value


def _secrets(call: Call) -> list[str]:
    """The longest first, since one may be part of another."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    found = {text for name in call.private_arguments for text in _texts(arguments.get(name))}
    return sorted(found, key=len, reverse=True)


def _texts(value: Any) -> list[str]:
    if _is_plain(value):
        return [str(value)] if len(str(value)) >= SHORTEST_SECRET else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, dict):
        return {_masked(key, secrets): _masked(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, secrets) for inner in value]
    return HIDDEN if _is_plain(value) and str(value) in secrets else value
