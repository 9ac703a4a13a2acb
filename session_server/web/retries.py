"""Doing something once, however often it is asked for: the `Idempotency-Key` header.

No table of keys is kept. What is made is named after the caller and the key, and after what was
asked for, so a retry finds it by its name, after a restart too, for as long as it is remembered.
"""

import hashlib
import uuid
from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec
from fastapi import Depends, Header

from session_server.schemas.codec import encode
from session_server.schemas.limits import IDEMPOTENCY_KEY_CHARS
from session_server.web.caller import Caller
from session_server.web.problems import ProblemError

REPLAYED = {"Idempotency-Replayed": "true"}
"""A header of answers that say again what an earlier request made."""


class RetryKey(NamedTuple):
    """`digest` stands for who asks and the key; nobody can guess another's."""

    digest: str

    def name(self, wanted: msgspec.Struct) -> str:
        """What the thing that is made is called: `<who and key>-<what>`."""
        return f"{self.digest}-{_digest(encode(wanted), 5)}"

    def found(self, wanted: msgspec.Struct, names: Iterable[str]) -> bool:
        """Whether it was made before; an error if the key stands for something else."""
        mine = {name for name in names if name.startswith(f"{self.digest}-")}
        if mine and self.name(wanted) not in mine:
            words = "This Idempotency-Key was used for another body; take a new one."
            raise ProblemError(422, "idempotencyKeyReused", words)
        return bool(mine)


def new_name(key: RetryKey | None, wanted: msgspec.Struct) -> str:
    return str(uuid.uuid4()) if key is None else key.name(wanted)


async def retry_key(
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
) -> RetryKey | None:
    if key is None:
        return None
    return RetryKey(_digest(encode([who.id, key]), 12))


def _digest(data: bytes, size: int) -> str:
    return hashlib.blake2b(data, digest_size=size).hexdigest()


TheKey = Annotated[RetryKey | None, Depends(retry_key)]
