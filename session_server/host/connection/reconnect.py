"""What a client that reconnects gets: the envelopes it has missed, or snapshots.

A replay needs all of them at hand, for every channel; and the client's position must be one of this
log's. Otherwise snapshots are the only way. The versions of AHP differ in how both are made.
"""

from collections.abc import Callable, Iterable

import msgspec

from session_server.host.host import Host
from session_server.schemas.ahp.commands import ReconnectSnapshot, Snapshot
from session_server.schemas.wire import Seq, Uri, Wire

Envelopes = list[tuple[Seq, bytes]]


class ReplayedActions(Wire, frozen=True, kw_only=True, tag_field="type", tag="replay"):
    """`ReconnectReplay` with envelopes that are encoded already."""

    actions: tuple[msgspec.Raw, ...]
    missing: tuple[Uri, ...]


def missed(
    host: Host,
    seen: Seq,
    envelopes: Iterable[Envelopes | None],
    snapshots: Callable[[], Iterable[Snapshot]],
    missing: Iterable[Uri],
) -> ReplayedActions | ReconnectSnapshot:
    """`seen`: the last entry that the client has. `envelopes`: of each channel, since then;
    `None` where some of them are not at hand any more. `missing`: channels that are gone.
    """
    replay = _in_order(envelopes) if host.is_position(seen) else None
    if replay is None:
        host.counts.snapshots += 1
        return ReconnectSnapshot(snapshots=tuple(snapshots()))
    host.counts.replays += 1
    return ReplayedActions(actions=replay, missing=tuple(missing))


def _in_order(envelopes: Iterable[Envelopes | None]) -> tuple[msgspec.Raw, ...] | None:
    found: Envelopes = []
    for some in envelopes:
        if some is None:
            return None
        found += some
    return tuple(msgspec.Raw(envelope) for _, envelope in sorted(found))
