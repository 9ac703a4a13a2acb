"""How many connections may be open, and which one is closed for another."""

import asyncio
import resource
from typing import Any

import pytest

from session_server.schemas.limits import (
    DESCRIPTORS_RESERVED,
    DESCRIPTORS_WANTED,
    UNAUTHENTICATED_CONNECTIONS,
    UNAUTHENTICATED_PER_ADDRESS,
)
from session_server.transport.admission import (
    MALFORMED,
    WARNING_SECONDS,
    Admission,
    RateLimitedWarning,
    Slot,
    make_room,
    network_of,
    room_in,
)


class Transport(asyncio.Transport):
    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def entered(admission: Admission, address: str | None) -> Slot:
    return admission.enter(Transport(), address)


def is_open(slot: Slot) -> bool:
    assert isinstance(slot.transport, Transport)
    return not slot.transport.is_aborted


def test_the_oldest_unauthenticated_connection_of_an_address_makes_room_for_a_new_one() -> None:
    admission = Admission(10_000)
    other = entered(admission, "192.0.2.1")
    slots = [entered(admission, "192.0.2.7") for _ in range(UNAUTHENTICATED_PER_ADDRESS + 2)]
    assert [is_open(slot) for slot in slots[:3]] == [False, False, True]
    assert all(is_open(slot) for slot in (*slots[2:], other))


def test_a_connection_in_use_is_never_closed_for_a_new_one() -> None:
    admission = Admission(10_000)
    used = entered(admission, "192.0.2.7")
    used.authenticated()
    for _ in range(3 * UNAUTHENTICATED_PER_ADDRESS):
        entered(admission, "192.0.2.7")
    assert is_open(used)
    used.answered()
    for _ in range(3 * UNAUTHENTICATED_PER_ADDRESS):
        entered(admission, "192.0.2.7")
    assert not is_open(used)


def test_the_total_of_unauthenticated_connections_is_bounded_at_the_cost_of_the_most_crowded() -> (
    None
):
    admission = Admission(10_000, per_address=10_000)
    quiet = entered(admission, "192.0.2.1")
    crowd = [entered(admission, "192.0.2.7") for _ in range(UNAUTHENTICATED_CONNECTIONS)]
    assert is_open(quiet)
    assert [is_open(slot) for slot in crowd[:2]] == [False, True]


def test_connections_from_this_machine_count_only_in_total() -> None:
    admission = Admission(10_000)
    slots = [entered(admission, "127.0.0.1") for _ in range(UNAUTHENTICATED_PER_ADDRESS + 10)]
    assert all(is_open(slot) for slot in slots)
    entered(admission, "192.0.2.1")
    for _ in range(UNAUTHENTICATED_CONNECTIONS):
        entered(admission, "::1")
    assert not is_open(slots[0])


def test_when_all_connections_are_in_use_a_new_one_is_refused() -> None:
    admission, used = Admission(4), []
    for _ in range(4):
        used.append(entered(admission, "192.0.2.1"))
        used[-1].authenticated()
    assert not is_open(entered(admission, "192.0.2.2"))
    assert all(is_open(slot) for slot in used)
    used[0].leave()
    assert is_open(entered(admission, "192.0.2.2"))


def test_a_connection_that_has_left_does_not_come_back() -> None:
    admission = Admission(4)
    slot = entered(admission, "192.0.2.1")
    slot.leave()
    slot.answered()
    slot.authenticated()
    slot.leave()
    later = [entered(admission, "192.0.2.1") for _ in range(2)]
    assert all(is_open(other) for other in later)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        (None, None),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("/run/socket", None),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_what_counts_as_one_address(address: str | None, network: str | None) -> None:
    assert network_of(address) == network


def test_warns_once_a_minute_and_not_for_each_connection(caplog: Any) -> None:
    admission = Admission(10_000, per_address=1)
    for _ in range(10):
        entered(admission, "192.0.2.7")
    assert len(caplog.records) == 1
    assert "oldest are closed" in caplog.text


def test_a_warning_that_was_held_back_gives_the_number_later(
    caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("session_server.transport.admission.monotonic", lambda: now)
    warning = RateLimitedWarning(MALFORMED)
    for _ in range(10):
        warning.warn("192.0.2.7")
    now += WARNING_SECONDS - 1
    warning.warn("192.0.2.7")
    now += 1
    warning.warn(None)
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 2
    assert "(1 so far; last from 192.0.2.7)" in logged[0]
    assert "(12 so far; last from this machine)" in logged[1]


@pytest.mark.parametrize("descriptors", [1, 2, 64, 1_024, DESCRIPTORS_WANTED])
def test_connections_leave_descriptors_for_files_and_newcomers(descriptors: int) -> None:
    connections, backlog = room_in(descriptors)
    assert min(connections, backlog) >= 1
    if descriptors >= 4:
        own = descriptors - connections - backlog
        assert own == min(DESCRIPTORS_RESERVED, descriptors // 4)


def test_the_limit_on_open_files_is_raised_as_far_as_allowed(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: made.append(limits))
    unlimited = resource.RLIM_INFINITY
    for limits, descriptors in (
        ((1_024, 4_096), 4_096),
        ((1_024, unlimited), DESCRIPTORS_WANTED),
        ((4_096, 4_096), 4_096),
        ((unlimited, unlimited), DESCRIPTORS_WANTED),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        assert make_room() == room_in(descriptors)
    assert made == [(4_096, 4_096), (DESCRIPTORS_WANTED, unlimited)]

    def refuse(*_: Any) -> None:
        raise ValueError("not here")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 4_096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert make_room() == room_in(1_024)
    assert "stays at 1024: not here" in caplog.text
