"""Offline work, reloads, crashes and killed hosts: nothing is lost and nothing is doubled."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.client.conftest import NewDevice, Pages
from tests.page.client.node import Device
from tests.page.client.open_requests import ask, get, new_session
from tests.servers import ServerProcess, serving, sqlite_store

ROUND_TRIP = "await host.call('ping', {channel: 'ahp-root://'})"
"""Whatever the page sends by itself has been sent before."""


def unsettled(device: Device) -> Any:
    return device.run("[host.status.waiting, session.pending.length, unsent().length]")


def completions(device: Device) -> int:
    count: int = device.run(
        "log.filter((f) => f.params?.action?.type === 'session/inputCompleted').length"
    )
    return count


# The page is offline


def test_offline_work_is_counted_and_sent(pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.until("host.status.phase === 'offline'")
    ana.type("name", "Leeks")
    ana.type("note", "by the fence")
    ana.run("void session.rename('Long beds')")
    status = ana.run("host.status")
    assert (status["waiting"], status["text"]) == (3, "offline, 3 waiting")
    assert ana.run("session.state.summary.title") == "Long beds"
    bo.run("field('depth').submit({kind: 'number', value: 4})")
    ana.run("online()")
    bo.until("held('name')?.value?.value === 'Leeks' && held('note')?.value")
    bo.until("session.confirmed.summary.title === 'Long beds'")
    ana.until("field('depth').value?.value === 4 && host.status.phase === 'live'")
    assert unsettled(ana) == [0, 0, 0]
    assert ana.run("session.confirmed") == bo.run("session.confirmed")


def test_only_the_last_offline_draft_is_sent(pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks and kale", pause=0.03)
    ana.run("log.length = 0")
    ana.run("online()")
    bo.until_held("name", "Leeks and kale")
    sent = ana.run("log.filter((f) => f.method === 'dispatchAction').length")
    assert sent == 1


def test_refusal_after_a_reconnect_is_shown_at_its_field(pages: Pages) -> None:
    ana, _ = pages
    ana.run("offline()")
    ana.until("host.status.phase === 'offline'")
    ana.run("field('depth').submit({kind: 'number', value: 40}); field('name').edit(text('x'));")
    ana.run("online()")
    ana.until("field('depth').error && !field('name').isDirty")
    assert ana.run("field('depth').value.value") == 40
    ana.until("host.status.phase === 'live' && host.status.waiting === 0")


def test_offline_draft_does_not_overwrite_others(pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    bo.until_held("name", "Leeks")
    ana.until("!field('name').isDirty")
    ana.run("offline()")
    ana.type("name", "Leeks!")
    bo.run("field('name').submit(text('Kale'))")
    bo.until("held('name').state === 'submitted'")
    ana.run("online()")
    ana.until("host.status.phase === 'live' && field('name').theirs")
    ana.run(ROUND_TRIP)
    assert (ana.shown("name"), bo.held("name")) == ("Leeks!", "Kale")
    ana.run("field('name').dropAlternative()")
    bo.until_held("name", "Leeks!")


# The page is loaded again


def test_reload_while_offline_keeps_everything(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run("field('depth').submit({kind: 'number', value: 3}); session.rename('Long beds');")
    ana.run("reload()")
    ana.run("open(uri)", uri=session)
    ana.run("online()")
    ana.until("session.phase === 'open' && session.waiting === 0 && held('name')")
    bo.until("held('name')?.value?.value === 'Leeks' && held('depth')?.state === 'submitted'")
    bo.until("session.confirmed.summary.title === 'Long beds'")
    assert unsettled(ana) == [0, 0, 0]
    assert (ana.shown("name"), ana.run("field('depth').state")) == ("Leeks", "submitted")


def test_unsent_work_of_a_closed_session_is_sent_after_a_reload(pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run("void session.rename('Long beds')")
    ana.run("reload(); online();")
    bo.until_held("name", "Leeks")
    bo.until("session.confirmed.summary.title === 'Long beds'")
    ana.until("unsent().length === 0")


def test_drafts_of_a_crashed_tab_are_restored(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run(
        "await until(() => unsent().some((key) => browser.local.getItem(key).includes('Leeks')));"
        "crash(); load(); open(uri); online();",
        uri=session,
    )
    ana.until("session.phase === 'open' && field('name').value")
    assert ana.shown("name") == "Leeks"
    bo.until_held("name", "Leeks")
    ana.until("unsent().length === 0")


def test_conflict_survives_a_reload(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    ana.until("!field('name').isDirty && held('name')")
    bo.run("field('name').edit(text('Kale')); field('name').flush();")
    ana.until("field('name').theirs")
    ana.type("name", "Leeks!")
    ana.run("reload(); open(uri);", uri=session)
    ana.until("session.phase === 'open'")
    assert ana.shown("name") == "Leeks!"
    assert ana.run("field('name').theirs.value.value") == "Kale"


@pytest.mark.parametrize("again", ["session.stopTyping()", "reload(); open(uri);"])
def test_sent_draft_gives_way_once_typing_stops(session: str, pages: Pages, again: str) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    ana.until("!field('name').isDirty && held('name')")
    bo.run("field('name').edit(text('Kale')); field('name').flush();")
    ana.until("field('name').theirs")
    ana.run(again, uri=session)
    ana.until("session.phase === 'open'")
    assert ana.shown("name") == "Kale"
    kept = ana.run("[field('name').alternative.kind, field('name').alternative.value.value]")
    assert kept == ["replaced", "Leeks"]


@pytest.mark.parametrize("again", ["", "reload(); open(uri);"], ids=["same page", "reloaded"])
def test_unconfirmed_draft_that_arrived_is_no_conflict(
    session: str, pages: Pages, again: str
) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    ana.until("!field('name').isDirty && held('name')")
    ana.run("deaf()")
    ana.type("name", "Leeks a")
    bo.until_held("name", "Leeks a")
    ana.run("offline()")
    ana.type("name", "Leeks and kale")
    ana.run(f"{again} online();", uri=session)
    bo.until_held("name", "Leeks and kale")
    ana.until("session.phase === 'open' && !field('name').isDirty")
    assert ana.run("field('name').theirs ?? null") is None


def test_draft_of_a_request_that_closed_meanwhile_is_offered_again(
    server: ServerProcess, session: str, pages: Pages
) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run("host.hide(); crash();")
    bo.run("await session.complete(request().id, 'cancel')")
    ana.run("load(); open(uri); online();", uri=session)
    ana.until("session.phase === 'open'")
    ask(server.url, session)
    ana.until("request() && field('name').alternative")
    assert ana.run("field('name').alternative.value.value") == "Leeks"


def test_offline_completion_is_sent_once_after_a_reload(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run("void accept()")
    assert ana.run("session.state.inputRequests?.length ?? 0") == 0
    ana.run("reload(); open(uri); online();", uri=session)
    closing = bo.until("[...session.closings.values()][0]")
    assert closing["response"] == "accept"
    ana.until("session.phase === 'open' && session.waiting === 0 && unsent().length === 0")
    ana.run("reload(); open(uri);", uri=session)
    ana.until("session.phase === 'open'")
    ana.run(ROUND_TRIP)
    assert completions(ana) == 1
    assert ana.run("events.filter(([name]) => name === 'rejected')") == []


def test_confirmed_completion_is_not_sent_again_after_a_reload(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    ana.until("!field('name').isDirty && held('name')")
    ana.run("deaf()")
    ana.run("void accept()")
    bo.until("session.closings.size")
    ana.run("offline(); reload(); open(uri); online();", uri=session)
    ana.until("session.phase === 'open' && session.waiting === 0 && unsent().length === 0")
    ana.run(ROUND_TRIP)
    assert completions(ana) == 1
    assert ana.run("events.filter(([name]) => name === 'rejected')") == []


def test_unsent_work_of_a_removed_session_is_dropped(
    server: ServerProcess, session: str, pages: Pages
) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run("void session.rename('Long beds'); host.hide(); crash();")
    bo.run("await host.call('disposeSession', {channel: uri})", uri=session)
    ana.run("load(); online();")
    ana.until("host.status.phase === 'live' && unsent().length === 0")


def test_closed_session_stays_until_everything_is_confirmed(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline()")
    ana.type("name", "Leeks")
    ana.run("session.close(); online();")
    bo.until_held("name", "Leeks")
    bo.until("session.others.length === 0")


# The host breaks


@pytest.fixture
def sturdy(tmp_path: Path, new_device: NewDevice) -> Iterator["Sturdy"]:
    host = Sturdy(sqlite_store(tmp_path), new_device)
    yield host
    if host.server.process.poll() is None:
        host.server.kill()


class Sturdy:
    """A host on a file, with two pages, that can be killed and started again at its address."""

    def __init__(self, store: str, new_device: NewDevice) -> None:
        self.store = store
        self.server = ServerProcess(store)
        self.session = new_session(self.server.url)
        ask(self.server.url, self.session)
        self.pages = new_device(self.server.url), new_device(self.server.url)
        for device in self.pages:
            device.load()
            device.look_at(self.session)

    def restart(self) -> None:
        self.server = ServerProcess(self.store, port=self.server.port)


def test_completion_sent_to_a_dying_host_counts_once(sturdy: Sturdy) -> None:
    ana, bo = sturdy.pages
    ana.type("name", "Leeks")
    ana.run("globalThis.done = accept();")
    sturdy.server.kill()
    sturdy.restart()
    ana.until("host.status.phase === 'live' && session.waiting === 0")
    bo.until("host.status.phase === 'live'")
    bo.until("session.closings.size === 1 && !request()")
    state = get(sturdy.server.url, sturdy.session)
    turns = [*state["turns"], *([state["activeTurn"]] if "activeTurn" in state else [])]
    notes = [part for turn in turns for part in turn["responseParts"]]
    assert len(notes) == 1, "one line says that it was answered"
    assert ana.run("(await globalThis.done).action.response") == "accept"


def test_unresponsive_host_is_detected_and_reconnected(sturdy: Sturdy) -> None:
    ana, _ = sturdy.pages
    ana.run(
        "crash(); load({connection: {quiet: 300, timeout: 500}});open(uri);",
        uri=sturdy.session,
    )
    ana.until("session.phase === 'open' && host.status.phase === 'live'")
    os.kill(sturdy.server.pid, signal.SIGSTOP)
    try:
        ana.until("host.status.phase === 'reconnecting' || host.status.phase === 'offline'")
        ana.type("name", "Leeks")
    finally:
        os.kill(sturdy.server.pid, signal.SIGCONT)
    ana.until("host.status.phase === 'live' && held('name')?.value?.value === 'Leeks'", 30)


def test_host_with_another_history_replaces_the_state(
    tmp_path: Path, new_device: NewDevice
) -> None:
    """Positions mean nothing there; what is not there is gone, and the page says so."""
    device = new_device("http://127.0.0.1:1")
    with serving("memory:") as first:
        uri = new_session(first.url)
        ask(first.url, uri)
        device.begin(first.url)
        device.load()
        device.look_at(uri)
        device.type("name", "Leeks")
        device.until("held('name')")
        port = first.port
    with serving("memory:", port=port) as second:
        device.until("session.phase === 'gone'", 30)
        other = new_session(second.url, "Other")
        device.until("host.sessions.length === 1 && host.status.phase === 'live'")
        device.look_at(other)
        assert device.run("session.confirmed.summary.title") == "Other"
