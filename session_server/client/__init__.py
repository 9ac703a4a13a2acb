"""A client of the Agent Host Protocol: `async with connect(url) as client: …`

It keeps a mirror of what it watches, shows its own actions at once, and takes care of broken
connections by itself. It stands on `schemas` and `reducers` and knows nothing of the server.
"""

from session_server.client.answer_values import Plain
from session_server.client.client import Client
from session_server.client.connecting import connect
from session_server.client.errors import (
    AskRefused,
    CallFailed,
    CallRefused,
    ClientError,
    Closed,
    CommandFailed,
    ConnectionLost,
    Disconnected,
    GaveUp,
    InvalidAnswer,
    NotConnected,
    NotUnderstood,
    Refused,
    Rejected,
    RequestClosed,
    SessionExists,
    SessionGone,
    SessionNotFound,
    TooLarge,
    TooManyPending,
    Unconfirmed,
)
from session_server.client.handles import Root, Session
from session_server.client.mirror import Cause, Change
from session_server.client.protocol import Phase, Status
from session_server.client.watching import Changes
from session_server.schemas.mcp import AskedQuestion, AskOutcome, AskResult

__all__ = [
    "AskOutcome",
    "AskRefused",
    "AskResult",
    "AskedQuestion",
    "CallFailed",
    "CallRefused",
    "Cause",
    "Change",
    "Changes",
    "Client",
    "ClientError",
    "Closed",
    "CommandFailed",
    "ConnectionLost",
    "Disconnected",
    "GaveUp",
    "InvalidAnswer",
    "NotConnected",
    "NotUnderstood",
    "Phase",
    "Plain",
    "Refused",
    "Rejected",
    "RequestClosed",
    "Root",
    "Session",
    "SessionExists",
    "SessionGone",
    "SessionNotFound",
    "Status",
    "TooLarge",
    "TooManyPending",
    "Unconfirmed",
    "connect",
]
