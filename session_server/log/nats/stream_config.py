"""From a URL to a stream that keeps what it is given."""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from session_server.log.nats.messages import Subjects
from session_server.log.opening import redacted
from session_server.log.protocol import DamagedError, OpenError, UrlError

STREAM_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DEFAULT_STREAM = "session_server"
DEFAULT_REPLICAS = 3
FORM = "nats://user@host:4222,host2:4222,host3:4222?stream=name&replicas=3"
OPTIONS = ("stream", "replicas", "creds", "tls", "ca", "monitor")


class Address(NamedTuple):
    """`shown` is for messages: it has no password."""

    servers: tuple[str, ...]
    stream: str
    replicas: int
    creds: str
    ca: str
    is_tls: bool
    monitors: tuple[str, ...]
    shown: str

    def options(self) -> dict[str, Any]:
        """For the client library."""
        given: dict[str, Any] = {}
        if self.creds:
            given["user_credentials"] = self.creds
        if self.is_tls or self.ca:
            given["tls"] = ssl.create_default_context(cafile=self.ca or None)
        return given


def address_of(url: str) -> Address:
    """Raises a `UrlError`."""
    location, _, query = url.partition("?")
    _, _, places = location.partition("://")
    credentials, at, hosts = places.rpartition("@")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        replicas = int(options.get("replicas", DEFAULT_REPLICAS))
    except ValueError:
        raise UrlError(f"The store is not a valid NATS URL; the form is {FORM}.") from None
    names = [host.strip("/") for host in hosts.split(",")]
    stream = options.get("stream", DEFAULT_STREAM)
    if not all(names) or "/" in "".join(names):
        raise UrlError(f"The store names no NATS server; the form is {FORM}.")
    if unknown := sorted(set(options) - set(OPTIONS)):
        known = ", ".join(OPTIONS)
        raise UrlError(f"{unknown[0]!r} is not an option of a NATS URL; available: {known}.")
    if not STREAM_NAME.fullmatch(stream):
        raise UrlError(f"{stream!r} is not a valid stream name: use letters, digits, _ and -.")
    if replicas not in range(1, 6):
        raise UrlError(f"replicas={replicas} is not possible: JetStream keeps 1 to 5 copies.")
    for name in ("creds", "ca"):
        if (path := options.get(name)) and not Path(path).is_file():
            raise UrlError(f"The file of {name} does not exist: {path}.")
    return Address(
        servers=tuple(f"nats://{credentials}{at}{host}" for host in names),
        stream=stream,
        replicas=replicas,
        creds=options.get("creds", ""),
        ca=options.get("ca", ""),
        is_tls=options.get("tls", "") in ("1", "true", "yes"),
        monitors=tuple(filter(None, options.get("monitor", "").split(","))),
        shown=redacted(location) + f", stream {stream}",
    )


def tail_subject(stream: str) -> str:
    """Where the servers publish again what they have stored."""
    return f"session-server-tail.{stream}"


def config_of(address: Address) -> dict[str, Any]:
    return {
        "name": address.stream,
        "description": "The log of a session-server host",
        "subjects": Subjects(address.stream).names(),
        "num_replicas": address.replicas,
        **REQUIRED,
        "republish": {"src": ">", "dest": f"{tail_subject(address.stream)}.>"},
    }


REQUIRED: Mapping[str, Any] = {
    "retention": "limits",
    "storage": "file",
    "discard": "new",
    "max_msgs": -1,
    "max_msgs_per_subject": -1,
    "max_age": 0,
    "allow_direct": True,
    "allow_rollup_hdrs": True,
    "allow_atomic": True,
    "allow_msg_ttl": True,
}
"""Nothing is forgotten unless the log says so, and what does not fit is refused. An operator may
set `max_bytes`."""


def check_stream(address: Address, config: Mapping[str, Any]) -> None:
    """Raises an `OpenError` for a stream that cannot hold a log as it is."""
    if sorted(config.get("subjects", ())) != sorted(Subjects(address.stream).names()):
        raise DamagedError(
            f"{address.shown} is another application's: name another stream in the URL."
        )
    wanted = config_of(address)
    for option in (*REQUIRED, "republish"):
        if config.get(option) != wanted[option]:
            text = f"{address.shown} has {option} = {config.get(option)!r}"
            raise DamagedError(f"{text}, and a log needs {wanted[option]!r}: edit the stream.")
    replicas = config.get("num_replicas", 1)
    if replicas < address.replicas:
        raise OpenError(
            f"{address.shown} has {replicas} replica(s), and {address.replicas} are configured:"
            f" `nats stream edit {address.stream} --replicas {address.replicas}`, or name"
            f" replicas={replicas} in the URL."
        )
