"""Who acts, with what authority, how an answer came about, and what only the host may write."""

from enum import StrEnum

from session_server.schemas.wire import Millis, Uri, Wire

VIA_HEADER = "Session-Server-Via"
"""With the value `policy`, a client declares that it is a program and not a person."""


class Role(StrEnum):
    OWNER = "owner"
    AGENT = "agent"
    ANSWERER = "answerer"
    OBSERVER = "observer"


class Provenance(StrEnum):
    """How an answer or an outcome came about; a timeout is never a person's decline.

    `proposed` is what an asker filled in beforehand: a draft that no person has submitted.
    """

    PERSON = "person"
    POLICY = "policy"
    DEFAULT = "default"
    TIMEOUT = "timeout"
    WITHDRAWN = "withdrawn"
    PROPOSED = "proposed"
    ABANDONED = "abandoned"


class Author(Wire, frozen=True, kw_only=True):
    """A principal as others see it: in envelopes, next to answers, in outcomes."""

    id: str
    name: str | None = None

    def __str__(self) -> str:
        return self.name or self.id


class Principal(Wire, frozen=True, kw_only=True):
    """Who is really connected, proved by a credential, as seen through one connection.

    `client_id` is that connection's label; it proves nothing, but tools belong to it.
    `sessions` limits the principal to these; `None` is all of them. `credential` names the token
    that proves it and `expires_at` says until when; without a token both are `None`. `is_policy`:
    no person is behind it, as its credential or its connection says; nothing says the opposite.
    """

    id: str
    role: Role
    name: str | None = None
    client_id: str | None = None
    sessions: tuple[Uri, ...] | None = None
    credential: str | None = None
    expires_at: Millis | None = None
    is_policy: bool = False

    @property
    def author(self) -> Author:
        return Author(id=self.id, name=self.name)

    @property
    def may_create(self) -> bool:
        """It may make sessions, questions and calls; the others watch or answer."""
        return self.role in (Role.OWNER, Role.AGENT)

    @property
    def is_limited(self) -> bool:
        """Limited to some sessions: it cannot change the host, and sees only these."""
        return self.sessions is not None

    def reaches(self, resource: Uri) -> bool:
        return self.sessions is None or resource in self.sessions


class Stamp(Wire, frozen=True, kw_only=True):
    """What the host adds to an action before it is reduced: when, by whom, how."""

    at: Millis
    by: Author | None = None
    via: Provenance = Provenance.PERSON


HOST = Author(id="host")
"""The author of what the host does on its own: timeouts, notes, queued turns."""

LOCAL_ID = "local"
"""Anyone without a credential, where none is required; it may be several people."""

OWNER_ID = "owner"
"""Anyone with the connection token."""

SHARE_PREFIX, AGENT_PREFIX = "share:", "agent:"
"""Prefixes of the ids of principals of share links, and of agents."""


HOST_KEYS: dict[str, frozenset[str]] = {
    "session": frozenset({"recording"}),
    "summary": frozenset({"askersGone"}),
    "request": frozenset(
        {"by", "revision", "call", "round", "key", "server", "tool", "askerGoneSince"}
    ),
    "question": frozenset(),
    "answer": frozenset({"by", "at", "via", "covers", "beforeChange"}),
    "envelope": frozenset({"at", "by"}),
}
"""By the object that carries the `_meta`."""
