"""Host extension: who is looking at a session right now. Never logged, never in state.

Channel `ahp-presence:/<id>` has no snapshot; `presence/update` tells, `presence/changed` is told.
"""

from typing import Annotated, TypeAlias

import msgspec

from .limits import ID_CHARS
from .principals import Author, Role
from .wire import Uri, Wire

SESSION_PREFIX = "ahp-session:/"
ROOM_PREFIX = "ahp-presence:/"

RelayedId: TypeAlias = Annotated[str, msgspec.Meta(max_length=ID_CHARS)]
"""Bounded where it is decoded: what is relayed meets no rule and no bound of a session."""


class EditingPlace(Wire, frozen=True, kw_only=True):
    request_id: RelayedId
    question_id: RelayedId


class PresenceUpdateParams(Wire, frozen=True, kw_only=True):
    channel: Uri
    editing: EditingPlace | None = None
    idle: bool | None = None
    name: str | None = None


class Present(Wire, frozen=True, kw_only=True):
    """`role` lets a client say why its own controls are off, and show who can answer."""

    client_id: str
    by: Author
    role: Role | None = None
    editing: EditingPlace | None = None
    idle: bool | None = None


class PresenceChangedParams(Wire, frozen=True, kw_only=True):
    channel: Uri
    present: tuple[Present, ...]
