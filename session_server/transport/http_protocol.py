"""uvicorn's HTTP protocol with bounds: on what a request's head may hold, on how long it may take
to come, on requests sent ahead, and on readers that stop.

It stands below the application, so all of this holds for people without any credential.
"""

import asyncio
import re
from enum import Enum
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from session_server.host.clients.open_connections import AUTHENTICATED
from session_server.schemas.errors import SessionServerError
from session_server.schemas.limits import (
    BODY_BYTES_AFTER_ANSWER,
    BODY_BYTES_PER_PERIOD,
    BODY_PERIOD_SECONDS,
    BODY_PIECES,
    HEAD_BYTES,
    HEAD_LINES,
    HEAD_SECONDS,
    PIPELINED_REQUESTS,
    STALLED_BYTES,
    STALLED_SECONDS,
)
from session_server.transport.admission import Admission, Slot
from session_server.transport.websocket_protocol import UNREAD_SECONDS, SinkProtocol

PIECE_BYTES = 512
"""Beyond `BODY_PIECES`, a chunked body may have one more piece for each of so many bytes."""

READ_BYTES = 65_536
"""After so many bytes at once, nothing is read from a connection until the others had a turn."""

TOO_LARGE_HEAD = f"The head of a request has at most {HEAD_BYTES} bytes and {HEAD_LINES} headers."
TOO_MANY_AHEAD = f"At most {PIPELINED_REQUESTS} requests may wait for an answer on one connection."
TOO_MANY_PIECES = "The body comes in too many small chunks; send larger ones."
UNWANTED_BODY = "The request was answered before its body was sent; do not send the rest."
UPGRADE_AHEAD = "A connection can be upgraded once the requests before are answered."
UPGRADE_WITH_BODY = "A request with a body cannot ask for an upgrade; send it without `Upgrade`."
INVALID = "This is not a valid HTTP request."
OTHER_HOST = "The request's target names another host than its `Host` header; send one."
SLOW_HEAD = f"The head of a request has to arrive within {HEAD_SECONDS} seconds."
SLOW_BODY = (
    f"A body has to arrive at {BODY_BYTES_PER_PERIOD} bytes in {BODY_PERIOD_SECONDS} seconds."
)


class Awaited(Enum):
    """What the other side has to send next; nothing while it waits for an answer."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class RefusedRequestError(SessionServerError):
    """A request that breaks a limit of HTTP; raised out of the parser's callbacks to stop it."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HttpProtocol(HttpToolsProtocol):
    parser: httptools.HttpRequestParser  # until the connection is lost
    slot: Slot

    def __init__(self, admission: Admission, **given: Any) -> None:
        super().__init__(**given)
        self._admission = admission
        self._awaited = Awaited.NOTHING
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._unparsed = 0  # bytes since the parser last came to the end of something
        self._body_bytes = 0
        self._body_pieces = 0
        self._bytes_at_period = 0
        self._bytes_after_answer = 0
        self._refusal: RefusedRequestError | None = None
        self._running: RequestResponseCycle | None = None  # `cycle` is the latest, which may wait

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = None if self.client is None else self.client[0]
        self.slot = self._admission.enter(transport, address)
        self._await(Awaited.HEAD)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()
        self._unset_keepalive_if_required()  # uvicorn leaves it running after an error
        self._await(Awaited.NOTHING)
        self._stop_stalled()
        self.slot.leave()

    # Coming in

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._awaited is Awaited.NOTHING and not self._is_answering:
            self._await(Awaited.HEAD)
        self._unparsed += len(data)
        self._parse(data)
        if len(data) >= READ_BYTES and not (self.flow.read_paused or self.transport.is_closing()):
            self.flow.pause_reading()
            self.loop.call_soon(self._read_on)
        if self._unparsed > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, TOO_LARGE_HEAD)
        self._watch()

    def _parse(self, data: bytes | memoryview) -> None:
        """In place of uvicorn's, which writes a line to the log for whatever strangers send."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            refusal = self._refusal or RefusedRequestError(HTTPStatus.BAD_REQUEST, INVALID)
            self._admission.malformed.warn(self.slot.address)
            self._refuse(refusal.status, str(refusal))
        except httptools.HttpParserUpgrade as stopped:
            if self._should_upgrade() and self._is_answering:
                self._refuse(HTTPStatus.BAD_REQUEST, UPGRADE_AHEAD)
            elif self._should_upgrade():
                self.handle_websocket_upgrade()
            elif rest := memoryview(data)[stopped.args[0] :]:
                self._parse(rest)  # other upgrades are not offered, so what follows is HTTP

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    @property
    def _is_answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if cycle.waiting_for_100_continue and cycle.more_body:
            app = closing_unless_continued(app, cycle)
        super()._start_asgi_task(cycle, app)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED_REQUESTS:
            self._stop_parsing(HTTPStatus.BAD_REQUEST, TOO_MANY_AHEAD)
        self._await(Awaited.HEAD)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also called for what follows a chunked body, which counts among the same."""
        if len(self.headers) >= HEAD_LINES:
            self._stop_parsing(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, TOO_LARGE_HEAD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed = self._body_bytes = self._body_pieces = self._bytes_after_answer = 0
        self._check_size()
        self._check_target()
        self._check_upgrade()
        super().on_headers_complete()  # raises for a target that is no address
        self._await(Awaited.BODY)
        self.scope["extensions"] = {AUTHENTICATED: self.slot.authenticated}  # type: ignore[dict-item]

    def _check_size(self) -> None:
        """A head that comes whole in one read is not counted by `data_received`."""
        lines = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.url) + lines > HEAD_BYTES:
            self._stop_parsing(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, TOO_LARGE_HEAD)

    def _check_target(self) -> None:
        """A target that is a whole URL names a host too, and proxies may go by that one."""
        scheme, is_url, rest = self.url.partition(b"://")
        if is_url and b"/" not in scheme:
            named = re.split(rb"[/?#]", rest, maxsplit=1)[0].lower()
            if any(name == b"host" and value.lower() != named for name, value in self.headers):
                self._stop_parsing(HTTPStatus.BAD_REQUEST, OTHER_HOST)

    def _check_upgrade(self) -> None:
        """The parser takes no body with an upgrade, and would read it as the next request."""
        if self.parser.should_upgrade() and any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
            for name, value in self.headers
        ):
            self._stop_parsing(HTTPStatus.BAD_REQUEST, UPGRADE_WITH_BODY)

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        self._body_bytes += len(body)
        self._body_pieces += 1
        if self._body_pieces > BODY_PIECES + self._body_bytes // PIECE_BYTES:
            self._stop_parsing(HTTPStatus.BAD_REQUEST, TOO_MANY_PIECES)
        if not self._is_answering:
            self._bytes_after_answer += len(body)
            if self._bytes_after_answer > BODY_BYTES_AFTER_ANSWER:
                self._stop_parsing(HTTPStatus.BAD_REQUEST, UNWANTED_BODY)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        self._await(Awaited.NOTHING)
        super().on_message_complete()

    def _stop_parsing(self, status: HTTPStatus, reason: str) -> None:
        self._refusal = RefusedRequestError(status, reason)
        raise self._refusal

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """With the reason if no answer was given or begun, and for good in any case."""
        if self._is_answering:
            is_answered = self._running is not None and self._running.response_started
        else:
            is_answered = self._awaited is Awaited.BODY
        self._await(Awaited.NOTHING)
        if not is_answered:
            text = reason.encode()
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%b"
                % (status.value, status.phrase.encode(), len(text), text)
            )
        self._close()

    def _close(self) -> None:
        """Without waiting for a reader that may never take the rest."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        self._await(Awaited.NOTHING)
        self._stop_stalled()
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, SinkProtocol):
            protocol.inherit(self.slot, self.scope["http_version"])
        else:
            self.slot.leave()

    # Time

    def _await(self, awaited: Awaited) -> None:
        self._awaited = awaited
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self) -> None:
        """Most heads and bodies are whole by now, and need no timer."""
        if self._awaited is Awaited.NOTHING or self._deadline is not None:
            return
        self._bytes_at_period = self._body_bytes
        seconds = HEAD_SECONDS if self._awaited is Awaited.HEAD else BODY_PERIOD_SECONDS
        self._deadline = self.loop.call_later(seconds, self._check_soon)

    def _check_soon(self) -> None:
        """What has arrived by now is read before that."""
        self._deadline = self.loop.call_later(UNREAD_SECONDS, self._check)

    def _check(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._awaited is Awaited.HEAD:
            if self._unparsed:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, SLOW_HEAD)
            else:
                self._close()
        elif (
            self.flow.read_paused
            or self._body_bytes - self._bytes_at_period >= BODY_BYTES_PER_PERIOD
        ):
            self._watch()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, SLOW_BODY)

    def on_response_complete(self) -> None:
        self.slot.answered()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(UNREAD_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        if not self.transport.is_closing():
            self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stalled()

    def _watch_reader(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self._check_reader_soon, unsent)

    def _check_reader_soon(self, unsent: int) -> None:
        """What there is room for by now is sent before that."""
        self._stalled = self.loop.call_later(UNREAD_SECONDS, self._check_reader, unsent)

    def _check_reader(self, unsent: int) -> None:
        if unsent - self.transport.get_write_buffer_size() >= STALLED_BYTES:
            self._watch_reader()
        else:
            self.transport.abort()

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def closing_unless_continued(app: Any, cycle: RequestResponseCycle) -> Any:
    """For a request whose client asked whether to send the body.

    If it is answered without that, the client may send the body or leave it out; what comes next
    could be read as either, so the connection ends with the answer.
    """

    async def closing(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if cycle.waiting_for_100_continue:
                cycle.keep_alive = False
            await send(message)

        await app(scope, receive, sent)

    return closing
