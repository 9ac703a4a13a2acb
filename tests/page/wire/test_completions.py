"""Forms that were closed here and wait for the host to say so."""

from tests.page.wire.node import Device

Pages = tuple[Device, Device]

COMPLETING = "session.completing(id)"


def accepted(device: Device) -> str:
    """Accepts the form; gives the id of its request."""
    identity: str = device.run("request().id")
    device.run("globalThis.done = session.complete(request().id, 'accept');")
    return identity


def test_an_accept_made_offline_is_known_to_wait(session: str, pages: Pages) -> None:
    ana, bo = pages
    ana.run("session.on('completions', (list) => events.push(['waits', list]))")
    ana.run("offline(); field('name').edit(text('Leeks'));")
    ana.until("host.status.phase === 'offline'")
    identity = accepted(ana)
    waits = ana.run(COMPLETING, id=identity)
    assert (waits["response"], waits["isSent"]) == ("accept", False)
    assert waits["request"]["message"] == "About the bed"
    assert waits["answers"]["name"]["value"]["value"] == "Leeks"
    ana.run("reload(); open(uri);", uri=session)
    assert ana.run("session.completions.map((each) => each.requestId)") == [identity]
    ana.run("online()")
    bo.until("session.closings.size === 1")
    ana.until("session.phase === 'open' && session.completions.length === 0")


def test_one_that_is_on_its_way_is_not_said_to_wait(pages: Pages) -> None:
    ana, bo = pages
    ana.run("session.on('completions', (list) => events.push(['waits', list]))")
    ana.run("deaf(); field('name').edit(text('Leeks'));")
    identity = accepted(ana)
    assert ana.run(COMPLETING, id=identity)["isSent"] is True
    assert ana.run("session.takeBack(id)", id=identity) is False
    bo.until("session.closings.size === 1")
    ana.run("offline()")
    ana.until("session.completing(id)?.isSent === false", id=identity)
    ana.run("online()")
    ana.until("session.completions.length === 0")
    assert ana.run("(await done).action.response") == "accept"
    told = ana.run("events.filter(([n]) => n === 'waits').map(([, l]) => l.map((e) => e.isSent))")
    assert told[0] == [True]
    assert [False] in told
    assert told[-1] == []


def test_a_refused_one_is_open_again(pages: Pages) -> None:
    ana, _ = pages
    ana.run("offline()")
    identity = accepted(ana)
    assert ana.run("session.state.inputRequests?.length ?? 0") == 0
    ana.run("online()")
    ana.until("session.completions.length === 0 && session.state.inputRequests?.length === 1")
    assert ana.run("done.then(() => null, (error) => error.code)") == "rejected"
    assert ana.run("field('name', id).error", id=identity)


def test_one_that_never_left_can_be_taken_back(pages: Pages) -> None:
    ana, bo = pages
    ana.run("offline(); field('name').edit(text('Leeks'));")
    ana.until("host.status.phase === 'offline'")
    identity = accepted(ana)
    assert ana.run("session.takeBack(id)", id=identity) is True
    assert ana.run("done.then(() => null, (error) => error.code)") == "takenBack"
    assert ana.run("[session.completions.length, session.state.inputRequests.length]") == [0, 1]
    ana.run("online()")
    bo.until_held("name", "Leeks")
    assert bo.run("session.closings.size") == 0
    assert ana.run("unsent().filter((key) => key.includes('action'))") == []
