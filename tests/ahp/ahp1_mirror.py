"""A mirror that speaks AHP 0.9 or 1.x: it watches sessions and their chats, by its own names.

What others see in 0.3.0 is made of both, so that the same habits choose what it does next.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from session_server.reducers.ahp1.client_chat_reducer import reduce_client_chat
from session_server.reducers.ahp1.client_session_reducer import (
    reduce_client_root,
    reduce_client_session,
)
from session_server.reducers.ahp1.snapshots import Variant
from session_server.reducers.ahp1.uris import CHAT_PREFIX, chat_uri, provider_uri
from session_server.schemas.ahp.envelopes import ActionEnvelope, ActionOrigin
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.codec import Decoder, decode_session_state
from session_server.schemas.log_entries import Spelling
from session_server.schemas.wire import Seq, Uri, Wire
from tests.ahp.mirror import (
    ROOT,
    Answer,
    Frame,
    Mirror,
    Rejection,
    Removed,
    Shown,
    Stretch,
    understood,
)

VARIANTS: dict[str, Variant] = {
    "1.0.0": Variant(has_chat_marks=True, spelling=Spelling.PLAIN),
    "0.9.0": Variant(has_chat_marks=False, spelling=Spelling.PROVIDER),
}
"""The oldest clients are VS Code's, which have names of their own for sessions."""

USER = {"kind": "user"}
OF_SESSIONS = {"titleChanged", "isReadChanged", "isArchivedChanged", "levitated"}


class Envelope(Wire, frozen=True, kw_only=True):
    channel: Uri
    action: dict[str, Any]
    server_seq: Seq
    origin: ActionOrigin | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class _Frame(Wire, frozen=True, kw_only=True):
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


_envelope: Decoder[Envelope] = Decoder(Envelope)
_frame: Decoder[_Frame] = Decoder(_Frame)


@lru_cache(maxsize=4096)
def envelope_of(text: bytes) -> Envelope:
    """Everybody with the same names gets the same bytes, so they are read once for all."""
    return _envelope(text)


@lru_cache(maxsize=4096)
def ahp1_understood(text: bytes) -> Envelope | Rejection | Answer | Removed | None:
    frame = _frame(text)
    if frame.method == "action" and b'"rejectionReason"' not in text:
        return envelope_of(bytes(frame.params))
    found = understood(text)
    assert not isinstance(found, ActionEnvelope)
    return found


class Ahp1Copy:
    """Reduced as every client of these versions does it."""

    def __init__(self, shown: Shown) -> None:
        self.state: dict[str, Any] = msgspec.json.decode(shown.state)
        self.stretch = Stretch(shown.resource, shown.from_seq)
        self.position = shown.from_seq
        self._reduce: Callable[[Any, Any], Any] = reducer_of(shown.resource)

    def apply(self, envelope: Envelope) -> None:
        self.position = envelope.server_seq
        self.stretch.seqs.append(envelope.server_seq)
        self.state = self._reduce(self.state, envelope.action)


def reducer_of(channel: Uri) -> Callable[[Any, Any], Any]:
    if channel == ROOT:
        return reduce_client_root
    return reduce_client_chat if channel.startswith(CHAT_PREFIX) else reduce_client_session


class Ahp1Mirror(Mirror):
    """`providers` are those of the sessions that it may come to know."""

    def __init__(
        self,
        client_id: str,
        wanted: Iterable[Uri],
        providers: Mapping[Uri, str],
        *,
        version: str = "1.0.0",
        is_careful: bool = False,
        seen: dict[Seq, Any] | None = None,
    ) -> None:
        self.version = version
        self.variant = VARIANTS[version]
        self._sessions = {uri: self._name(uri, provider) for uri, provider in providers.items()}
        names = [name for uri in wanted for name in self.channels(uri)]
        super().__init__(client_id, names, is_careful=is_careful, seen=seen)

    def _name(self, uri: Uri, provider: str) -> Uri:
        return uri if self.variant.spelling is Spelling.PLAIN else provider_uri(uri, provider)

    def channels(self, uri: Uri) -> list[Uri]:
        """All that it watches of a session, or of the root."""
        name = self._sessions.get(uri)
        return [uri] if name is None else [name, chat_uri(name)]

    # What differs from 0.3.0

    def handshake(self) -> dict[str, Any]:
        is_vscode = self.variant.spelling is Spelling.PROVIDER
        client = {"name": "vscode-agents-window" if is_vscode else "sdk"}
        return {"protocolVersions": [self.version], "clientInfo": client}

    understood = staticmethod(ahp1_understood)
    envelope_of = staticmethod(envelope_of)
    copied = Ahp1Copy

    def removed(self, session: Uri) -> None:
        self.copies.pop(session, None)
        self.copies.pop(chat_uri(session), None)

    def sessions(self) -> dict[Uri, SessionState]:
        found: dict[Uri, SessionState] = {}
        for uri, name in self._sessions.items():
            chat, session = self.copies.get(chat_uri(name)), self.copies.get(name)
            if chat is not None:
                found[uri] = as_session(uri, chat.state)
            elif session is not None:
                found[uri] = as_session(uri, as_chat(session.state))
        return found

    def dispatch(self, channel: Uri, action: dict[str, Any]) -> Frame:
        name = self._sessions.get(channel, channel)
        on_chat, meant = as_ahp1(action)
        marks = ("session/isReadChanged", "session/isArchivedChanged")
        if meant["type"] in marks and self.variant.has_chat_marks and self._client_seq % 2:
            on_chat, meant = True, {**meant, "type": meant["type"].replace("session/", "chat/")}
        return super().dispatch(chat_uri(name) if on_chat else name, meant)


def as_ahp1(action: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """An action of 0.3.0 as clients of these versions send it, and whether to the chat."""
    family, _, name = action["type"].partition("/")
    if family == "root" or name in OF_SESSIONS:
        return False, action
    if name == "modelChanged":
        return True, {"type": "chat/draftChanged", "draft": {"text": "Draft", "origin": USER}}
    more: dict[str, Any] = {}
    if name == "turnStarted":
        more["startedAt"] = "2026-11-17T05:00:00.000Z"
    elif name == "turnCancelled":
        more["duration"] = 1
    return True, {**action, "type": f"chat/{name}", **more}


def as_session(uri: Uri, chat: dict[str, Any]) -> SessionState:
    """What clients of 0.3.0 see where this chat is seen."""
    active = chat.get("activeTurn")
    asked = [] if active is None else [p for p in active["responseParts"] if is_open(p)]
    state = {
        "summary": {
            "resource": uri,
            "provider": "",
            "title": "",
            "status": 1,
            "createdAt": 0,
            "modifiedAt": 0,
        },
        "lifecycle": "ready",
        "turns": [as_turn(turn) for turn in chat["turns"]],
        "inputRequests": [part["request"] for part in asked],
        "queuedMessages": chat.get("queuedMessages"),
    }
    if active is not None:
        state["activeTurn"] = as_turn(active)
    return decode_session_state(msgspec.json.encode(state))


def is_open(part: dict[str, Any]) -> bool:
    return part["kind"] == "inputRequest" and "response" not in part


def as_turn(turn: dict[str, Any]) -> dict[str, Any]:
    parts = [p for p in turn["responseParts"] if p["kind"] not in ("inputRequest", "error")]
    return {**turn, "responseParts": parts}


def as_chat(session: dict[str, Any]) -> dict[str, Any]:
    """Who watches the session alone still sees what waits in it, and may answer."""
    waiting = [n["request"] for n in session.get("inputNeeded", ()) if n["kind"] == "chatInput"]
    parts = [{"kind": "inputRequest", "request": request} for request in waiting]
    turn = {"id": "unseen", "message": {"text": "", "origin": USER}, "responseParts": parts}
    return {"turns": [], "activeTurn": turn}
