"""Taking up a leg that was under way when the host was restarted, with what its client has said.

What is needed for it travels in the state that the client carries, sealed as everything in there. A
2025-era server is called again from the start; what it then asks in the same words is not asked
again. It may have run already, so the client is asked first, unless running twice is harmless.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

CARRIED_BYTES = 65_536
"""Of answers in a state. With more, a leg is not taken up after a restart."""

AGAIN = "runAgain"
NOT_AGAIN = "It was not run again; whether it ran before the host was restarted is not known."

Given = tuple[str, dict[str, Any]]
"""A question, by its fingerprint, and the answer to it."""


class Before(msgspec.Struct, frozen=True, omit_defaults=True):
    """`sent`: what the leg adds to the original request. `asked`: questions that were open."""

    sent: dict[str, Any] = {}
    given: tuple[Given, ...] = ()
    asked: dict[str, str] = {}

    def answered(self, responses: Mapping[str, Any]) -> "Before":
        """With what a client has brought: keys that were never asked for are passed over."""
        brought = tuple(
            (self.asked[key], response)
            for key, response in responses.items()
            if key in self.asked and isinstance(response, dict)
        )
        return Before(sent=self.sent, given=self.given + brought)


def fingerprint_of(question: Mapping[str, Any]) -> str:
    """The same for the same words; an id of an elicitation is new each time."""
    params = {k: v for k, v in question["params"].items() if k not in ("elicitationId", "_meta")}
    words = msgspec.json.encode((question["method"], params), order="deterministic")
    return hashlib.sha256(words).hexdigest()[:32]


def packed(before: Before) -> dict[str, Any] | None:
    """For the state; nothing if it is too large to be carried."""
    plain: dict[str, Any] = msgspec.to_builtins(before)
    return plain if len(msgspec.json.encode(plain)) <= CARRIED_BYTES else None


def unpacked(plain: Mapping[str, Any]) -> Before:
    return msgspec.convert(plain, Before)


def run_again(target: str) -> dict[str, Any]:
    """The question to the client, as a 2026-era server asks it."""
    sure = {"type": "boolean", "title": "Run it again?"}
    schema = {"type": "object", "properties": {AGAIN: sure}, "required": [AGAIN]}
    words = f"The host was restarted. {target} may already have run. Run it again?"
    params = {"mode": "form", "message": words, "requestedSchema": schema}
    return {AGAIN: {"method": "elicitation/create", "params": params}}


def is_agreed(response: Any) -> bool:
    if not isinstance(response, dict) or response.get("action") != "accept":
        return False
    content = response.get("content")
    return isinstance(content, dict) and content.get(AGAIN) is True


def can_fill_forms(capabilities: Mapping[str, Any]) -> bool:
    """An elicitation capability that names no modes is one for forms."""
    elicitation = capabilities.get("elicitation")
    return elicitation is not None and (not elicitation or "form" in elicitation)
