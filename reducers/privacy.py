"""What of a call may be shown."""

from typing import Any

import msgspec

from ..schemas.calls import Call

HIDDEN = "•••"


def shown_arguments(call: Call) -> str:
    """The arguments as text for people, with the private ones hidden."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    shown = {
        name: HIDDEN if name in call.private_arguments else value
        for name, value in arguments.items()
    }
    return msgspec.json.encode(shown).decode()
