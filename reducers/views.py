"""Responses as the authors of tools want to read them."""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from session_server.schemas.mcp import Content
from session_server.schemas.wire import Wire

M = TypeVar("M")


class Missing(Wire, frozen=True, kw_only=True):
    """Nothing came for this key; asking again is the way on."""


class Accepted(Wire, frozen=True, kw_only=True):
    content: Content | None = None


class Declined(Wire, frozen=True, kw_only=True):
    """A person said no."""


class Cancelled(Wire, frozen=True, kw_only=True):
    """Nobody decided: the question was closed, withdrawn, or its deadline passed."""


class OtherKind(Wire, frozen=True, kw_only=True):
    """The response to a sampling or roots request, or one that is malformed."""

    raw: Any


ResponseView: TypeAlias = Missing | Accepted | Declined | Cancelled | OtherKind


def input_response(responses: Mapping[str, Any] | None, key: str) -> ResponseView:
    """The response for a key, told apart by kind."""
    raw = (responses or {}).get(key)
    if raw is None:
        return Missing()
    if not isinstance(raw, Mapping):
        raw = msgspec.to_builtins(raw)
    match raw:
        case {"action": "accept"}:
            return Accepted(content=raw.get("content"))
        case {"action": "decline"}:
            return Declined()
        case {"action": "cancel"}:
            return Cancelled()
        case _:
            return OtherKind(raw=raw)


def accepted_content(responses: Mapping[str, Any] | None, key: str, model: type[M]) -> M | None:
    """The accepted content as a `model`, or `None` if there is none.

    `model` is anything msgspec converts to (Struct, dataclass, TypedDict, `dict`), or a class with
    `model_validate`, such as a pydantic model. Content of another shape raises the model's error.
    """
    view = input_response(responses, key)
    if not isinstance(view, Accepted) or view.content is None:
        return None
    validate = getattr(model, "model_validate", None)
    if validate is not None:
        validated: M = validate(view.content)
        return validated
    return msgspec.convert(view.content, model)
