"""The address in a share link is one that others can use, or the link says that it is not."""

import pytest

from session_server.identity import exposure
from session_server.identity.exposure import NO_NETWORK, ONLY_HERE, reachable
from session_server.settings import Settings

LAN = "192.168.7.7"
OPEN = Settings(host="0.0.0.0")


find_outside_address = exposure.outside_address


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposure, "outside_address", lambda: LAN)


@pytest.mark.parametrize(
    "called", ["127.0.0.1:8737", "localhost:8737", "[::1]:8737", "0.0.0.0:8737", ""]
)
def test_a_link_never_names_the_machine_it_is_made_on(called: str) -> None:
    assert reachable(OPEN, called, 8737) == (f"http://{LAN}:8737", None)
    assert reachable(Settings(host="::"), called, 8737) == (f"http://{LAN}:8737", None)


def test_the_name_by_which_somebody_came_from_elsewhere_will_do() -> None:
    assert reachable(OPEN, "box.lan:8737", 8737).url == "http://box.lan:8737"
    assert reachable(OPEN, "box.example", 8737, "https").url == "https://box.example"


def test_a_public_address_wins() -> None:
    settings = Settings(host="0.0.0.0", public_url="https://ask.example/team/")
    assert reachable(settings, "box.lan:8737", 8737) == ("https://ask.example/team", None)


def test_a_host_that_is_bound_to_one_address_has_that() -> None:
    assert reachable(Settings(host="192.0.2.9"), "localhost:1", 1).url == "http://192.0.2.9:1"
    assert reachable(Settings(host="2001:db8::9"), "localhost:1", 1).url == "http://[2001:db8::9]:1"


def test_a_host_on_loopback_says_so() -> None:
    assert reachable(Settings(), "localhost:8737", 8737) == ("http://localhost:8737", ONLY_HERE)
    assert reachable(Settings(), "", 8737) == ("http://127.0.0.1:8737", ONLY_HERE)


def test_a_machine_without_a_network_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposure, "outside_address", lambda: None)
    assert reachable(OPEN, "localhost:1", 1) == ("http://localhost:1", NO_NETWORK)


def test_the_machines_own_address_is_found_or_there_is_none() -> None:
    found = find_outside_address()
    assert found is None or not exposure.is_local(found)
