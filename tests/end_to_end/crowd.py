"""Dozens of clients spread over nodes that fail: people who type and answer, askers and callers.

Each of them keeps to what it was told, goes to another node when its own is lost, and records what
it sent and received for `tests.ahp.history`.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any
from urllib.parse import quote

import httpx2
from websockets.exceptions import WebSocketException

from session_server.log.opening import open_log
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.wire import Seq, Uri
from tests.ahp.actions import answer_changed, input_completed, title_changed
from tests.ahp.history import Asked, Called, Evidence, check
from tests.ahp.mirror import ROOT, Mirror
from tests.ahp.oracle import LogOracle
from tests.effort import PATIENCE
from tests.end_to_end.mirror_client import Device
from tests.waiting import PAUSE, until

SESSIONS: tuple[Uri, ...] = tuple(f"ahp-session:/s{number}" for number in range(6))
PEOPLE = 36
ASKERS = CALLERS = 3
WINDOW = 4
"""Actions that a person has under way at once."""
THINKING = 0.2
"""Seconds between two actions of one person, on average."""
GIVE_UP = 10
AGAIN = "Run it again?"


class Person(Device):
    """Watches some sessions, types into what is asked there, and answers some of it."""

    def __init__(
        self, mirror: Mirror, nodes: Sequence[str], dice: Random, patience: float = GIVE_UP
    ) -> None:
        super().__init__(mirror)
        self._nodes = nodes
        self._patience = patience
        self._dice = dice
        self.node = dice.randrange(len(nodes))
        self._written = 0
        self.is_typing = True
        self.is_stopped = False
        self.failures: Counter[str] = Counter()

    async def run(self) -> None:
        while not self.is_stopped:
            if not self.is_online:
                await self._come_back()
            elif self.is_typing and self.mirror.is_in and self.mirror.unanswered < WINDOW:
                await self._act()
            await asyncio.sleep(self._dice.expovariate(1 / THINKING))

    async def _come_back(self) -> None:
        """To any other node: the lost one may not be back yet, and a node must not get all people.

        A node that cannot write answers at once, so that nobody has a reason to leave it.
        """
        others = [node for node in range(len(self._nodes)) if node != self.node]
        self.node = self._dice.choice(others or [self.node])
        try:
            async with asyncio.timeout(self._patience):
                await self.connect(f"ws{self._nodes[self.node].removeprefix('http')}/ahp")
        except (OSError, TimeoutError, WebSocketException) as error:
            self.failures[type(error).__name__] += 1
            self.cut()

    async def _act(self) -> None:
        uri = self._dice.choice([uri for uri in self.mirror.copies if uri != ROOT])
        state = self.mirror.copies[uri].state
        assert isinstance(state, SessionState)
        self._written += 1
        text = f"{self.mirror.client_id}/{self._written}"
        requests = state.input_requests
        if not requests or self._dice.random() < 0.1:
            await self.say(self.mirror.dispatch(uri, title_changed(text)))
            return
        request = self._dice.choice(requests)
        await self.say(self.mirror.dispatch(uri, self._answer(request, text)))

    def _answer(self, request: InputRequest, text: str) -> dict[str, Any]:
        """Nobody agrees to run a call twice. What is answered to a call begins with its id."""
        if AGAIN in (request.message or ""):
            return input_completed(request.id, "decline")
        (question,) = request.questions or ()
        if request.meta is not None and request.meta.call is not None:
            text = f"{request.meta.call}/{text}"
        if self._dice.random() < 0.3:
            return input_completed(request.id, **{question.id: text})
        return answer_changed(text, request.id, question.id)


class Crowd:
    """`nodes` are the addresses that clients know; `seen` is what any of them has received.

    After `patience` seconds without an answer a client tries another node.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        dice: Random,
        people: int = PEOPLE,
        patience: float = GIVE_UP,
    ) -> None:
        self.dice = dice
        self._patience = patience
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.people = [self._person(number, nodes) for number in range(people)]
        self.asked: list[Asked] = []
        self.called: list[Called] = []
        self.answers: Counter[str] = Counter()
        self._http = [httpx2.AsyncClient(base_url=node, timeout=patience) for node in nodes]
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []
        self._programs: list[asyncio.Task[None]] = []

    def _person(self, number: int, nodes: Sequence[str]) -> Person:
        wanted = [ROOT, *self.dice.sample(SESSIONS, 3)]
        mirror = Mirror(f"p{number}", wanted, is_careful=number % 2 == 0, seen=self.seen)
        return Person(mirror, nodes, Random(self.dice.getrandbits(32)), self._patience)

    async def come(self) -> None:
        for uri in SESSIONS:
            await self._done("POST", "/v1/sessions", json={"resource": uri})
        start = asyncio.create_task
        self._tasks = [start(person.run()) for person in self.people]
        self._programs = [
            *(start(self._ask(number)) for number in range(ASKERS)),
            *(start(self._call(number)) for number in range(CALLERS)),
        ]
        await until(lambda: all(person.mirror.is_in for person in self.people))

    async def progress(self, more: int) -> None:
        """Until so many envelopes more were received."""
        goal = len(self.seen) + more
        await until(lambda: self._raise_failures() or len(self.seen) >= goal)

    def _raise_failures(self) -> None:
        for task in (*self._tasks, *self._programs):
            if task.done() and task.exception() is not None:
                task.result()

    async def finish(self) -> None:
        """What was asked is answered; then nobody types any more, and all are connected."""
        self._is_over = True
        async with asyncio.timeout(2 * PATIENCE):
            await asyncio.gather(*self._programs)
        for person in self.people:
            person.is_typing = False
        await until(lambda: self._raise_failures() or all(map(_is_idle, self.people)))

    async def judged(
        self, store: str, effects: Sequence[str], others: Sequence[Device] = ()
    ) -> dict[str, Any]:
        """Everybody receives all that is public; then what they recorded is judged by the log."""
        log = await open_log(store, is_exclusive=False)
        oracle = await LogOracle.of(log)
        await log.close()
        everyone = [*self.people, *others]
        for device in everyone:
            for uri, copy in device.mirror.copies.items():
                end = max(oracle.public.get(uri, [0]))
                await device.until(lambda copy=copy, end=end: copy.position >= end)
        histories = [device.history for device in everyone]
        evidence = Evidence(histories, self.asked, self.called, effects)
        found = await asyncio.to_thread(check, oracle, evidence)
        for device in others:
            await device.hang_up()
        return found

    async def leave(self) -> None:
        for person in self.people:
            person.is_stopped = True
        for task in self._programs:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, *self._programs, return_exceptions=True)
        for person in self.people:
            await person.hang_up()
        for client in self._http:
            await client.aclose()

    # Programs, over HTTP

    async def _ask(self, number: int) -> None:
        question = {"kind": "text", "id": "q", "message": "What?"}
        wanted = {"message": "Go on?", "questions": [question]}
        asked = 0
        while not self._is_over:
            asked += 1
            session = self.dice.choice(SESSIONS)
            path = f"/v1/sessions/{session.rpartition('/')[2]}/requests"
            key = {"Idempotency-Key": f"ask-{number}-{asked}"}
            request = (await self._done("POST", path, json=wanted, headers=key))["id"]
            place = len(self.asked)
            self.asked.append(Asked(session, request))
            view: dict[str, Any] = {"state": "open"}
            while view["state"] == "open":
                view = await self._done("GET", f"{path}/{quote(request, safe='')}?wait=2")
            answer = view["outcome"]["answers"]["q"]["value"]["value"]
            self.asked[place] = Asked(session, request, answer)

    async def _call(self, number: int) -> None:
        called = 0
        while not self._is_over:
            called += 1
            session = self.dice.choice(SESSIONS).rpartition("/")[2]
            wanted = {"server": "zoo", "tool": "weather"}
            key = {"Idempotency-Key": f"call-{number}-{called}"}
            path = f"/v1/sessions/{session}/calls"
            call = (await self._done("POST", path, json=wanted, headers=key))["id"]
            place = len(self.called)
            self.called.append(Called(call, is_finished=False))
            view: dict[str, Any] = {}
            while "endedAt" not in view:
                view = await self._done("GET", f"/v1/calls/{quote(call, safe='')}?wait=2")
            self.answers[f"call {view['state']}"] += 1
            self.called[place] = Called(call, is_finished=view["state"] == "finished")

    async def _done(self, method: str, path: str, **more: Any) -> Any:
        """At any node, and at another one until it succeeds: with a key, nothing is made twice."""
        while True:
            client = self.dice.choice(self._http)
            try:
                answer = await client.request(method, path, **more)
            except httpx2.TransportError as error:
                self.answers[type(error).__name__] += 1
            else:
                self.answers[str(answer.status_code)] += 1
                if answer.is_success:
                    return answer.json()
                assert answer.status_code == 503, answer.text
            await asyncio.sleep(PAUSE)


def _is_idle(person: Person) -> bool:
    return person.is_online and person.mirror.is_in and not person.mirror.unanswered
