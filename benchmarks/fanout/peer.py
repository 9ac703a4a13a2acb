"""Two peers in Python: `python peer.py fastapi|websockets <port>`.

Each does what the host does with a draft: decode and check the frame, check request, question and
kind of answer, build the next state without touching the last, encode an envelope. They use msgspec
for it, which is quicker than what most people would take. No roles, no authors, no log.
"""

import sys
from collections import defaultdict
from time import time
from typing import Any, Literal

import msgspec

QUESTIONS = 10


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class TextValue(Shape):
    kind: Literal["text"]
    value: str


class Answer(Shape):
    state: Literal["draft"]
    value: TextValue
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class Changed(Shape, tag_field="type", tag="session/inputAnswerChanged"):
    request_id: str
    question_id: str
    answer: Answer


class DispatchParams(Shape):
    channel: str
    client_seq: int
    action: Changed


class Dispatch(Shape, tag_field="method", tag="dispatchAction"):
    params: DispatchParams


class InitializeParams(Shape):
    client_id: str
    initial_subscriptions: list[str]


class Initialize(Shape, tag_field="method", tag="initialize"):
    id: int
    params: InitializeParams


class Request(Shape):
    questions: dict[str, str]
    answers: dict[str, Answer]


class Session(Shape):
    requests: dict[str, Request]
    modified_at: int = 0


Client = Any
decode = msgspec.json.Decoder(Initialize | Dispatch).decode
encode = msgspec.json.Encoder().encode


class Sessions:
    """The state, and who is subscribed to what."""

    def __init__(self) -> None:
        form = Request(questions={f"q{n}": "text" for n in range(QUESTIONS)}, answers={})
        empty = Session(requests={"r": form})
        self.sessions: defaultdict[str, Session] = defaultdict(lambda: empty)
        self.subscribers: defaultdict[str, set[Client]] = defaultdict(set)
        self.names: dict[Client, str] = {}
        self.seq = 0

    def take(self, client: Client, frame: str | bytes) -> tuple[str, set[Client]]:
        """What to send, and to whom."""
        message = decode(frame)
        if isinstance(message, Initialize):
            self.names[client] = message.params.client_id
            for channel in message.params.initial_subscriptions:
                self.subscribers[channel].add(client)
            return encode({"jsonrpc": "2.0", "id": message.id, "result": {}}).decode(), {client}
        return self.change(client, message.params), self.subscribers[message.params.channel]

    def change(self, client: Client, params: DispatchParams) -> str:
        session, action = self.sessions[params.channel], params.action
        request = session.requests[action.request_id]
        if request.questions[action.question_id] != action.answer.value.kind:
            raise ValueError(action)
        at = int(time() * 1000)
        meta = {"by": {"id": "local"}, "at": at, "via": "person"}
        answer = Answer(state="draft", value=action.answer.value, meta=meta)
        answers = {**request.answers, action.question_id: answer}
        answered = Request(questions=request.questions, answers=answers)
        requests = {**session.requests, action.request_id: answered}
        self.sessions[params.channel] = Session(requests=requests, modified_at=at)
        self.seq += 1
        envelope = {
            "channel": params.channel,
            "action": Changed(
                request_id=action.request_id, question_id=action.question_id, answer=answer
            ),
            "serverSeq": self.seq,
            "origin": {"clientId": self.names[client], "clientSeq": params.client_seq},
            "_meta": {"at": at, "by": {"id": "local"}},
        }
        return encode({"jsonrpc": "2.0", "method": "action", "params": envelope}).decode()

    def leave(self, client: Client) -> None:
        for subscribers in self.subscribers.values():
            subscribers.discard(client)


def fastapi_loop(port: int) -> None:
    """The loop that every tutorial has."""
    import uvicorn  # noqa: PLC0415
    from fastapi import FastAPI, WebSocket, WebSocketDisconnect  # noqa: PLC0415

    app = FastAPI()
    sessions = Sessions()

    @app.websocket("/ahp")
    async def endpoint(socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                text, to = sessions.take(socket, await socket.receive_text())
                for client in tuple(to):
                    await client.send_text(text)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            sessions.leave(socket)

    endpoint.__annotations__["socket"] = WebSocket
    uvicorn.run(
        app, host="127.0.0.1", port=port, log_level="critical", ws_per_message_deflate=False
    )


def websockets_broadcast(port: int) -> None:
    import uvloop  # noqa: PLC0415
    from websockets.asyncio.server import ServerConnection, broadcast, serve  # noqa: PLC0415
    from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

    sessions = Sessions()

    async def handler(socket: ServerConnection) -> None:
        try:
            async for frame in socket:
                text, to = sessions.take(socket, frame)
                broadcast(to, text)
        except ConnectionClosed:
            pass
        finally:
            sessions.leave(socket)

    async def main() -> None:
        async with serve(handler, "127.0.0.1", port, compression=None) as server:
            await server.serve_forever()

    uvloop.run(main())


if __name__ == "__main__":
    {"fastapi": fastapi_loop, "websockets": websockets_broadcast}[sys.argv[1]](int(sys.argv[2]))
