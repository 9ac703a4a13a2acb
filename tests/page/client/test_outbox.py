"""Completions that the host has not confirmed yet."""

from tests.page.client.conftest import Pages
from tests.page.client.node import Device

COMPLETING = "completion(id)"


def accepted(device: Device) -> str:
    """Accepts the form; gives the id of its request."""
    identity: str = device.run("request().id")
    device.run("globalThis.done = accept();")
    return identity


def test_offline_completion_is_listed_as_waiting(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline(); field('name').edit(text('Leeks'));")
    ana.until("host.status.phase === 'offline'")
    identity = accepted(ana)
    waits = ana.run(COMPLETING, id=identity)
    assert (waits["response"], waits["isSent"]) == ("accept", False)
    ana.run("reload(); open(uri);", uri=session)
    assert ana.run("session.completions.map((each) => each.requestId)") == [identity]
    ana.run("online()")
    bo.until("session.closings.size === 1")
    ana.until("session.phase === 'open' && session.completions.length === 0")


def test_sent_completion_is_not_listed_as_waiting(pages: Pages) -> None:
    ana, bo = pages
    ana.run(
        "const note = () => events.push(['waits', session.completions]);"
        "session.on('change', note); host.on('status', note);"
    )
    ana.run("deaf(); field('name').edit(text('Leeks'));")
    identity = accepted(ana)
    assert ana.run(COMPLETING, id=identity)["isSent"] is True
    assert ana.run("session.withdraw(id)", id=identity) is False
    bo.until("session.closings.size === 1")
    ana.run("offline()")
    ana.until("completion(id)?.isSent === false", id=identity)
    ana.run("online()")
    ana.until("session.completions.length === 0")
    assert ana.run("(await done).action.response") == "accept"
    sent = ana.run("events.filter(([n]) => n === 'waits').map(([, l]) => l.map((e) => e.isSent))")
    assert next(each for each in sent if each) == [True]
    assert [False] in sent
    assert sent[-1] == []


def test_refused_completion_reopens_the_request(pages: Pages) -> None:
    ana, _ = pages
    ana.run("offline()")
    identity = accepted(ana)
    assert ana.run("session.state.inputRequests?.length ?? 0") == 0
    ana.run("online()")
    ana.until("session.completions.length === 0 && session.state.inputRequests?.length === 1")
    assert ana.run("done.then(() => null, (error) => error.code)") == "rejected"
    assert ana.run("field('name', id).error", id=identity)


def test_unsent_completion_can_be_withdrawn(pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline(); field('name').edit(text('Leeks'));")
    ana.until("host.status.phase === 'offline'")
    identity = accepted(ana)
    assert ana.run("session.withdraw(id)", id=identity) is True
    assert ana.run("done.then(() => null, (error) => error.code)") == "withdrawn"
    assert ana.run("[session.completions.length, session.state.inputRequests.length]") == [0, 1]
    ana.run("online()")
    bo.until_held("name", "Leeks")
    assert bo.run("session.closings.size") == 0
    assert ana.run("unsent().filter((key) => key.includes('action'))") == []
