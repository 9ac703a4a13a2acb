"""What is done once an answer has gone out, and not before: until then it is still owed."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.types import Message, Send

from session_server.gateway.visitors import Context

_DELIVERY = "session_server.delivery"

Work = Callable[[], Awaitable[None]]


class Delivery:
    """One HTTP response. A client that has left gets none, and then nothing is done."""

    def __init__(self, scope: MutableMapping[str, Any], send: Send) -> None:
        scope[_DELIVERY] = self
        self._send = send
        self._then: list[Work] = []

    def then(self, work: Work) -> None:
        self._then.append(work)

    async def send(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            works, self._then = self._then, []
            for work in works:
                await work()


def delivery_of(ctx: Context) -> Delivery:
    assert ctx.request is not None  # everything comes in over HTTP
    found: Delivery = ctx.request.scope[_DELIVERY]
    return found
