"""The keys of `_meta` that only the host writes: what others send there is overwritten or dropped.

`ASKERS` are the keys that stand in the same places and are the asker's to write.
"""

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

ASKERS: dict[str, frozenset[str]] = {
    "request": frozenset({"expiresAt", "onExpiry", "lease"}),
    "question": frozenset({"pattern"}),
}
