"""Idempotency keys: a request that is sent again with the same body makes nothing twice."""

import hashlib
import uuid
from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec
from fastapi import Depends, Header

from session_server.http.dependencies import Caller
from session_server.http.problems import ProblemError
from session_server.schemas.codec import encode
from session_server.schemas.limits import IDEMPOTENCY_KEY_CHARS

REPLAYED = {"Idempotency-Replayed": "true"}
"""A header of answers that repeat what an earlier request made."""


class IdempotencyKey(NamedTuple):
    """`digest` is a hash of the principal and the key: no principal can use another's keys."""

    digest: str

    def name(self, wanted: msgspec.Struct) -> str:
        """The id of what is made: `<digest>-<hash of the body>`."""
        return f"{self.digest}-{_digest(encode(wanted), 5)}"

    def found(self, wanted: msgspec.Struct, names: Iterable[str]) -> bool:
        """Whether it was made before; an error if the key was used for another body."""
        mine = {name for name in names if name.startswith(f"{self.digest}-")}
        if mine and self.name(wanted) not in mine:
            message = "This Idempotency-Key was used for another body; use a new one."
            raise ProblemError(422, "idempotencyKeyReused", message)
        return bool(mine)


def new_name(key: IdempotencyKey | None, wanted: msgspec.Struct) -> str:
    return str(uuid.uuid4()) if key is None else key.name(wanted)


async def idempotency_key(
    who: Caller,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=IDEMPOTENCY_KEY_CHARS,
            description="Any text of your own: sent again with the same body, nothing is made"
            " twice.",
        ),
    ] = None,
) -> IdempotencyKey | None:
    if key is None:
        return None
    return IdempotencyKey(_digest(encode([who.id, key]), 12))


def _digest(data: bytes, size: int) -> str:
    return hashlib.blake2b(data, digest_size=size).hexdigest()


TheIdempotencyKey = Annotated[IdempotencyKey | None, Depends(idempotency_key)]
