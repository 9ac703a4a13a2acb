"""A self-chosen name stands beside everything that its person does, however late it arrives."""

import pytest

from tests.page.wire.conftest import NewDevice
from tests.page.wire.node import Device
from tests.servers import ServerProcess

RELOAD = "reload(); open(uri);"


@pytest.fixture
def pair(server: ServerProcess, session: str, new_device: NewDevice) -> tuple[Device, Device]:
    """Ana, who has a name, and somebody who looks on."""
    ana, bo = new_device(server.url), new_device(server.url)
    ana.run("browser.local.setItem('session-server:name', 'Ana')")
    for device in (ana, bo):
        device.load()
        device.look_at(session)
    return ana, bo


@pytest.mark.parametrize("again", ["", RELOAD], ids=["same page", "reloaded"])
def test_what_was_done_offline_arrives_under_the_name(
    session: str, pair: tuple[Device, Device], again: str
) -> None:
    ana, bo = pair
    ana.run("offline()")
    ana.type("note", "by the fence")
    ana.run("session.rename('Long beds'); field('name').submit(text('Leeks'));")
    ana.run(f"{again} online();", uri=session)
    bo.until("held('name') && held('note') && session.confirmed.summary.title === 'Long beds'")
    names = bo.run("['name', 'note'].map((question) => held(question)._meta.by.name)")
    assert names == ["Ana", "Ana"]


@pytest.mark.parametrize("again", ["", RELOAD], ids=["same page", "reloaded"])
def test_an_accept_made_offline_arrives_under_the_name(
    session: str, pair: tuple[Device, Device], again: str
) -> None:
    ana, bo = pair
    ana.run("offline(); field('name').edit(text('Leeks'));")
    ana.run("void session.complete(request().id, 'accept')")
    ana.run(f"{again} online();", uri=session)
    closing = bo.until("[...session.closings.values()][0]")
    assert closing["by"] == {"id": "local", "name": "Ana"}


def test_a_name_counts_from_the_moment_it_is_chosen(pair: tuple[Device, Device]) -> None:
    _, bo = pair
    bo.run("host.setName('Bo'); field('name').submit(text('Kale'));")
    bo.until("held('name')?.value?.value === 'Kale'")
    assert bo.run("field('name').by.name") == "Bo"
    bo.until("session.presence.some(({by}) => by.name === 'Bo')")
