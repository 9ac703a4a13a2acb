"""Pages that stay connected: typing, answering together, and what the host refuses."""

from typing import Any

import pytest

from tests.page.wire.asking import ask, get, new_session
from tests.page.wire.conftest import NewDevice
from tests.page.wire.node import Device, DeviceError
from tests.servers import ServerProcess

Pages = tuple[Device, Device]


def sent_drafts(device: Device) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = device.run(
        "log.filter((frame) => frame.params?.action?.type === 'session/inputAnswerChanged')"
    )
    return sent


# Typing


def test_typing_is_sent_at_a_human_pace_and_its_end_always(pages: Pages) -> None:
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


def test_nothing_is_sent_for_what_the_host_has_already(pages: Pages) -> None:
    ana, _ = pages
    ana.type("name", "Kale")
    ana.until("!field('name').isDirty && held('name')")
    ana.run("field('name').edit(text('Kale')); field('name').flush(); await sleep(400);")
    assert len(sent_drafts(ana)) == 1


# Together


def test_two_pages_answer_different_questions_and_see_both(pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    bo.run("field('depth').submit({kind: 'number', value: 4})")
    for device in pages:
        device.until(
            "held('name')?.value?.value === 'Leeks' && held('depth')?.state === 'submitted'"
        )
        device.until("field('depth').state === 'submitted' && field('name').value")
    assert ana.run("session.answers(request().id)") == {
        "name": {"state": "submitted", "value": {"kind": "text", "value": "Leeks"}}
    }
    ana.run("session.complete(request().id, 'accept')")
    closing = bo.until("[...session.closings.values()][0]")
    assert (closing["response"], closing["own"], closing["unsent"]) == ("accept", False, {})


def test_what_others_write_shows_while_nobody_types_here(pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    bo.until("field('name').value?.value === 'Leeks'")
    ana.run("session.editing()")
    bo.type("name", "Leeks and kale")
    ana.until("field('name').value?.value === 'Leeks and kale'")
    assert ana.run("field('name').theirs ?? null") is None


@pytest.mark.parametrize("choice", ["dropAlternative", "useAlternative"])
def test_both_type_into_one_field_and_neither_text_is_lost(pages: Pages, choice: str) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    bo.type("name", "Kale")
    ana.until("!field('name').isDirty || field('name').theirs")
    bo.until("!field('name').isDirty || field('name').theirs")
    assert (ana.shown("name"), bo.shown("name")) == ("Leeks", "Kale")
    contested = ana if ana.run("Boolean(field('name').theirs)") else bo
    other = bo if contested is ana else ana
    theirs = other.shown("name")
    assert contested.run("field('name').theirs.value.value") == theirs
    mine = contested.shown("name")
    contested.run(f"field('name').{choice}()")
    kept = mine if choice == "dropAlternative" else theirs
    contested.until("!field('name').isDirty && !field('name').theirs")
    assert contested.shown("name") == kept
    other.until("held('name').value.value === kept", kept=kept)
    assert other.shown("name") == theirs, "it was not changed under the hands of who typed it"


def test_a_contested_field_sends_nothing_until_somebody_chooses(pages: Pages) -> None:
    ana, bo = pages
    ana.type("name", "Leeks")
    ana.until("held('name')")
    bo.run("field('name').edit(text('Kale')); field('name').flush();")
    ana.until("field('name').theirs")
    before = len(sent_drafts(ana))
    ana.type("name", "Leeks!")
    ana.run("field('name').flush(); await sleep(400);")
    assert len(sent_drafts(ana)) == before
    assert bo.held("name") == "Kale"
    ana.run("field('name').submit()")
    bo.until("held('name').state === 'submitted' && held('name').value.value === 'Leeks!'")


def test_who_looks_and_where_they_type_is_seen(pages: Pages) -> None:
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


def test_a_refused_answer_shows_its_reason_at_the_field(pages: Pages) -> None:
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


def test_a_refused_acceptance_shows_its_reason_at_the_field(pages: Pages) -> None:
    ana, _ = pages
    ana.type("note", "hello")
    with pytest.raises(DeviceError):
        ana.run("await session.complete(request().id, 'accept')")
    assert ana.until("field('name').error")
    assert ana.run("session.state.inputRequests.length") == 1
    assert ana.run("session.pending.length") == 0
    ana.until_held("note", "hello")


def test_who_is_too_late_is_told_by_whom_it_was_closed(pages: Pages) -> None:
    ana, bo = pages
    request = ana.run("request().id")
    bo.run("await session.complete(request().id, 'decline')")
    ana.until("session.closings.size")
    with pytest.raises(DeviceError) as refused:
        ana.run("await session.complete(id, 'cancel')", id=request)
    assert refused.value.code == "requestClosed"


# Nothing is lost


def test_text_of_a_question_that_closed_is_kept_and_offered_when_it_is_asked_again(
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


def test_a_tab_keeps_its_id_over_reloads_and_a_copy_of_it_gets_another(pages: Pages) -> None:
    ana, _ = pages
    identity = ana.run("host.clientId")
    assert ana.run("reload()") == identity
    copied = ana.run(
        "const copy = new MemoryStorage();"
        "for (let i = 0; i < browser.tab.length; i++)"
        "  copy.setItem(browser.tab.key(i), browser.tab.getItem(browser.tab.key(i)));"
        "const other = new Host({url, storage: browser.local, tabStorage: copy});"
        "return other.clientId;"
    )
    assert copied != identity


# The state


@pytest.mark.proves("design.wire.mirror-time")
def test_the_mirror_equals_the_host_to_the_millisecond(
    server: ServerProcess, session: str, pages: Pages
) -> None:
    ana, bo = pages
    ana.type("name", "Leeks", pause=0.05)
    bo.run("field('depth').submit({kind: 'number', value: 4})")
    ana.run("session.rename('Long beds')")
    for device in pages:
        device.until("session.waiting === 0 && session.confirmed.summary.title === 'Long beds'")
        device.until("held('name')?.value?.value === 'Leeks' && held('depth')")
    state = get(server.url, session)
    assert ana.run("session.confirmed") == state
    assert bo.run("session.confirmed") == state
    assert ana.run("session.state === session.confirmed")


def test_the_list_of_sessions_is_live(server: ServerProcess, new_device: NewDevice) -> None:
    device = new_device(server.url)
    device.load()
    device.until("host.sessions && host.root")
    device.run("host.on('summary', ({summary}) => events.push(summary?.status))")
    uri = new_session(server.url, "Kale")
    device.until("host.sessions.some((s) => s.resource === uri)", uri=uri)
    ask(server.url, uri)
    device.until("host.sessions.find((s) => s.resource === uri).status === 24", uri=uri)
    device.run("await host.disposeSession(uri)", uri=uri)
    device.until("!host.sessions.some((s) => s.resource === uri)", uri=uri)
    told = device.run("events")
    assert told[-2:] == [24, None]


def test_a_session_is_made_turned_and_disposed_of(
    server: ServerProcess, new_device: NewDevice
) -> None:
    device = new_device(server.url)
    device.load()
    uri = device.run("await host.createSession({provider: 'demo'})")
    device.look_at(uri)
    device.until("session.state.lifecycle === 'ready'")
    device.run("await session.startTurn('Hello')")
    device.until("request()")
    device.run("session.cancelTurn()")
    device.until("session.state.turns.length === 1 && !session.state.activeTurn")
    page = device.run("await host.fetchTurns(uri)", uri=uri)
    assert len(page["turns"]) == 1
    device.run("session.markRead(); session.archive();")
    device.until("session.confirmed.summary.status === 97")
    device.run("await host.disposeSession(uri)", uri=uri)
    device.until("session.phase === 'gone'")
    assert device.run("session.error.code") == "gone"


def test_a_session_that_is_not_there_says_so(server: ServerProcess, new_device: NewDevice) -> None:
    device = new_device(server.url)
    device.load()
    device.until("host.status.phase === 'live'")
    device.run("open('ahp-session:/nowhere')")
    device.until("session.phase === 'gone'")
    assert device.run("session.error.code") == "notFound"
    device.run("crash(); load(); open('ahp-session:/nowhere');")
    device.until("session.phase === 'gone'")
    assert device.run("session.error.code") == "notFound"
