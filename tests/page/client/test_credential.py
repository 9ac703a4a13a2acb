"""Hosts that are restarted with other tokens: pages continue, or ask for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.client.conftest import NewDevice
from tests.page.client.node import Device
from tests.page.client.open_requests import ask, new_session
from tests.servers import ServerProcess, sqlite_store

FIRST, SECOND = "a-token-that-nobody-guesses", "another-one-that-nobody-guesses"
TOKENS = "[browser.tab, browser.local].map((s) => s.getItem('session-server.token'))"


class Moody:
    """A host on one file that is started again and again, each time with other terms."""

    def __init__(self, store: str) -> None:
        self.store = store
        self.server = ServerProcess(store)
        self.session = new_session(self.server.url)
        self.request = ask(self.server.url, self.session)

    def restart(self, *terms: str) -> None:
        if self.server.process.poll() is None:
            self.server.kill()
        self.server = ServerProcess(self.store, *terms, port=self.server.port)

    def wants(self, token: str) -> None:
        self.restart("--connection-token", token)


@pytest.fixture
def moody(tmp_path: Path) -> Iterator[Moody]:
    host = Moody(sqlite_store(tmp_path))
    yield host
    if host.server.process.poll() is None:
        host.server.kill()


def edits_while_away(device: Device, moody: Moody) -> None:
    moody.server.kill()
    device.until("host.status.phase !== 'live'")
    device.type("name", "Leeks")
    device.run("void session.rename('Long beds')")


def all_has_arrived(device: Device) -> None:
    device.until_held("name", "Leeks")
    device.until("session.confirmed.summary.title === 'Long beds' && session.waiting === 0")
    device.until("host.status.phase === 'live' && unsent().length === 0")


def test_unsent_work_is_sent_once_a_token_is_given(moody: Moody, new_device: NewDevice) -> None:
    ana = new_device(moody.server.url)
    before = ana.load()
    ana.look_at(moody.session)
    edits_while_away(ana, moody)
    moody.wants(FIRST)
    ana.until("host.status.phase === 'closed'")
    assert ana.run("host.status.token") == "needed"
    assert ana.run("host.status.waiting") == 2
    ana.run("host.useToken('nobody has this one')")
    ana.until("host.status.phase === 'closed' && host.status.token === 'refused'")
    assert ana.run(TOKENS) == [None, None]
    ana.run("host.useToken(link)", link=f"{moody.server.url}/?tkn={FIRST}#/")
    all_has_arrived(ana)
    assert ana.run("host.clientId") != before
    assert ana.run(TOKENS) == [FIRST, FIRST]


@pytest.mark.parametrize("again", ["", "reload(); open(uri);"], ids=["same page", "reloaded"])
def test_token_is_dropped_when_the_host_needs_none(
    moody: Moody, new_device: NewDevice, again: str
) -> None:
    moody.wants(FIRST)
    ana = new_device(moody.server.url)
    ana.run("load({token})", token=FIRST)
    ana.look_at(moody.session)
    edits_while_away(ana, moody)
    ana.run(f"{again};", uri=moody.session)
    moody.restart()
    all_has_arrived(ana)
    assert ana.run(TOKENS) == [None, None]
    assert ana.run("host.token ?? null") is None


def test_changed_token_is_asked_for_again(moody: Moody, new_device: NewDevice) -> None:
    moody.wants(FIRST)
    ana = new_device(moody.server.url)
    ana.run("load({token})", token=FIRST)
    ana.look_at(moody.session)
    edits_while_away(ana, moody)
    moody.wants(SECOND)
    ana.until("host.status.token === 'refused'")
    assert "token" in ana.run("host.status.text")
    ana.run("reload(); open(uri);", uri=moody.session)
    ana.until("host.status.phase === 'closed'")
    assert ana.run("host.status.token") == "needed", "what was refused is not tried again"
    ana.run("host.useToken(token)", token=SECOND)
    all_has_arrived(ana)
    ana.run("host.forgetToken()")
    ana.until("host.status.token === 'needed'")


def test_client_id_of_another_principal_is_replaced(moody: Moody, new_device: NewDevice) -> None:
    ana = new_device(moody.server.url)
    label = ana.load()
    ana.look_at(moody.session)
    moody.wants(FIRST)
    ana.until("host.status.token === 'needed'")
    ana.type("name", "Leeks")
    ana.run("host.useToken(token)", token=FIRST)
    ana.until_held("name", "Leeks")
    assert ana.run("host.clientId") != label
    assert ana.run("field('name').by.id") == "owner"


def test_new_tab_uses_the_kept_token_if_one_is_needed(moody: Moody, new_device: NewDevice) -> None:
    moody.wants(FIRST)
    ana = new_device(moody.server.url)
    ana.run("load({token})", token=FIRST)
    ana.until("host.status.phase === 'live'")
    ana.run("crash(); browser.tab = new MemoryStorage(); load();")
    ana.look_at(moody.session)
    assert ana.run("host.token") == FIRST
