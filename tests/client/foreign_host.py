"""An AHP host of other hands: JSON objects and the protocol, nothing of ours.

It has none of our extensions, uses `_meta` for things of its own, and has kinds of parts, questions
and actions that we do not know. Frames of clients that are not AHP are kept in `violations`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

SCHEMAS = Path(__file__).resolve().parents[3] / "shared" / "ahp1" / "schema"
ROOT = "ahp-root://"
SESSION = "acme:/jobs/1"
CHAT, SIDE_CHAT = "ahp-chat:/jobs/1/main", "ahp-chat:/jobs/1/side"
TOKEN = "let-me-in"
NOON = "2026-10-05T12:00:00.000Z"

KNOWN = frozenset(
    [
        "initialize",
        "reconnect",
        "ping",
        "subscribe",
        "unsubscribe",
        "dispatchAction",
        "listSessions",
        "createSession",
        "disposeSession",
        "fetchTurns",
    ]
)

Json = dict[str, Any]

QUESTIONS: list[Json] = [
    {"id": "where", "kind": "single-select", "message": "Where to?", "required": True}
    | {"options": [{"id": "eu", "label": "Europe"}, {"id": "us", "label": "America"}]},
    {"id": "count", "kind": "integer", "message": "How many?", "min": 1},
    {"id": "mood", "kind": "color-wheel", "message": "Which colour?", "_meta": {"pattern": 5}},
]
REQUEST: Json = {
    "id": "ask-1",
    "message": "Ship it?",
    "questions": QUESTIONS[:2],
    "_meta": {"call": 17, "acme": {"priority": "high"}},
}


@cache
def definition(document: str, name: str) -> Draft202012Validator | None:
    if not SCHEMAS.is_dir():
        return None
    schema = json.loads((SCHEMAS / f"{document}.schema.json").read_text())
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@cache
def methods() -> Json:
    found: Json = json.loads((SCHEMAS / "methods.json").read_text()) if SCHEMAS.is_dir() else {}
    return found


def turn(turn_id: str, text: str, *parts: Json) -> Json:
    message = {"text": text, "origin": {"kind": "user"}}
    return {
        "id": turn_id,
        "message": message,
        "responseParts": list(parts),
        "state": "complete",
        "startedAt": NOON,
        "duration": 12.5,
    }


def chat(uri: str, **fields: Any) -> Json:
    return {"resource": uri, "title": "", "status": 1, "modifiedAt": NOON, "turns": [], **fields}


def summary_of(chat_state: Json) -> Json:
    return {key: chat_state[key] for key in ("resource", "title", "status", "modifiedAt")}


class ForeignHost:
    """`version` is the only one that it speaks; if it `is_ahead`, it sends kinds of things that no
    published version has. `older` turns are fetched, one at a time. If it `unloads` sessions,
    those that nobody watched are missing at first to a client that comes back.
    """

    def __init__(
        self,
        version: str = "1.0.0",
        *,
        chats: tuple[str, ...] = (CHAT,),
        is_ahead: bool = False,
    ) -> None:
        self.version = version
        self.is_ahead = is_ahead
        self.url = ""
        self.seq = 5
        self.floor = 0
        self.unloads = False
        self.after_subscribe: dict[str, Callable[[], None]] = {}
        self.older: list[Json] = []
        self.known: set[str] = set()
        self.envelopes: list[Json] = []
        self.peers: list[Peer] = []
        self.violations: list[str] = []
        self.sent: list[Json] = []
        states = {uri: chat(uri) for uri in chats}
        session: Json = {
            "provider": "acme",
            "title": "Work",
            "status": 1,
            "lifecycle": "ready",
            "activeClients": [],
            "chats": [summary_of(state) for state in states.values()],
            "_meta": {"acme": [1, 2]},
        }
        if chats:
            session["defaultChat"] = chats[0]
        agent = {"provider": "acme", "displayName": "Acme", "description": "", "models": []}
        self.states: dict[str, Json] = {ROOT: {"agents": [agent]}, SESSION: session, **states}
        self.listed = [self._summary(SESSION, "Work"), self._summary("acme:/jobs/2", "More work")]

    def _summary(self, uri: str, title: str) -> Json:
        times = {"createdAt": NOON, "modifiedAt": NOON}
        base = {"resource": uri, "provider": "acme", "title": title, "status": 1}
        return {**base, **times, "_meta": {"askersGone": "perhaps"}}

    # What happens in it

    def act(self, channel: str, action: Json, origin: Json | None = None) -> None:
        """The state itself is changed by `states`, not here."""
        self.seq += 3
        copied = json.loads(json.dumps(action))
        envelope = {"channel": channel, "action": copied, "serverSeq": self.seq}
        self.envelopes.append(envelope if origin is None else {**envelope, "origin": origin})
        for peer in self.peers:
            if channel in peer.watched:
                peer.notify("action", self.envelopes[-1])

    def start_turn(self, action: Json, origin: Json | None = None) -> None:
        state = self.states[CHAT]
        state["activeTurn"] = {
            "id": action["turnId"],
            "startedAt": NOON,
            "message": action["message"],
            "responseParts": [],
        }
        state["status"] = 8
        self.act(CHAT, {**action, "startedAt": NOON}, origin)

    def say(self, *parts: Json) -> None:
        active = self.states[CHAT]["activeTurn"]
        for part in parts:
            active["responseParts"].append(part)
            self.act(CHAT, {"type": "chat/responsePart", "turnId": active["id"], "part": part})

    def ask(self, request: Json = REQUEST) -> None:
        state = self.states[CHAT]
        state["activeTurn"]["responseParts"].append({"kind": "inputRequest", "request": request})
        state["status"] = 24
        self.act(CHAT, {"type": "chat/inputRequested", "request": request})

    def finish(self) -> None:
        state = self.states[CHAT]
        active = state.pop("activeTurn")
        state["turns"].append({**active, "state": "complete", "duration": 2000})
        state["status"], state["modifiedAt"] = 1, "2026-10-05T12:00:02.000Z"
        ended = {"type": "chat/turnComplete", "turnId": active["id"], "duration": 2000}
        self.act(CHAT, ended)

    def open_request(self) -> Json | None:
        parts = self.states[CHAT].get("activeTurn", {}).get("responseParts", [])
        return next((p for p in parts if p["kind"] == "inputRequest" and "response" not in p), None)

    def perform(self, channel: str, action: Json, origin: Json) -> str | None:
        """What a client dispatched; why it is refused, if it is."""
        match action["type"]:
            case "session/titleChanged":
                if channel != SESSION or not action["title"]:
                    return "A title is needed."
                self.states[SESSION]["title"] = action["title"]
                self.act(SESSION, action, origin)
            case "chat/turnStarted":
                self.start_turn(action, origin)
            case "chat/inputAnswerChanged" | "chat/inputCompleted":
                return self._answered(action, origin)
            case other:
                return f"{other} is not for clients."
        return None

    def _answered(self, action: Json, origin: Json) -> str | None:
        part = self.open_request()
        if part is None:
            return "Nothing is asked."
        request = part["request"] = dict(part["request"])
        if action["type"] == "chat/inputAnswerChanged":
            request["answers"] = {
                **request.get("answers", {}),
                action["questionId"]: action["answer"],
            }
        else:
            answers = {**request.get("answers", {}), **action.get("answers", {})}
            if action["response"] == "accept" and "where" not in answers:
                return "Where to?"
            if answers:
                request["answers"] = answers
            part["response"] = action["response"]
            self.states[CHAT]["status"] = 8
        self.act(CHAT, action, origin)
        return None


class Peer:
    """One connection."""

    def __init__(self, host: ForeignHost, socket: ServerConnection) -> None:
        self.host = host
        self.socket = socket
        self.watched: set[str] = set()
        self.client_id = ""
        self.out: asyncio.Queue[Json] = asyncio.Queue()

    async def write(self) -> None:
        while True:
            await self.socket.send(json.dumps(await self.out.get()))

    def notify(self, method: str, params: Json) -> None:
        document = {"action": "actions"}.get(method, "notifications")
        check = definition(document, methods().get("serverNotifications", {}).get(method, ""))
        if check is not None and not self.host.is_ahead and "rejectionReason" not in params:
            check.validate(params)
        self.out.put_nowait({"jsonrpc": "2.0", "method": method, "params": params})

    def receive(self, frame: Json) -> None:
        method, params = frame["method"], frame["params"]
        self.host.sent.append(frame)
        self._check(method, params)
        if method == "dispatchAction":
            self._dispatch(params)
        elif method == "unsubscribe":
            self.watched.discard(params["channel"])
        elif "id" in frame:
            answer = getattr(self, f"_{method}", None)
            result = (-32601, "No such method") if answer is None else answer(params)
            self._answer(frame["id"], method, result)

    def _check(self, method: str, params: Json) -> None:
        if method not in KNOWN:
            self.host.violations.append(method)
            return
        check = definition("commands", f"{method[0].upper()}{method[1:]}Params")
        if check is not None:
            self.host.violations += [error.message for error in check.iter_errors(params)]

    def _answer(self, request_id: int, method: str, result: Any) -> None:
        if isinstance(result, tuple):
            code, message, *data = result
            error = {"code": code, "message": message, **({"data": data[0]} if data else {})}
            self.out.put_nowait({"jsonrpc": "2.0", "id": request_id, "error": error})
            return
        name = methods().get("requests", {}).get(method, (None, None))[1]
        check = None if name is None else definition("commands", name)
        if check is not None and not self.host.is_ahead:
            check.validate(result)
        self.out.put_nowait({"jsonrpc": "2.0", "id": request_id, "result": result})

    # Commands

    def _initialize(self, params: Json) -> Any:
        if self.host.version not in params["protocolVersions"]:
            data = {"supportedVersions": [self.host.version]}
            return (-32005, f"Only {self.host.version} is spoken here.", data)
        self.client_id = params["clientId"]
        self.host.known.add(self.client_id)
        self.watched = set(params.get("initialSubscriptions", ()))
        return {
            "protocolVersion": self.host.version,
            "serverSeq": self.host.seq,
            "snapshots": self._snapshots(),
            "serverInfo": {"name": "acme-agent-host", "version": "7"},
        }

    def _snapshots(self) -> list[Json]:
        return [self._snapshot(uri) for uri in self.watched if uri in self.host.states]

    def _snapshot(self, uri: str) -> Json:
        state = json.loads(json.dumps(self.host.states[uri]))
        return {"resource": uri, "state": state, "fromSeq": self.host.seq}

    def _reconnect(self, params: Json) -> Any:
        if params["clientId"] not in self.host.known:
            return (-32008, "Who are you?")
        self.client_id = params["clientId"]
        self.watched = set(params["subscriptions"])
        seen = params["lastSeenServerSeq"]
        if seen < self.host.floor:
            return {"type": "snapshot", "snapshots": self._snapshots()}
        missed = [
            envelope
            for envelope in self.host.envelopes
            if envelope["serverSeq"] > seen and envelope["channel"] in self.watched
        ]
        missing = [uri for uri in params["subscriptions"] if uri not in self.host.states]
        if self.host.unloads:
            missing, missed = [uri for uri in params["subscriptions"] if uri != ROOT], []
            self.watched = {ROOT}
        return {"type": "replay", "actions": missed, "missing": missing}

    def _subscribe(self, params: Json) -> Any:
        uri = params["channel"]
        if uri not in self.host.states:
            return (-32001 if uri.startswith("acme:") else -32008, f"There is no {uri}.")
        self.watched.add(uri)
        then = self.host.after_subscribe.pop(uri, None)
        if then is not None:
            asyncio.get_running_loop().call_soon(then)  # after the answer, before the next frame
        return {"snapshot": self._snapshot(uri)}

    def _ping(self, _: Json) -> Any:
        return None

    def _listSessions(self, params: Json) -> Any:  # noqa: N802
        page = int(params.get("cursor", "0"))
        result: Json = {"items": [self.host.listed[page]]}
        if page + 1 < len(self.host.listed):
            result["nextCursor"] = str(page + 1)
        return result

    def _createSession(self, params: Json) -> Any:  # noqa: N802
        if params["channel"] in self.host.states:
            return (-32003, "It is there already.")
        self.host.states[params["channel"]] = {**self.host.states[SESSION], "title": "New"}
        return None

    def _fetchTurns(self, params: Json) -> Any:  # noqa: N802
        if params.get("cursor") != str(len(self.host.older)):
            return (-32602, "Unknown cursor.")
        loaded: Json = {"type": "chat/turnsLoaded", "turns": [self.host.older.pop()]}
        if self.host.older:
            loaded["turnsNextCursor"] = str(len(self.host.older))
        self.host.act(params["channel"], loaded)
        return {}

    def _dispatch(self, params: Json) -> None:
        origin = {"clientId": self.client_id, "clientSeq": params["clientSeq"]}
        reason = self.host.perform(params["channel"], params["action"], origin)
        if reason is not None:
            refused = {key: params[key] for key in ("channel", "action")}
            refused |= {"serverSeq": self.host.seq, "origin": origin, "rejectionReason": reason}
            self.notify("action", refused)


@asynccontextmanager
async def hosted(host: ForeignHost) -> AsyncGenerator[ForeignHost, None]:
    def check(connection: ServerConnection, request: Request) -> Response | None:
        if request.headers.get("Authorization") == f"Bearer {TOKEN}":
            return None
        return connection.respond(HTTPStatus.UNAUTHORIZED, "")

    async def handle(socket: ServerConnection) -> None:
        peer = Peer(host, socket)
        host.peers.append(peer)
        writing = asyncio.create_task(peer.write())
        try:
            async for text in socket:
                peer.receive(json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            host.peers.remove(peer)
            writing.cancel()
            await asyncio.wait((writing,))

    async with serve(handle, "127.0.0.1", 0, process_request=check) as server:
        host.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield host
