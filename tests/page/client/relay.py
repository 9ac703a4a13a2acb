"""A relay to a host that can fall silent: sockets stay open, and nothing gets through."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 65_536
HOME = "127.0.0.1"


class Relay:
    """`port` leads to a host; `fall_silent` is what sleep and lost networks do to connections."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._silent: set[socket.socket] = set()
        self._sockets: list[socket.socket] = []
        self._door = socket.create_server((HOME, 0))
        self.port: int = self._door.getsockname()[1]
        self.url = f"http://{HOME}:{self.port}"
        threading.Thread(target=self._admit, daemon=True).start()

    def fall_silent(self) -> None:
        """On every connection there is; new ones get through."""
        self._silent.update(self._sockets)

    def close(self) -> None:
        for each in (self._door, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _admit(self) -> None:
        with suppress(OSError):
            while True:
                guest, _ = self._door.accept()
                host = socket.create_connection((HOME, self._to))
                self._sockets += [guest, host]
                for one, other in ((guest, host), (host, guest)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        """What is sent while it is silent is lost, and so is the close."""
        with suppress(OSError):
            while data := one.recv(CHUNK):
                if one not in self._silent:
                    other.sendall(data)
        if one not in self._silent:
            with suppress(OSError):
                other.shutdown(socket.SHUT_WR)


@contextmanager
def relaying(to: int) -> Iterator[Relay]:
    relay = Relay(to)
    try:
        yield relay
    finally:
        relay.close()
