"""A client of the Agent Host Protocol: `async with connect(url) as client: …`

It keeps a mirror of what it watches, shows its own actions at once, and reconnects by itself. It
uses `schemas` and `reducers` and nothing of the server.

client           commands, sessions, the status of the connection
handles          a session or the root, as programs use it
connecting       the WebSocket: connect, reconnect, give up
client_protocol  the protocol without a socket: frames in, frames out
dialects         what differs between versions of AHP
conversations    sessions of AHP 0.9 and 1.x in the shapes of all versions
json_rpc         requests and their responses, and what is still to be sent
channels         the watched channels, kept across connections
mirror, mirror_kinds, echoes   confirmed state, own actions on top of it, and their confirmation
watching         changes, conditions, the list of sessions
answer_values    plain Python values as answers
http_commands    `ask` and `call_tool`, over HTTP
errors           everything that it raises
"""

from session_server.client.answer_values import Plain
from session_server.client.client import Client
from session_server.client.client_protocol import Phase, Status
from session_server.client.connecting import connect
from session_server.client.conversations import Conversation
from session_server.client.dialects import UnknownAction
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
    Unsupported,
)
from session_server.client.handles import Root, Session
from session_server.client.mirror import Cause, Change
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
    "Conversation",
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
    "UnknownAction",
    "Unsupported",
    "connect",
]
