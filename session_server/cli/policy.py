"""Answering from a fixture: as a policy, in one session or in all, now or as questions come."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from session_server.cli.exit_codes import ExitCode
from session_server.cli.failures import Trouble
from session_server.cli.fixtures import Rule, Unanswerable, answers_from, rule_for
from session_server.cli.output import err, out, print_json
from session_server.cli.session_names import short_name
from session_server.cli.sessions import State, state_of
from session_server.client import Client, Rejected, RequestClosed, Session, SessionNotFound
from session_server.reducers.texts import subject
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.wire import Uri


class Patience(NamedTuple):
    """When to stop: what is open now, so many answers, or never."""

    answers: int | None
    seconds: float | None
    is_endless: bool = False

    @property
    def is_none(self) -> bool:
        return self.answers is None and not self.is_endless


class Policy:
    """What the rules have answered so far, and what they could not."""

    def __init__(self, rules: Sequence[Rule], patience: Patience, *, as_json: bool) -> None:
        self._rules = rules
        self._patience = patience
        self._as_json = as_json
        self._tried: dict[tuple[Uri, str], InputRequest] = {}
        self.answered = 0
        self.refused = 0

    @property
    def is_done(self) -> bool:
        patience = self._patience
        return patience.is_none or (
            patience.answers is not None and self.answered >= patience.answers
        )

    async def run(self, client: Client, uri: Uri | None) -> ExitCode:
        try:
            async with asyncio.timeout(self._patience.seconds):
                if uri is None:
                    await self._all(client)
                else:
                    async with client.session(uri) as session:
                        await self._one(session)
        except TimeoutError:
            if not self._patience.is_endless:
                words = f"{self.answered} of {self._patience.answers} questions came in time."
                raise Trouble(words, ExitCode.TIMED_OUT) from None
        return self._verdict()

    async def _one(self, session: Session) -> None:
        changes = session.changes()
        await self._look(session)
        while not self.is_done:
            await anext(changes)
            await self._look(session)

    async def _all(self, client: Client) -> None:
        async for sessions in client.sessions():
            for summary in sessions:
                if state_of(summary) is State.INPUT_NEEDED:
                    await self._visit(client, summary.resource)
            if self.is_done:
                return

    async def _visit(self, client: Client, uri: Uri) -> None:
        try:
            async with client.session(uri) as session:
                await self._look(session)
        except SessionNotFound:
            return

    async def _look(self, session: Session) -> None:
        for request in session.confirmed.input_requests or ():
            key, asked = (session.uri, request.id), msgspec.structs.replace(request, answers=None)
            if self._tried.get(key) != asked:
                self._tried[key] = asked
                await self._try(session, request)

    async def _try(self, session: Session, request: InputRequest) -> None:
        try:
            number = rule_for(self._rules, session.uri, request)
            rule = self._rules[number - 1]
            action = InputCompleted(
                request_id=request.id,
                response=rule.response,
                answers=answers_from(rule, request),
            )
            await session.dispatch(action)
        except RequestClosed:
            return  # somebody was faster
        except (Unanswerable, Rejected) as error:
            self.refused += 1
            self._tell_refused(session.uri, request, str(error))
            return
        self.answered += 1
        self._tell(session.uri, request, number, rule)

    # Telling

    def _tell(self, uri: Uri, request: InputRequest, number: int, rule: Rule) -> None:
        if self._as_json:
            told = {"session": uri, "request": request.id, "response": rule.response}
            print_json({**told, "rule": number})
            return
        words = f"{short_name(uri)}: {rule.response} “{subject(request)}” (rule {number})"
        out.print(words, markup=False, soft_wrap=True)

    def _tell_refused(self, uri: Uri, request: InputRequest, words: str) -> None:
        if self._as_json:
            print_json({"session": uri, "request": request.id, "unanswered": words})
            return
        said = f"{short_name(uri)}: “{subject(request)}” is left open. {words}"
        err.print(said, style="yellow", markup=False, soft_wrap=True)

    def _verdict(self) -> ExitCode:
        if self.refused:
            return ExitCode.UNANSWERED
        if not self.answered and not self._patience.is_endless:
            words = "No question is open."
            raise Trouble(words, ExitCode.NOT_FOUND, "To wait for one, add --wait 10m.")
        return ExitCode.OK
