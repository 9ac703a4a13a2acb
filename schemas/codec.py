"""Decoders and the encoder: built once, and with one kind of error.

Duplicate keys in an object: the last one wins. Fractions outside a float's range, bad UTF-8 and
nesting beyond a limit are refused. The limit is higher for what the host stores: a record holds
what a frame brought, some levels deeper. A lone surrogate, which JavaScript's `JSON.stringify`
writes for half an emoji, becomes U+FFFD in a frame and is refused elsewhere.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec

from session_server.schemas.ahp.actions import Action, ClientAction
from session_server.schemas.ahp.commands import UndecodedDispatchParams
from session_server.schemas.ahp.frames import AgentFrame, ClientFrame, FrameHead, HostNotification
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.ahp1.methods import ClientFrame as Ahp1Frame
from session_server.schemas.errors import (
    DecodingError,
    MalformedError,
    MismatchError,
    UnknownKindError,
)
from session_server.schemas.limits import JSON_DEPTH, STORED_DEPTH
from session_server.schemas.log_entries import IssuedTokens, KnownClients, Logged
from session_server.schemas.record import Outline, PrivateAction, SessionRecord
from session_server.schemas.wire import decode_variant, encode_variant

T = TypeVar("T")

_PLACE = re.compile(r"(?P<reason>.*) - at `\$(?P<path>[^`]*)`", re.DOTALL)
_UNKNOWN_TAG = re.compile(r"Invalid value '(?P<kind>.*)'\Z", re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)

_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

OUTLINE_LEVELS = 3
"""A frame, its params, and an action in them."""

OUTLINE_TOKENS = 20_000
"""Strings and brackets that are looked at to tell whose frame could not be read."""


LONE_SURROGATE = "a string holds half of a surrogate pair, such as \\ud83d without what follows it"

_decode_anything = msgspec.json.Decoder().decode


class Decoder(Generic[T]):
    """Decodes one shape. Every failure is a `DecodingError`."""

    __slots__ = ("_decode", "_depth")

    def __init__(self, shape: Any, depth: int = STORED_DEPTH) -> None:
        self._decode = msgspec.json.Decoder(shape, dec_hook=decode_variant).decode
        self._depth = depth

    def __call__(self, data: bytes | str) -> T:
        raw = _utf8(data) if isinstance(data, str) else data
        try:
            if not raw.isascii():
                raw.decode()  # msgspec skips over the text of fields that it does not know
            # As `is_too_deep` counts, but without a call for every frame.
            if raw.count(b"[") + raw.count(b"{") > self._depth and is_too_deep(raw, self._depth):
                raise MalformedError(f"nested deeper than {self._depth} levels")
            decoded: T = self._decode(raw)
        except msgspec.ValidationError as error:
            return self._despite(_explained(raw, error), raw)
        except (msgspec.DecodeError, UnicodeError) as error:
            return self._despite(MalformedError(str(error)), raw)
        return decoded

    def _despite(self, error: DecodingError, raw: bytes) -> T:
        """What can still be made of it; here, nothing."""
        if isinstance(error, MalformedError) and _without_lone_surrogates(raw) != raw:
            raise MalformedError(LONE_SURROGATE)  # msgspec says that the data was truncated
        raise error from None


class FrameDecoder(Decoder[T]):
    """Half an emoji, as JavaScript's strings may hold it, costs nobody a frame."""

    __slots__ = ()

    def _despite(self, error: DecodingError, raw: bytes) -> T:
        repaired = _without_lone_surrogates(raw) if isinstance(error, MalformedError) else raw
        if repaired == raw:
            raise error from None
        return self(repaired)


class ClientFrameDecoder(FrameDecoder[T]):
    """What a client writes where only the host writes is overwritten, so it may be anything."""

    __slots__ = ()

    def _despite(self, error: DecodingError, raw: bytes) -> T:
        if not isinstance(error, MismatchError) or "._meta" not in error.path:
            return super()._despite(error, raw)
        frame = _decode_anything(raw)
        holders = [holder for holder in _holders_of_host_fields(frame) if "_meta" in holder]
        if not holders:
            raise error from None
        for holder in holders:
            del holder["_meta"]
        return self(encode(frame))


def _holders_of_host_fields(frame: Any) -> Iterator[dict[str, Any]]:
    """The answers of a dispatched action."""
    action = _get(_get(frame, "params"), "action")
    answers = _get(action, "answers")
    many = answers.values() if isinstance(answers, dict) else ()
    found = (_get(action, "answer"), *many)
    return (holder for holder in found if isinstance(holder, dict))


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MalformedError(str(error)) from None


def _without_lone_surrogates(raw: bytes) -> bytes:
    return _ESCAPE.sub(lambda escape: escape[0] if escape["lone"] is None else b"\\ufffd", raw)


def is_too_deep(raw: bytes, limit: int) -> bool:
    """Whether brackets outside strings are nested deeper than this.

    Each pass takes the innermost pairs away, so what is left after `limit` passes was deeper.
    """
    if raw.count(b"[") + raw.count(b"{") <= limit:
        return False
    brackets = _STRING.sub(b"", raw).translate(_ONE_KIND, _NO_BRACKETS)
    if b"[" * (limit + 1) in brackets:
        return True
    for _ in range(limit):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def outline(raw: bytes) -> bytes:
    """The same text without what is nested deeper than an action's fields: replaced by `null`.

    It is JSON where only what was left out is not, or is nested too deep.
    """
    kept: list[bytes] = []
    depth = start = 0
    for token in islice(_STRING_OR_BRACKET.finditer(raw), OUTLINE_TOKENS):
        first = token[0][:1]
        if first in b"[{":
            if depth == OUTLINE_LEVELS:
                kept.append(raw[start : token.start()])
            depth += 1
        elif first in b"]}":
            depth -= 1
            if depth == OUTLINE_LEVELS:
                start = token.end()
    if depth <= OUTLINE_LEVELS:
        kept.append(raw[start:])
    return b"null".join(kept)


def _explained(raw: bytes, error: msgspec.ValidationError) -> DecodingError:
    """msgspec stops at the first mismatch, so what follows it may not even be JSON.

    Its errors have no codes, only messages; tests pin the ones that are relied on here.
    """
    try:
        _decode_anything(raw)
    except (msgspec.DecodeError, UnicodeError) as syntax:
        return MalformedError(str(syntax))
    reason, path = _placed(str(error))
    unknown = _UNKNOWN_TAG.fullmatch(reason)
    if unknown is not None:
        return UnknownKindError(unknown["kind"], path)
    return MismatchError(reason, path)


def _placed(text: str) -> tuple[str, str]:
    """What went wrong, and where: within open families each level appends its place."""
    path = ""
    while found := _PLACE.fullmatch(text):
        text, path = found["reason"], path + found["path"]
    return text, f"${path}"


encode = msgspec.json.Encoder(enc_hook=encode_variant).encode

decode_client_frame: Decoder[ClientFrame] = ClientFrameDecoder(ClientFrame, JSON_DEPTH)
decode_agent_frame: Decoder[AgentFrame] = FrameDecoder(AgentFrame, JSON_DEPTH)
decode_frame_head: Decoder[FrameHead] = FrameDecoder(FrameHead, JSON_DEPTH)
decode_undecoded_dispatch: Decoder[UndecodedDispatchParams] = FrameDecoder(
    UndecodedDispatchParams, JSON_DEPTH
)
decode_ahp1_frame: Decoder[Ahp1Frame] = ClientFrameDecoder(Ahp1Frame, JSON_DEPTH)
"""Of a client of AHP 0.9 or 1.x."""
decode_host_notification: Decoder[HostNotification] = Decoder(HostNotification)
decode_client_action: Decoder[ClientAction] = Decoder(ClientAction, JSON_DEPTH)
decode_action: Decoder[Action] = Decoder(Action, JSON_DEPTH)
decode_record_action: Decoder[Action | PrivateAction] = Decoder(Action | PrivateAction)
decode_root_state: Decoder[RootState] = Decoder(RootState)
decode_session_state: Decoder[SessionState] = Decoder(SessionState)
decode_session_record: Decoder[SessionRecord] = Decoder(SessionRecord)
decode_outline: Decoder[Outline] = Decoder(Outline)
decode_logged: Decoder[Logged] = Decoder(Logged)
decode_known_clients: Decoder[KnownClients] = Decoder(KnownClients)
decode_issued_tokens: Decoder[IssuedTokens] = Decoder(IssuedTokens)
