"""Frames that cannot be read: what they were meant to be, and which error answers them."""

from typing import Any, NamedTuple

import msgspec

from session_server.schemas.codec import (
    decode_frame_head,
    decode_undecoded_dispatch,
    outline,
)
from session_server.schemas.commands import UndecodedDispatchParams
from session_server.schemas.errors import (
    DecodingError,
    ErrorCode,
    MalformedError,
    RpcError,
    UnknownKindError,
)
from session_server.schemas.frames import FrameHead, RequestId

ANSWERING = frozenset({"result", "error"})

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Complaint(NamedTuple):
    request_id: RequestId | None
    error: RpcError


class UnreadAction(NamedTuple):
    """An action to reject; with an id it is also answered."""

    params: UndecodedDispatchParams
    request_id: RequestId | None


def meant_by(text: bytes, error: DecodingError) -> Complaint | UnreadAction | None:
    """An error to answer with, an action to reject, or nothing.

    A notification has no answer, and neither has an answer, whatever it is meant for. Of a frame
    that is nested too deep, what stands above that is still read.
    """
    try:
        text = outline(text) if isinstance(error, MalformedError) else text
        head = decode_frame_head(text)
    except DecodingError:
        is_json = not isinstance(error, MalformedError)
        return _complaint(ErrorCode.INVALID_REQUEST if is_json else ErrorCode.PARSE_ERROR, error)
    is_rpc = isinstance(head.method, str) and head.jsonrpc == "2.0"
    request_id = head.id if _is_id(head.id) else None
    if head.method is None and not ANSWERING.isdisjoint(_decode_fields(text)):
        return None
    if is_rpc and head.method == "dispatchAction":
        return _dispatch(head, request_id, error)
    if is_rpc and head.id is None:
        return None
    is_request = is_rpc and request_id is not None
    return _complaint(_code(error) if is_request else ErrorCode.INVALID_REQUEST, error, request_id)


def _dispatch(
    head: FrameHead, request_id: RequestId | None, error: DecodingError
) -> Complaint | UnreadAction:
    try:
        return UnreadAction(decode_undecoded_dispatch(bytes(head.params)), request_id)
    except DecodingError:
        return _complaint(ErrorCode.INVALID_REQUEST, error, request_id)


def _code(error: DecodingError) -> ErrorCode:
    if isinstance(error, MalformedError):
        return ErrorCode.PARSE_ERROR
    is_unknown = isinstance(error, UnknownKindError) and error.path == "$.method"
    return ErrorCode.METHOD_NOT_FOUND if is_unknown else ErrorCode.INVALID_PARAMS


def _complaint(
    code: ErrorCode, error: DecodingError, request_id: RequestId | None = None
) -> Complaint:
    return Complaint(request_id, RpcError(code=code, message=str(error)))


def _is_id(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
