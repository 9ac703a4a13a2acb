"""Frames that cannot be read: what they were meant to be, and which error answers them."""

from typing import Any, NamedTuple

from session_server.schemas.codec import decode_frame_head, decode_undecoded_dispatch
from session_server.schemas.commands import UndecodedDispatchParams
from session_server.schemas.errors import (
    DecodingError,
    ErrorCode,
    MalformedError,
    RpcError,
    UnknownKindError,
)


class Complaint(NamedTuple):
    request_id: int | None
    error: RpcError


def meant_by(text: bytes, error: DecodingError) -> Complaint | UndecodedDispatchParams | None:
    """An error to answer with, an action to reject, or nothing: a notification has no answer."""
    if isinstance(error, MalformedError):
        return _complaint(ErrorCode.PARSE_ERROR, error)
    try:
        head = decode_frame_head(text)
    except DecodingError:
        return _complaint(ErrorCode.INVALID_REQUEST, error)
    is_rpc = isinstance(head.method, str) and head.jsonrpc == "2.0"
    if is_rpc and head.method == "dispatchAction":
        return _dispatch(bytes(head.params), error)
    if is_rpc and head.id is None:
        return None
    if not _is_id(head.id):
        return _complaint(ErrorCode.INVALID_REQUEST, error)
    return _complaint(_code(error) if is_rpc else ErrorCode.INVALID_REQUEST, error, head.id)


def _dispatch(params: bytes, error: DecodingError) -> Complaint | UndecodedDispatchParams:
    try:
        return decode_undecoded_dispatch(params)
    except DecodingError:
        return _complaint(ErrorCode.INVALID_REQUEST, error)


def _code(error: DecodingError) -> ErrorCode:
    is_unknown = isinstance(error, UnknownKindError) and error.path == "$.method"
    return ErrorCode.METHOD_NOT_FOUND if is_unknown else ErrorCode.INVALID_PARAMS


def _complaint(code: ErrorCode, error: DecodingError, request_id: Any = None) -> Complaint:
    return Complaint(request_id, RpcError(code=code, message=str(error)))


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
