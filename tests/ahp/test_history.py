"""The checker of histories finds every fault that is planted in a real recording, and no other."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from session_server.host.channels.changes import in_doubt
from session_server.log import Entry
from session_server.log.opening import open_log
from session_server.schemas.ahp.actions import InputCompleted
from tests.ahp.actions import answer_changed, input_completed, title_changed
from tests.ahp.history import (
    Asked,
    Called,
    Evidence,
    History,
    Line,
    check,
    check_answers,
    check_asked,
)
from tests.ahp.mirror import Mirror
from tests.ahp.oracle import Diverged, LogOracle, entries_of
from tests.effort import PATIENCE
from tests.end_to_end.mirror_client import Device
from tests.servers import AT_ANY_PACE, serving, sqlite_store

TALK = "ahp-session:/talk"
CALLS = (Called("a", is_finished=True), Called("b", is_finished=True), Called("c", False))


class Recorded(NamedTuple):
    entries: list[Entry]
    evidence: Evidence

    def check(self) -> dict[str, Any]:
        return check(LogOracle(self.entries), self.evidence)

    def with_lines(self, edit: Callable[[list[Line]], None]) -> "Recorded":
        """The recording of the first client, who stayed all the time, is changed."""
        first, *others = self.evidence.histories
        lines = list(first.lines)
        edit(lines)
        return self._replace(
            evidence=self.evidence._replace(histories=[first.edited(lines), *others])
        )

    def with_entries(self, edit: Callable[[list[Entry]], None]) -> "Recorded":
        entries = list(self.entries)
        edit(entries)
        return self._replace(entries=entries)

    def told(self, *asked: Asked) -> "Recorded":
        return self._replace(evidence=self.evidence._replace(asked=asked))

    def ran(self, *effects: str) -> "Recorded":
        return self._replace(evidence=self.evidence._replace(effects=effects))


async def _record(url: str, ahp: str) -> tuple[list[History], Asked]:
    """Three people in one session; one of them is cut off and comes back, one is refused."""
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        await http.post("/v1/sessions", json={"resource": TALK})
        question = {"kind": "text", "id": "q", "message": "What?"}
        wanted = {"message": "Go on?", "questions": [question]}
        request = (await http.post("/v1/sessions/talk/requests", json=wanted)).json()["id"]
        people = [Device(Mirror(f"p{n}", [TALK])) for n in range(3)]
        for person in people:
            await person.connect(ahp)
        for number in range(12):
            person = people[number % 3]
            await person.say(
                person.mirror.dispatch(TALK, answer_changed(f"text {number}", request))
            )
            await person.until(lambda person=person: not person.mirror.unanswered)
            if number == 5:
                people[1].cut()
            if number == 6:
                await people[1].connect(ahp)
        for person in people[:2]:
            await person.say(
                person.mirror.dispatch(TALK, input_completed(request, q=person.mirror.client_id))
            )
            await person.until(lambda person=person: not person.mirror.unanswered)
        await people[2].say(people[2].mirror.dispatch(TALK, title_changed("The end")))
        end = people[2].mirror.copies[TALK]
        await people[2].until(lambda: not people[2].mirror.unanswered)
        for person in people:
            copy = person.mirror.copies[TALK]
            await person.until(lambda copy=copy: copy.position >= end.position)
            await person.hang_up()
        return [person.history for person in people], Asked(TALK, request, "p0")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder: Path = tmp_path_factory.mktemp("history")
    with serving(sqlite_store(folder), *AT_ANY_PACE) as server:
        histories, asked = asyncio.run(_record(server.url, server.ahp))

    async def stored() -> list[Entry]:
        log = await open_log(sqlite_store(folder))
        entries = await entries_of(log)
        await log.close()
        return entries

    return Recorded(asyncio.run(stored()), Evidence(histories, [asked], CALLS, ["a", "b"]))


def actions(lines: list[Line]) -> list[int]:
    """Where envelopes of the session stand, others' as well as one's own."""
    return [
        place
        for place, line in enumerate(lines)
        if line.kind == "received" and b'"session/inputAnswerChanged"' in line.frame
    ]


def test_a_recording_without_faults_is_accepted(recorded: Recorded) -> None:
    counts = recorded.check()
    assert counts["clients"] == 3
    assert counts["actions"] == {"echoed": 14, "refused": 1, "unknown": 0}
    assert counts["resumptions"] == {"initialize": 3, "replay": 1}
    assert (counts["requests"], counts["calls"]) == (1, 3)


# What a client received


def drop(lines: list[Line]) -> None:
    del lines[actions(lines)[4]]


def drop_last(lines: list[Line]) -> None:
    del lines[-1]


def duplicate(lines: list[Line]) -> None:
    place = actions(lines)[4]
    lines.insert(place, lines[place])


def repeat_later(lines: list[Line]) -> None:
    lines.append(lines[actions(lines)[4]])


def swap(lines: list[Line]) -> None:
    one, other = actions(lines)[4:6]
    lines[one], lines[other] = lines[other], lines[one]


def alter(lines: list[Line]) -> None:
    place = actions(lines)[4]
    lines[place] = Line("received", lines[place].frame.replace(b"text 4", b"text X"))


def renumber(lines: list[Line]) -> None:
    """Everything is there, in order, and one of them under a number that is not the log's."""
    place = actions(lines)[-1]
    frame = msgspec.json.decode(lines[place].frame)
    frame["params"]["serverSeq"] += 1_000
    del lines[place + 1 :]
    lines[place] = Line("received", msgspec.json.encode(frame))


def lose_snapshot(lines: list[Line]) -> None:
    """The snapshot claims to be older than it is."""
    place = next(n for n, line in enumerate(lines) if b'"snapshots"' in line.frame)
    frame = msgspec.json.decode(lines[place].frame)
    frame["result"]["snapshots"][0]["fromSeq"] = 1
    lines[place] = Line("received", msgspec.json.encode(frame))


def leave_unanswered(lines: list[Line]) -> None:
    action = msgspec.json.decode(next(x.frame for x in lines if b"dispatchAction" in x.frame))
    action["params"]["clientSeq"] = 99
    lines.append(Line("sent", msgspec.json.encode(action)))


def refuse_what_was_stored(lines: list[Line], reason: str = "No.") -> None:
    """The client is told that its action was refused, and gets it all the same."""
    place = next(n for n in actions(lines) if b'"clientId":"p0"' in lines[n].frame)
    frame = msgspec.json.decode(lines[place].frame)
    frame["params"] |= {"rejectionReason": reason}
    lines.insert(place + 1, Line("received", msgspec.json.encode(frame)))


@pytest.mark.proves("design.nodes.checker")
@pytest.mark.parametrize(
    "fault",
    [
        drop,
        drop_last,
        duplicate,
        repeat_later,
        swap,
        alter,
        renumber,
        lose_snapshot,
        leave_unanswered,
        refuse_what_was_stored,
    ],
)
def test_a_fault_in_what_a_client_received_is_found(
    recorded: Recorded, fault: Callable[[list[Line]], None]
) -> None:
    with pytest.raises(Diverged):
        recorded.with_lines(fault).check()


def test_what_was_in_doubt_may_turn_out_to_be_stored(recorded: Recorded) -> None:
    counts = recorded.with_lines(
        lambda lines: refuse_what_was_stored(lines, in_doubt("No answer."))
    ).check()
    assert counts["actions"]["unknown"] == 1


# What the log holds


def typed(entries: list[Entry]) -> list[int]:
    return [n for n, entry in enumerate(entries) if b"inputAnswerChanged" in entry.data]


def lose_entry(entries: list[Entry]) -> None:
    """It was acknowledged, and everybody has seen it."""
    del entries[typed(entries)[4]]


def lose_end(entries: list[Entry]) -> None:
    del entries[-1]


def store_twice(entries: list[Entry]) -> None:
    entries.append(replace(entries[typed(entries)[4]], seq=entries[-1].seq + 1, id="again"))


def swap_entries(entries: list[Entry]) -> None:
    one, other = typed(entries)[4:6]
    first, second = entries[one], entries[other]
    entries[one] = replace(second, seq=first.seq)
    entries[other] = replace(first, seq=second.seq)


def invent(entries: list[Entry]) -> None:
    """An action under the name of a client that never sent it; nobody has received it yet."""
    place = typed(entries)[-1]
    data = entries[place].data
    seq = msgspec.json.decode(data)["origin"]["clientSeq"]
    other = data.replace(b'"clientSeq":%d' % seq, b'"clientSeq":77')
    assert other != data
    entries[place] = replace(entries[place], data=other)


@pytest.mark.proves("design.nodes.checker")
@pytest.mark.parametrize("fault", [lose_entry, lose_end, store_twice, swap_entries, invent])
def test_a_fault_in_the_log_is_found(
    recorded: Recorded, fault: Callable[[list[Entry]], None]
) -> None:
    with pytest.raises(Diverged):
        recorded.with_entries(fault).check()


@pytest.mark.parametrize("edit", [lose_entry, store_twice, invent])
def test_what_became_of_own_actions_is_judged_by_itself(
    recorded: Recorded, edit: Callable[[list[Entry]], None]
) -> None:
    """Also where no client would notice by what it received."""
    oracle = LogOracle(recorded.with_entries(edit).entries)
    with pytest.raises(Diverged, match=r"is (not )?in the log"):
        check_answers(oracle, recorded.evidence.histories)


# What askers were told, and what really ran


@pytest.mark.proves("design.nodes.checker")
def test_a_request_that_is_lost_or_ended_otherwise_is_found(recorded: Recorded) -> None:
    (asked,) = recorded.evidence.asked
    for told in (Asked(TALK, "lost"), asked._replace(id="lost"), asked._replace(answer="p1")):
        with pytest.raises(Diverged, match=r"in the log 0 times|ended as \['p0'\]"):
            recorded.told(told).check()


def test_a_request_that_is_neither_open_nor_ended_is_found(recorded: Recorded) -> None:
    """Its completion is gone from the log, but not from the state."""
    (asked,) = recorded.evidence.asked
    oracle = LogOracle(recorded.entries)
    check_asked(oracle, [asked])
    for seq, logged in tuple(oracle.logged.items()):
        if isinstance(logged.action, InputCompleted):
            del oracle.logged[seq]
    with pytest.raises(Diverged, match="neither open nor ended"):
        check_asked(oracle, [asked._replace(answer=None)])


@pytest.mark.proves("design.nodes.checker")
@pytest.mark.parametrize(("effects"), [("a", "b", "b"), ("a",), ("a", "b", "c", "c")])
def test_an_effect_that_ran_twice_or_not_at_all_is_found(
    recorded: Recorded, effects: tuple[str, ...]
) -> None:
    recorded.ran("a", "b", "c").check()
    with pytest.raises(Diverged, match=r"ran 2 times|did not run"):
        recorded.ran(*effects).check()
