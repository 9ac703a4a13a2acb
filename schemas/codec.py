"""Decoders and the encoder: built once, and with one kind of error.

Duplicate keys in an object: the last one wins. Fractions outside a float's range, lone surrogates,
bad UTF-8 and nesting beyond a limit are refused. The limit is higher for what the host stores: a
record holds what a frame brought, some levels deeper.
"""

import re
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from .actions import Action, ClientAction
from .commands import UndecodedDispatchParams
from .errors import DecodingError, MalformedError, MismatchError, UnknownKindError
from .frames import AgentFrame, ClientFrame, FrameHead, HostNotification
from .limits import JSON_DEPTH, STORED_DEPTH
from .record import PrivateAction, SessionRecord
from .root import RootState
from .session import SessionState
from .variants import decode_variant, encode_variant

T = TypeVar("T")

_PLACE = re.compile(r"(?P<reason>.*) - at `\$(?P<path>[^`]*)`", re.DOTALL)
_UNKNOWN_TAG = re.compile(r"Invalid value '(?P<kind>.*)'\Z", re.DOTALL)
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


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
            if raw.count(b"[") + raw.count(b"{") > self._depth and is_too_deep(raw, self._depth):
                raise MalformedError(f"nested deeper than {self._depth} levels")
            decoded: T = self._decode(raw)
        except msgspec.ValidationError as error:
            return self._despite(_explained(raw, error), raw)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise MalformedError(str(error)) from None
        return decoded

    def _despite(self, error: DecodingError, _raw: bytes) -> T:
        """What can still be made of it; here, nothing."""
        raise error from None


class ClientFrameDecoder(Decoder[T]):
    """What a client writes where only the host writes is overwritten, so it may be anything."""

    __slots__ = ()

    def _despite(self, error: DecodingError, raw: bytes) -> T:
        if not isinstance(error, MismatchError) or "._meta" not in error.path:
            raise error from None
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


def is_too_deep(raw: bytes, limit: int) -> bool:
    """Counts brackets outside strings; only texts with many brackets get here."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(raw):
        first = token[0][:1]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first != b'"':
            depth -= 1
    return False


def _explained(raw: bytes, error: msgspec.ValidationError) -> DecodingError:
    """msgspec stops at the first mismatch, so what follows it may not even be JSON.

    What went wrong it tells in words only; the tests pin the ones relied on here.
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


def _placed(words: str) -> tuple[str, str]:
    """What went wrong, and where: within open families each level appends its place."""
    path = ""
    while found := _PLACE.fullmatch(words):
        words, path = found["reason"], path + found["path"]
    return words, f"${path}"


encode = msgspec.json.Encoder(enc_hook=encode_variant).encode

decode_client_frame: Decoder[ClientFrame] = ClientFrameDecoder(ClientFrame, JSON_DEPTH)
decode_agent_frame: Decoder[AgentFrame] = Decoder(AgentFrame, JSON_DEPTH)
decode_frame_head: Decoder[FrameHead] = Decoder(FrameHead, JSON_DEPTH)
decode_undecoded_dispatch: Decoder[UndecodedDispatchParams] = Decoder(
    UndecodedDispatchParams, JSON_DEPTH
)
decode_host_notification: Decoder[HostNotification] = Decoder(HostNotification)
decode_client_action: Decoder[ClientAction] = Decoder(ClientAction, JSON_DEPTH)
decode_action: Decoder[Action] = Decoder(Action, JSON_DEPTH)
decode_record_action: Decoder[Action | PrivateAction] = Decoder(Action | PrivateAction)
decode_root_state: Decoder[RootState] = Decoder(RootState)
decode_session_state: Decoder[SessionState] = Decoder(SessionState)
decode_session_record: Decoder[SessionRecord] = Decoder(SessionRecord)
