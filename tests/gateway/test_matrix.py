"""What a client gets through the gateway, next to what it gets without: field by field.

Every era of client with every era of server, over both transports, whoever is asked. What may
differ stands in docs/gateway.md under "What is different through the gateway".
"""

import contextlib
import copy
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.requests_2026 import People, Room, host
from tests.mcp import zoo
from tests.servers import ServerProcess

CLIENTS = ("modern", "legacy")
SERVERS = ("modern", "typescript", "legacy")
WAYS = ("stdio", "http")
MODES = ("session", "client", "both")
SECONDS = 120
VALUES: dict[str, Any] = {"environment": "production", "sure": True, "city": "Oslo"}
UNKNOWN_PROMPT: list[Any] = ["prompts/get", "no-such-prompt", {}]
CALLS: list[list[Any]] = [
    ["tools/list"],
    ["prompts/list"],
    ["resources/list"],
    ["resources/templates/list"],
    ["tools/call", "echo", {"text": "hello"}],
    ["tools/call", "echo", {"text": 7}],
    ["tools/call", "fail", {"words": "no luck"}],
    ["tools/call", "no-such-tool", {}],
    ["prompts/get", "greeting", {"name": "Ana"}],
    UNKNOWN_PROMPT,
    ["resources/read", "zoo://sign"],
    ["resources/read", "zoo://nowhere"],
    ["tools/call", "deploy", {"service": "web"}],
]
NOWHERE_TO_ASK = "per-request legacy serving cannot receive server-to-client requests"
ENVELOPE = ("resultType", "ttlMs", "cacheScope", "io.modelcontextprotocol/serverInfo")
"""What a result has in 2026 alone, whatever the era of the server."""


def plain(result: dict[str, Any]) -> dict[str, Any]:
    """Without its envelope."""
    own = {name: value for name, value in result.items() if name not in ENVELOPE}
    meta = {k: v for k, v in (own.pop("_meta", None) or {}).items() if k not in ENVELOPE}
    return own | ({"_meta": meta} if meta else {})


def shown(question: dict[str, Any]) -> tuple[str, list[str]]:
    """How it is phrased differs with the revision in which a server asks; not what is asked."""
    return question["message"], list(question["requestedSchema"]["properties"])


class Pair:
    """One kind of server: itself, over both transports, and behind a gateway in every mode."""

    def __init__(self, kind: zoo.Kind, web: str, gateway: ServerProcess) -> None:
        self.kind: zoo.Kind = kind
        self.gateway = gateway
        self._targets = {"http": {"url": web}, "stdio": {"command": zoo.command(kind)}}
        self._direct: dict[tuple[str, str], dict[str, Any]] = {}

    def direct(self, client: zoo.Kind, way: str) -> dict[str, Any]:
        """What a client gets without the gateway, found out when it is first needed."""
        if (client, way) not in self._direct:
            spec = {**self._targets[way], "match": VALUES, "calls": CALLS}
            self._direct[client, way] = zoo.run_client(client, spec, SECONDS)
        return self._direct[client, way]

    def through_gateway(self, client: zoo.Kind, way: str, mode: str) -> dict[str, Any]:
        url = f"{self.gateway.url}/mcp/{way}-{mode}"
        if mode != "session":
            return zoo.run_client(client, {"url": url, "match": VALUES, "calls": CALLS}, SECONDS)
        with People(self.gateway.url) as people:
            room = Room(url, people, f"{client}-{way}")
            with answering(room):
                return zoo.run_client(client, room.spec(*CALLS), SECONDS)


@pytest.fixture(scope="module", params=SERVERS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    kind: zoo.Kind = request.param
    with zoo.http_server(kind) as web:
        entries = {f"http-{mode}": {"url": web.url, "answers": mode} for mode in MODES}
        entries |= {f"stdio-{mode}": zoo.stdio_entry(kind, answers=mode) for mode in MODES}
        with host(tmp_path_factory.mktemp(kind), entries) as running:
            yield Pair(kind, web.url, running)


@contextlib.contextmanager
def answering(room: Room) -> Iterator[None]:
    """People who answer whatever is asked in a session, until the block ends."""
    over = threading.Event()

    def answer() -> None:
        while not over.wait(0.05):
            for question in room.people.questions(room.session):
                room.people.complete(room.session, question, VALUES)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
def test_results_are_those_of_the_direct_connection(
    pair: Pair, client: zoo.Kind, way: str, mode: str
) -> None:
    expected = copy.deepcopy(pair.direct(client, way))
    found = pair.through_gateway(client, way, mode)
    # Without its client's capabilities, a server of both revisions is called over 2026-07-28.
    errors = pair.direct("modern" if mode != "client" else client, way)["results"]
    expected["results"][CALLS.index(UNKNOWN_PROMPT)] = errors[CALLS.index(UNKNOWN_PROMPT)]
    for call, one, other in zip(CALLS, expected["results"], found["results"], strict=True):
        if NOWHERE_TO_ASK not in str(one):  # there the gateway asks where the server cannot
            assert (call, plain(other)) == (call, plain(one))
        if client == "legacy":
            assert not {*ENVELOPE} & {*other, *(other.get("_meta") or {})}
    assert found["server"] == expected["server"]
    assert found["instructions"] == expected["instructions"]
    if mode != "session" and NOWHERE_TO_ASK not in str(expected["results"]):
        assert [shown(one) for one in found["asked"]] == [shown(one) for one in expected["asked"]]
