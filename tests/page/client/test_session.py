"""Connected pages: typing, presence, refusals, the session list, names."""

from typing import Any

import pytest

from tests.page.client.conftest import NewDevice, Pages
from tests.page.client.node import Device, DeviceError
from tests.page.client.open_requests import ask
from tests.servers import ServerProcess


def sent_drafts(device: Device) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = device.run(
        "log.filter((frame) => frame.params?.action?.type === 'session/inputAnswerChanged')"
    )
    return sent


# Typing


def test_typing_is_throttled_and_the_last_value_is_sent(pages: Pages) -> None:
    ana, bo = pages
    text = "a bed of leeks and kale, forty wide"
    ana.type("name", text, pause=0.03)
    bo.until_held("name", text)
    times = [frame["at"] for frame in sent_drafts(ana)]
    assert 2 <= len(times) <= 2 + (times[-1] - times[0]) / 250
    assert bo.shown("name") == text


def test_leaving_a_field_sends_its_last_value_at_once(pages: Pages) -> None:
    ana, _ = pages
    ana.run("field('name').edit(text('Kale')); field('name').flush();")
    assert [frame["params"]["action"]["answer"] for frame in sent_drafts(ana)] == [
        {"state": "draft", "value": {"kind": "text", "value": "Kale"}}
    ]


def test_field_that_was_only_touched_sends_what_is_typed_afterwards(pages: Pages) -> None:
    """The host confirms that, although it changes no answer."""
    ana, bo = pages
    ana.run("field('name').touch()")
    ana.until("field('name').phase === 'synced' && session.waiting === 0")
    ana.type("name", "Kale")
    bo.until_held("name", "Kale")


# Together


def test_contested_field_sends_nothing_until_a_version_is_chosen(pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    ana.until("held('name')")
    bo.run("field('name').edit(text('Kale')); field('name').flush();")
    ana.until("field('name').theirs")
    before = len(sent_drafts(ana))
    ana.type("name", "Leeks!")
    ana.run("field('name').flush()")
    assert len(sent_drafts(ana)) == before
    assert bo.held("name") == "Kale"
    ana.run("field('name').submit()")
    bo.until("held('name').state === 'submitted' && held('name').value.value === 'Leeks!'")


def test_presence_shows_who_types_where(pages: Pages) -> None:
    ana, bo = pages
    ana.run("host.setName('Ana')")
    ana.type("note", "x")
    seen = bo.until("session.others.find((other) => other.editing && other.by.name)")
    assert (seen["by"]["name"], seen["editing"]["questionId"]) == ("Ana", "note")
    ana.run("host.idle(true)")
    bo.until("session.others[0].idle && !session.others[0].editing")
    ana.run("session.close()")
    bo.until("session.others.length === 0")


# Refusals


def test_refused_answer_shows_its_reason_at_the_field(pages: Pages) -> None:
    ana, bo = pages
    with pytest.raises(DeviceError) as refused:
        ana.run("await field('note').submit(text('far too long '.repeat(9)))")
    assert refused.value.code == "rejected"
    assert "40" in ana.run("field('note').error")
    assert ana.shown("note").startswith("far too long"), "the text is still there"
    assert bo.held("note") is None
    ana.type("note", "short")
    assert ana.run("field('note').error ?? null") is None
    bo.until_held("note", "short")


def test_refused_completion_shows_its_reason_at_the_field(pages: Pages) -> None:
    ana, _ = pages
    ana.type("note", "hello")
    with pytest.raises(DeviceError):
        ana.run("await accept()")
    assert ana.until("field('name').error")
    assert ana.run("session.state.inputRequests.length") == 1
    assert ana.run("session.pending.length") == 0
    ana.until_held("note", "hello")


def test_late_completion_fails_with_request_closed(pages: Pages) -> None:
    ana, bo = pages
    request = ana.run("request().id")
    bo.run("await session.complete(request().id, 'decline')")
    ana.until("session.closings.size")
    with pytest.raises(DeviceError) as refused:
        ana.run("await session.complete(id, 'cancel')", id=request)
    assert refused.value.code == "requestClosed"


# Nothing is lost


def test_unsent_text_is_offered_when_asked_again(
    server: ServerProcess, session: str, pages: Pages
) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    bo.run("session.complete(request().id, 'cancel')")
    closing = ana.until("[...session.closings.values()][0]")
    assert closing["unsent"] == {"name": {"kind": "text", "value": "Leeks"}}
    ask(server.url, session, "Once more")
    ana.until("request()")
    assert ana.run("field('name').alternative.value.value") == "Leeks"
    assert bo.run("field('name').alternative ?? null") is None
    ana.run("field('name').useAlternative()")
    bo.until_held("name", "Leeks")
    assert ana.run("field('name').alternative ?? null") is None


# The state


def test_session_is_created_used_and_removed(server: ServerProcess, new_device: NewDevice) -> None:
    device = new_device(server.url)
    device.load()
    uri = device.run("await host.createSession({provider: 'demo'})")
    device.look_at(uri)
    device.until("session.state.lifecycle === 'ready'")
    device.run("await session.startTurn('Hello')")
    device.until("request()")
    device.run("session.cancelTurn()")
    device.until("session.state.turns.length === 1 && !session.state.activeTurn")
    page = device.run("await host.call('fetchTurns', {channel: uri})", uri=uri)
    assert len(page["turns"]) == 1
    device.run("session.markRead(); session.archive();")
    device.until("session.confirmed.summary.status === 97")
    device.run("await host.call('disposeSession', {channel: uri})", uri=uri)
    device.until("session.phase === 'gone'")
    assert device.run("session.error.code") == "gone"


def test_unknown_session_is_not_found(server: ServerProcess, new_device: NewDevice) -> None:
    device = new_device(server.url)
    device.load()
    device.until("host.status.phase === 'live'")
    device.run("open('ahp-session:/nowhere')")
    device.until("session.phase === 'gone'")
    assert device.run("session.error.code") == "notFound"
    device.run("crash(); load(); open('ahp-session:/nowhere');")
    device.until("session.phase === 'gone'")
    assert device.run("session.error.code") == "notFound"


# Names

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
def test_offline_edits_carry_the_name(
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
def test_offline_completion_carries_the_name(
    session: str, pair: tuple[Device, Device], again: str
) -> None:
    ana, bo = pair
    ana.run("offline(); field('name').edit(text('Leeks'));")
    ana.run("void accept()")
    ana.run(f"{again} online();", uri=session)
    closing = bo.until("[...session.closings.values()][0]")
    assert closing["by"] == {"id": "local", "name": "Ana"}


def test_name_counts_from_when_it_is_chosen(pair: tuple[Device, Device]) -> None:
    _, bo = pair
    bo.run("host.setName('Bo'); field('name').submit(text('Kale'));")
    bo.until("held('name')?.value?.value === 'Kale'")
    assert bo.run("field('name').by.name") == "Bo"
    bo.until("session.presence.some(({by}) => by.name === 'Bo')")
