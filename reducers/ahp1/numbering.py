"""How AHP 0.9 and 1.x number envelopes: an entry of the log may become several of them."""

from typing import NamedTuple

from session_server.schemas.wire import Seq

ENVELOPES_PER_ENTRY = 1_024
"""The numbers of envelopes leave room for so many between one entry and the next."""


def number(seq: Seq, place: int) -> Seq:
    """The wire number of the envelope in that place of an entry."""
    return seq * ENVELOPES_PER_ENTRY + min(place, ENVELOPES_PER_ENTRY - 1)


def number_after(seq: Seq) -> Seq:
    """The wire number of a position: beyond all envelopes of its entry."""
    return number(seq, ENVELOPES_PER_ENTRY - 1)


class Position(NamedTuple):
    """What a client has seen: all before this entry, and of it up to this place."""

    seq: Seq
    place: int


def position(wire_number: Seq) -> Position:
    return Position(*divmod(wire_number, ENVELOPES_PER_ENTRY))
