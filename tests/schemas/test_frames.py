"""Frames: one per method, with ids where an answer is due and a channel in all of their params."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import Ready, TitleChanged
from session_server.schemas.ahp.commands import (
    InitializeResult,
    ReconnectReplay,
    ReconnectSnapshot,
    Snapshot,
    SubscribeResult,
)
from session_server.schemas.ahp.envelopes import (
    ActionEnvelope,
    ActionOrigin,
    EnvelopeMeta,
    RejectionEnvelope,
)
from session_server.schemas.ahp.session import Status
from session_server.schemas.codec import (
    Decoder,
    decode_agent_frame,
    decode_client_frame,
    decode_host_notification,
    encode,
)
from session_server.schemas.errors import (
    AuthRequiredData,
    DecodingError,
    ErrorCode,
    MismatchError,
    PermissionDeniedData,
    RpcError,
    UnknownKindError,
    UnsupportedVersionData,
)
from session_server.schemas.principals import Author
from tests.schemas.decoding import plain, tags
from tests.strategies import shapes

ROOT = "ahp-root://"
SESSION = "ahp-session:/1"

REQUESTS: dict[str, tuple[type[msgspec.Struct], dict[str, Any]]] = {
    "initialize": (frames.Initialize, {"protocolVersions": ["0.3.0"], "clientId": "c"}),
    "ping": (frames.Ping, {}),
    "reconnect": (
        frames.Reconnect,
        {"clientId": "c", "lastSeenServerSeq": 0, "subscriptions": [ROOT]},
    ),
    "listSessions": (frames.ListSessions, {}),
    "authenticate": (frames.Authenticate, {"resource": "https://r.example", "token": "t"}),
    "resolveSessionConfig": (frames.ResolveSessionConfig, {}),
    "sessionConfigCompletions": (frames.SessionConfigCompletions, {"property": "p"}),
    "subscribe": (frames.Subscribe, {}),
    "createSession": (frames.CreateSession, {}),
    "disposeSession": (frames.DisposeSession, {}),
    "fetchTurns": (frames.FetchTurns, {}),
    "completions": (frames.Completions, {"kind": "message", "text": "@", "offset": 1}),
}
NOTIFICATIONS: dict[str, tuple[type[msgspec.Struct], dict[str, Any]]] = {
    "unsubscribe": (frames.Unsubscribe, {}),
    "dispatchAction": (
        frames.DispatchAction,
        {"clientSeq": 1, "action": {"type": "session/titleChanged", "title": "t"}},
    ),
    "presence/update": (frames.PresenceUpdate, {}),
}
METHODS = REQUESTS | NOTIFICATIONS
CONNECTION_LEVEL = (
    "initialize",
    "ping",
    "reconnect",
    "listSessions",
    "authenticate",
    "resolveSessionConfig",
    "sessionConfigCompletions",
)
NOT_OFFERED = ("createTerminal", "resourceRead", "invokeChangesetOperation")
"""Of AHP; others are not offered either, as `METHODS` are all."""
every_method = pytest.mark.parametrize("method", METHODS)


def frame(method: str, **changes: Any) -> dict[str, Any]:
    channel = ROOT if method in CONNECTION_LEVEL else SESSION
    whole = {
        "jsonrpc": "2.0",
        "method": method,
        "params": {"channel": channel, **METHODS[method][1]},
        **({"id": 1} if method in REQUESTS else {}),
        **changes,
    }
    return {key: value for key, value in whole.items() if value is not None}


def refusal(data: Any, decode: Decoder[Any] = decode_client_frame) -> DecodingError:
    with pytest.raises(DecodingError) as caught:
        decode(encode(data))
    return caught.value


# From clients


def test_every_method_is_looked_at() -> None:
    assert tags(frames.ClientFrame) == tags(frames.AgentFrame) == set(METHODS)


@every_method
def test_a_frame_of_a_client_or_an_agent_decodes_to_its_method(method: str) -> None:
    of_client = decode_client_frame(encode(frame(method)))
    of_agent = decode_agent_frame(encode(frame(method)))
    assert plain(of_client) == plain(of_agent) == frame(method)
    assert type(of_client) is METHODS[method][0]
    assert isinstance(of_agent, frames.AgentDispatchAction) is (method == "dispatchAction")


@pytest.mark.proves("ahp.frames.single")
@every_method
def test_a_list_of_messages_is_refused(method: str) -> None:
    error = refusal([frame(method)])
    assert isinstance(error, MismatchError)
    assert error.path == "$"


@pytest.mark.proves("ahp.frames.version-marker")
@every_method
def test_a_client_must_say_the_version_of_json_rpc(method: str) -> None:
    versions: tuple[Any, ...] = ("1.0", "2", "", 2.0, [], False)
    for version in versions:
        assert refusal(frame(method, jsonrpc=version)).path == "$.jsonrpc"
    assert "`jsonrpc`" in refusal(frame(method, jsonrpc=None)).reason


@pytest.mark.proves("ahp.frames.ids")
@every_method
def test_an_id_is_a_number_or_a_text(method: str) -> None:
    for identity in (0, -1, 1.5, 2**60, "", "1"):
        assert decode_client_frame(encode(frame(method, id=identity))).id == identity
    others: tuple[Any, ...] = (True, [], {})
    for other in others:
        assert refusal(frame(method, id=other)).path == "$.id"


@pytest.mark.proves("ahp.frames.client-notifications")
def test_a_request_needs_an_id_and_a_notification_none() -> None:
    for method in REQUESTS:
        assert "`id`" in refusal(frame(method, id=None)).reason
    for method in NOTIFICATIONS:
        assert decode_client_frame(encode(frame(method, id=None))).id is None


@pytest.mark.proves("ahp.frames.channel")
@every_method
def test_params_without_a_channel_are_refused(method: str) -> None:
    params = METHODS[method][1]
    if method == "reconnect":  # which some clients send without one
        assert decode_client_frame(encode(frame(method, params=params))).params.channel is None
    else:
        assert "`channel`" in refusal(frame(method, params=params)).reason
    assert refusal(frame(method, params={**params, "channel": 1})).path == "$.params.channel"
    assert "`params`" in refusal(frame(method, params=None)).reason


@pytest.mark.proves("ahp.frames.root-channel")
@pytest.mark.parametrize("method", CONNECTION_LEVEL)
def test_a_connection_level_command_is_for_the_root_alone(method: str) -> None:
    for channel in (SESSION, "ahp-root:", "ahp-root:///", "AHP-ROOT://", ""):
        error = refusal(frame(method, params={**METHODS[method][1], "channel": channel}))
        assert isinstance(error, MismatchError)
        assert error.path == "$.params.channel"


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(CONNECTION_LEVEL)))
def test_the_other_methods_are_for_any_channel(method: str) -> None:
    for channel in (SESSION, ROOT, "any:/scheme"):
        params = {**METHODS[method][1], "channel": channel}
        decoded: Any = decode_client_frame(encode(frame(method, params=params)))
        assert decoded.params.channel == channel


@pytest.mark.proves("ahp.errors.not-offered", "ahp.errors.malformed")
@pytest.mark.parametrize("method", [*NOT_OFFERED, "action", "Ping", ""])
def test_a_method_that_is_not_offered_is_unknown(method: str) -> None:
    data = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"channel": ROOT}}
    for decode in (decode_client_frame, decode_agent_frame):
        error = refusal(data, decode)
        assert isinstance(error, UnknownKindError)
        assert (error.kind, error.path) == (method, "$.method")


# To clients


@pytest.mark.proves("ahp.frames.void-result", "ahp.frames.version-marker")
def test_a_void_result_is_null_and_there() -> None:
    assert encode(frames.Result(id=7, result=None)) == b'{"jsonrpc":"2.0","id":7,"result":null}'


@pytest.mark.proves("ahp.errors.parse-id")
def test_the_failure_of_an_unreadable_frame_has_a_null_id() -> None:
    error = RpcError(code=ErrorCode.PARSE_ERROR, message="Not JSON")
    assert plain(frames.Failure(id=None, error=error)) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "Not JSON"},
    }


@pytest.mark.proves("ahp.errors.codes")
def test_errors_have_their_published_numbers() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        "PARSE_ERROR": -32700,
        "INVALID_REQUEST": -32600,
        "METHOD_NOT_FOUND": -32601,
        "INVALID_PARAMS": -32602,
        "INTERNAL_ERROR": -32603,
        "SESSION_NOT_FOUND": -32001,
        "PROVIDER_NOT_FOUND": -32002,
        "SESSION_EXISTS": -32003,
        "TURN_IN_PROGRESS": -32004,
        "UNSUPPORTED_PROTOCOL_VERSION": -32005,
        "CONTENT_NOT_FOUND": -32006,
        "AUTH_REQUIRED": -32007,
        "NOT_FOUND": -32008,
        "PERMISSION_DENIED": -32009,
        "ALREADY_EXISTS": -32010,
        "CONFLICT": -32011,
    }


@pytest.mark.proves("ahp.errors.data")
def test_the_data_of_errors_has_its_published_names() -> None:
    assert plain(UnsupportedVersionData(supported_versions=("0.3.0",))) == {
        "supportedVersions": ["0.3.0"]
    }
    assert plain(AuthRequiredData(resources=())) == {"resources": []}
    assert plain(PermissionDeniedData()) == {}
    nested = RpcError(code=-32005, message="m", data=UnsupportedVersionData(supported_versions=()))
    assert plain(nested)["data"] == {"supportedVersions": []}


@pytest.mark.proves("ahp.status.values")
def test_the_status_bits_have_their_published_numbers() -> None:
    assert [int(bit) for bit in (Status.IDLE, Status.ERROR, Status.IN_PROGRESS)] == [1, 2, 8]
    assert [int(bit) for bit in (Status.IS_READ, Status.IS_ARCHIVED)] == [32, 64]
    assert int(Status.INPUT_NEEDED) == 24


@pytest.mark.proves(
    "ahp.frames.host-notifications", "ahp.frames.version-marker", "ahp.frames.channel"
)
@pytest.mark.parametrize("kind", get_args(frames.HostNotification), ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_a_notification_goes_out_without_an_id(kind: Any, data: st.DataObject) -> None:
    notification = data.draw(shapes(kind))
    out = plain(notification)
    assert set(out) == {"jsonrpc", "method", "params"}
    assert out["jsonrpc"] == "2.0"
    assert out["method"] == kind.__struct_config__.tag
    assert "channel" in out["params"]
    assert decode_host_notification(encode(notification)) == notification


@pytest.mark.proves("ahp.frames.host-notifications")
def test_the_notifications_of_the_host_are_these() -> None:
    assert tags(frames.HostNotification) == {
        "action",
        "root/sessionAdded",
        "root/sessionRemoved",
        "root/sessionSummaryChanged",
        "auth/required",
        "presence/changed",
    }


@pytest.mark.proves("ahp.envelope.shape", "ahp.shapes.optional-turn-fields")
def test_an_envelope_of_the_host_has_no_origin() -> None:
    envelope = ActionEnvelope(channel=SESSION, action=Ready(), server_seq=4)
    out = {"channel": SESSION, "action": {"type": "session/ready"}, "serverSeq": 4}
    assert plain(envelope) == out


@pytest.mark.proves("ahp.envelope.shape", "design.wire.envelope-meta", "ahp.frames.integers")
def test_an_envelope_of_a_client_says_whose_and_when() -> None:
    envelope = ActionEnvelope(
        channel=SESSION,
        action=TitleChanged(title="t"),
        server_seq=4,
        origin=ActionOrigin(client_id="c", client_seq=2),
        meta=EnvelopeMeta(at=1_700_000_000_000, by=Author(id="u", name="Ana")),
    )
    assert encode(envelope) == (
        b'{"channel":"ahp-session:/1","action":{"type":"session/titleChanged","title":"t"},'
        b'"serverSeq":4,"origin":{"clientId":"c","clientSeq":2},'
        b'"_meta":{"at":1700000000000,"by":{"id":"u","name":"Ana"}}}'
    )


@pytest.mark.proves("ahp.envelope.rejection")
def test_a_rejection_returns_the_action_as_it_was_sent() -> None:
    sent = b'{ "type":"session/unheardOf",  "z":1.50, "a":[null] }'
    rejection = frames.RejectionNotification(
        params=RejectionEnvelope(
            channel=SESSION,
            action=msgspec.Raw(sent),
            server_seq=4,
            origin=ActionOrigin(client_id="c", client_seq=2),
            rejection_reason="Unknown action.",
        )
    )
    encoded = encode(rejection)
    assert sent in encoded
    out = json.loads(encoded)
    assert out["method"] == "action"
    assert set(out["params"]) == {"channel", "action", "serverSeq", "origin", "rejectionReason"}
    assert out["params"]["origin"] == {"clientId": "c", "clientSeq": 2}


@pytest.mark.proves("ahp.reconnect.missing")
def test_a_replay_says_what_is_missing_even_if_nothing_is() -> None:
    out = plain(ReconnectReplay(actions=(), missing=()))
    assert out == {"type": "replay", "actions": [], "missing": []}


def test_snapshots_are_encoded_once_and_passed_on() -> None:
    snapshot = Snapshot(resource=ROOT, state=msgspec.Raw(b'{"agents":[]}'), from_seq=0)
    shown = {"resource": ROOT, "state": {"agents": []}, "fromSeq": 0}
    assert plain(SubscribeResult(snapshot=snapshot)) == {"snapshot": shown}
    assert plain(ReconnectSnapshot(snapshots=(snapshot,))) == {
        "type": "snapshot",
        "snapshots": [shown],
    }
    result = InitializeResult(protocol_version="0.3.0", server_seq=0, snapshots=())
    assert plain(result) == {"protocolVersion": "0.3.0", "serverSeq": 0, "snapshots": []}


@pytest.mark.proves("design.wire.presence-shape")
def test_presence_frames_decode_and_encode() -> None:
    editing = {"requestId": "r", "questionId": "q"}
    params = {"channel": "ahp-presence:/1", "editing": editing, "idle": False, "name": "Ana"}
    update = {"jsonrpc": "2.0", "method": "presence/update", "params": params}
    assert plain(decode_client_frame(encode(update))) == update
    present = [{"clientId": "c", "by": {"id": "u"}, "editing": editing, "idle": True}]
    changed = {
        "jsonrpc": "2.0",
        "method": "presence/changed",
        "params": {"channel": "ahp-presence:/1", "present": present},
    }
    assert plain(decode_host_notification(encode(changed))) == changed
    assert plain(SubscribeResult()) == {}


def test_a_summary_field_that_did_not_change_is_absent() -> None:
    changes = frames.SummaryChanges(activity="", title="t")
    assert plain(changes) == {"title": "t", "activity": ""}
