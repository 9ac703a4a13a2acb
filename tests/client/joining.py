"""A device at a host in memory, for the tests of the client's protocol."""

from typing import Any

import msgspec

from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import Snapshot
from tests.client.devices import Device
from tests.client.model import ModelHost
from tests.sessions import SESSION

BAD_SNAPSHOT = Snapshot(resource=SESSION, state=msgspec.Raw(b'{"turns": 5}'), from_seq=1)


def heard(device: Device) -> list[Any]:
    assert device.wire.socket is not None
    return device.wire.socket.heard


def actions_sent(device: Device) -> list[Any]:
    return [f.params.action for f in heard(device) if isinstance(f, frames.AgentDispatchAction)]


def from_host(device: Device, message: Any) -> None:
    device.protocol.receive(msgspec.json.encode(message))


def envelope(host: ModelHost, action: Any, **fields: Any) -> dict[str, Any]:
    host.seq += 1
    host.states[host.seq] = host.record.public
    params = {"channel": SESSION, "action": action, "serverSeq": host.seq, **fields}
    return {"jsonrpc": "2.0", "method": "action", "params": params}
