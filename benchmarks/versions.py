"""What it costs that clients of several versions of AHP watch the same sessions.

Ten sessions, ten clients in each, of whom one writes. Envelopes are encoded once for each version
family and spelling of URIs that somebody watches; what nobody watches must cost nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.fanout.peers import Ahp, RealAhp, host_command, initialize, text_frame
from benchmarks.host import channels_of
from benchmarks.load import Client, Server, free_port, measure, scratch, serving
from benchmarks.results import Results
from session_server.reducers.ahp1.uris import chat_uri, provider_uri
from session_server.schemas.limits import ENVELOPES_KEPT

VERSIONS = "versions"
SESSIONS, CLIENTS = 10, 10
COLUMN = "CPU per action, µs"

Crowd = dict[str, int]
"""How many of the clients of a session speak which version; the writer is of 0.3.0."""

ALONE = "0.3.0"
CROWDS: dict[str, Crowd] = {
    ALONE: {"0.3.0": CLIENTS},
    "0.3.0, where 1.0 left some time ago": {"0.3.0": CLIENTS},
    "half 0.3.0, half 1.0": {"0.3.0": 5, "1.0.0": 5},
    "the writer 0.3.0, all others 1.0": {"0.3.0": 1, "1.0.0": 9},
    "0.3.0, 1.0 and 0.9 as VS Code names sessions": {"0.3.0": 4, "1.0.0": 3, "0.9.0": 3},
}


class LaterAhp(Ahp):
    """Clients of 0.9 or 1.0, which watch a session and its chat."""

    def __init__(self, version: str) -> None:
        self.version = version

    def greeting(self, number: int, channel: str) -> list[tuple[bytes, bytes]]:
        frame = initialize(f"load-{self.version}-{number}", channel)
        params: dict[str, Any] = frame["params"]
        is_vscode = self.version.startswith("0.9")
        session = provider_uri(channel, "people") if is_vscode else channel
        params["protocolVersions"] = [self.version]
        params["clientInfo"] = {"name": "vscode" if is_vscode else "load"}
        params["initialSubscriptions"] = [session, chat_uri(session)]
        return [(text_frame(frame), chat_uri(session).encode())]


def clients(protocol: RealAhp, channels: Sequence[str], crowd: Crowd) -> Iterator[Client]:
    yield from protocol.clients(channels, crowd["0.3.0"], 1)
    for version, count in crowd.items():
        if version != "0.3.0":
            yield from LaterAhp(version).clients(channels, count, 0)


def run(results: Results, rounds: int = 7, seconds: float = 1.5) -> None:
    """One crowd after the other, each on a host of its own, so that nothing is left of the last."""
    print("versions", flush=True)
    for _ in range(rounds):
        for row, crowd in CROWDS.items():
            with scratch() as folder:
                port = free_port()
                with serving(host_command(port, folder, "memory:"), port) as server:
                    used = measured(server, crowd, seconds, were_others="left" in row)
                    results.add(VERSIONS, row, COLUMN, used)


def measured(server: Server, crowd: Crowd, seconds: float, *, were_others: bool) -> float:
    """Microseconds of CPU for an action."""
    protocol, channels = RealAhp(), channels_of(SESSIONS)
    protocol.prepare(server, channels)
    if were_others:
        measure(server, LaterAhp("1.0.0").clients(channels, CLIENTS, 0))
        since = {"seconds": seconds, "least": SESSIONS * 2 * ENVELOPES_KEPT}
        measure(server, protocol.clients(channels, CLIENTS, 1), window=16, **since)
    everyone = clients(protocol, channels, crowd)
    found = measure(server, everyone, window=1, seconds=seconds, warm=0.3)
    assert found.rejected == found.lost == found.refused == 0
    return found.server_cpu / found.actions * 1e6
