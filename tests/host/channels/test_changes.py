"""Each change gets exactly one outcome, whatever the log, the session and its listeners do."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from session_server.host.channels.changes import Change
from session_server.host.channels.channel import Channel
from session_server.host.host import Host
from session_server.log import Batch, NewEntry
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.codec import encode
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.log_entries import Logged, LoggedAction
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import SessionRecord
from tests.ahp.client import SESSION
from tests.effort import tries
from tests.host.faulty_logs import TroubledLog
from tests.host.harness import hosting, with_session
from tests.host.manual_clock import ManualClock

NO = Refusal(code=RefusalCode.LIMIT, message="no")


class Observed(Change):
    """Notes what it is told. `more` is submitted from within its first outcome."""

    def __init__(self, schedule: "Schedule", kind: str, more: "Observed | None" = None) -> None:
        super().__init__(None, HOST)
        self.told: list[str] = []
        self._schedule = schedule
        self._kind = kind
        self._more = more

    def plan(self, record: Any, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:  # noqa: ARG002
        match self._kind:
            case "write":
                return (TitleChanged(title=f"title {next(self._schedule.numbers)}"),)
            case "write much":
                return tuple(TitleChanged(title=f"{i}") for i in range(300))
            case "fail later":
                self._kind = "fail"
                return (TitleChanged(title="once"),)
            case "fail":
                raise RuntimeError("a defect")
            case "refuse":
                return NO
            case _:
                return ()

    def _tell(self, outcome: str) -> None:
        self.told.append(outcome)
        more, self._more = self._more, None
        if more is not None:
            self._schedule.submit(more)

    def done(self) -> None:
        self._tell("done")

    def refused(self, refusal: Refusal) -> None:  # noqa: ARG002
        self._tell("refused")

    def failed(self, reason: str) -> None:  # noqa: ARG002
        self._tell("failed")

    def doubted(self, reason: str) -> None:  # noqa: ARG002
        self._tell("doubted")


class Schedule:
    """A session on a log that meets trouble, and everything that was submitted to it."""

    def __init__(self, host: Host, log: TroubledLog, clock: ManualClock) -> None:
        self.host = host
        self.log = log
        self.clock = clock
        self.channel: Channel[SessionRecord] = host.sessions[SESSION]
        self.numbers = count()
        self.changes: list[Observed] = []

    def submit(self, change: Observed) -> None:
        self.changes.append(change)
        self.host.submit(SESSION, change)

    async def do(self, step: str) -> None:
        match step.split(":"):
            case ["submit", kind]:
                self.submit(Observed(self, kind))
            case ["submit", kind, then]:
                self.submit(Observed(self, kind, Observed(self, then)))
            case ["trouble", kind]:
                self.log.trouble.append(kind)
            case ["turn"]:
                await asyncio.sleep(0)
            case ["wait"]:
                await self.clock.advance(self.host.limits.store_seconds)
            case ["release"]:
                self.log.release()
            case ["close"]:
                self.channel.close("closed for a while")
            case ["reopen"]:
                self.channel.reopen()
            case _:
                self._write_from_elsewhere()

    def _write_from_elsewhere(self) -> None:
        """Another process: the next batch of ours is in conflict with it."""
        number = next(self.numbers)
        action = TitleChanged(title=f"theirs {number}")
        data = encode(Logged(action=action, stamp=Stamp(at=self.clock.now(), by=HOST)))
        last = self.log._lasts[SESSION]
        entry = NewEntry(f"theirs-{number}", data)
        super(TroubledLog, self.log).append_one(Batch(SESSION, last, (entry,)), lambda _: None)

    async def settle(self) -> None:
        self.log.trouble.clear()
        for _ in range(3):
            self.log.release()
            await self.clock.advance(self.host.limits.store_seconds)


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["submit:write", "submit:refuse", "submit:nothing", "submit:write much"]),
        st.sampled_from(
            [
                "submit:fail later",
                "submit:write:write",
                "submit:refuse:write",
                "submit:nothing:refuse",
            ]
        ),
        st.sampled_from(["turn", "turn", "wait", "release", "close", "reopen", "elsewhere"]),
        st.sampled_from(["full", "hold", "stored but unknown", "lost and unknown"]).map(
            "trouble:{}".format
        ),
    ),
    max_size=25,
)


@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
@settings(max_examples=tries(in_ci=300, at_hand=40))
@given(steps=STEPS)
@example(steps=["trouble:hold", "submit:write", "turn", "submit:write", "submit:refuse", "wait"])
@example(steps=["trouble:hold", "submit:write", "submit:refuse", "turn", "wait"])
@example(steps=["trouble:lost and unknown", "submit:fail later", "submit:write", "turn"])
@example(steps=["elsewhere", "submit:write", "turn", "turn", "submit:write", "close"])
@example(
    steps=[
        "trouble:hold",
        "submit:write much",
        "turn",
        "trouble:full",
        "submit:write much",
        "close",
    ]
)
@example(
    steps=[
        "trouble:lost and unknown",
        "submit:write",
        "submit:refuse:write",
        "turn",
        "submit:write",
    ]
)
@example(steps=[*["submit:write much"] * 5, *["turn"] * 4, "trouble:full", "turn", "turn"])
def test_each_change_gets_one_outcome_and_sizes_add_up(
    steps: list[str], *, is_shared: bool
) -> None:
    async def check() -> None:
        log, clock = TroubledLog(), ManualClock()
        async with hosting(log, clock=clock, is_shared=is_shared) as host:
            await with_session(host)
            await clock.advance(1)
            schedule = Schedule(host, log, clock)
            channel = schedule.channel
            size, seq = channel.size.bytes, channel.last_seq
            for step in steps:
                await schedule.do(step)
            channel.reopen()
            await schedule.settle()
            schedule.submit(Observed(schedule, "write"))
            await schedule.settle()
            for change in schedule.changes:
                outcomes = [told for told in change.told if told != "doubted"]
                assert len(outcomes) == 1, change.told
                assert Counter(change.told)["doubted"] <= 1
                assert change.told[-1] != "doubted"
            if channel.is_closed:
                return  # the log did not agree with what was read from it
            assert schedule.changes[-1].told == ["done"]
            stored = await log.read(after=seq, limit=10_000, channels=(SESSION,))
            assert channel.head is channel.committed
            estimate = channel.size.bytes
            assert len(encode(channel.committed)) <= estimate
            assert estimate <= size + sum(len(entry.data) for entry in stored)

    asyncio.run(check())
