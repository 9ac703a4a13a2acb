"""Log messages of servers: how many wait for a client, and which call gets them."""

import asyncio
from typing import Any, get_args

from mcp_types import (
    ErrorData,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.shared_connections import SharedLink, Signal
from session_server.mcp_client.notifications import Notifications
from session_server.mcp_client.progress import LEVELS, LOGS_KEPT, Log, Logs
from session_server.schemas.limits import LOG_BYTES_HELD, LOG_MESSAGES_HELD


def message(data: Any) -> LoggingMessageNotificationParams:
    return LoggingMessageNotificationParams(level="info", data=data)


def test_the_levels_are_those_of_the_protocol() -> None:
    assert get_args(LoggingLevel) == LEVELS


def test_messages_beyond_the_number_held_are_left_out_and_counted() -> None:
    log = Log()
    assert log.taken() is None
    for number in range(LOG_MESSAGES_HELD + 3):
        log.add(message(number))
    *held, last = log.taken() or []
    assert [one.data for one in held] == list(range(LOG_MESSAGES_HELD))
    assert (last.level, last.data) == (
        "warning",
        "3 log messages were left out: too many at once.",
    )
    assert log.taken() is None


def test_messages_beyond_the_bytes_held_are_left_out_and_counted() -> None:
    log = Log()
    log.add(message("x" * LOG_BYTES_HELD))
    log.add(message("short"))
    first, last = log.taken() or []
    assert first.data == "short"
    assert last.data.startswith("1 log messages were left out")


def test_logs_of_the_latest_calls_are_kept() -> None:
    logs = Logs()
    logs.of("first").add(message("old"))
    for number in range(LOGS_KEPT):
        logs.of(str(number))
    assert logs.of("first").taken() is None


class Hearer:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def logged(self, message: LoggingMessageNotificationParams) -> None:
        self.heard.append(message.data)

    async def ask(self, question: dict[str, Any]) -> dict[str, Any] | ErrorData:
        raise NotImplementedError

    async def visited(self, elicitation_id: str) -> None:
        raise NotImplementedError


async def test_a_message_that_may_belong_to_anothers_call_goes_to_no_call() -> None:
    ada, again, bob, unattributed = Hearer(), Hearer(), Hearer(), Hearer()
    notifications = Notifications(asyncio.create_task)
    notifications.subscribe_to_log(unattributed.logged)
    shared = SharedLink(ServerConfig(command="none"), Signal(), notifications)

    async def say(data: str) -> None:
        await shared._notified(LoggingMessageNotification(params=message(data)))

    with shared.logging_to(ada, "ada"):
        await say("alone")
        with shared.logging_to(again, "ada"):
            await say("one principal")
        with shared.logging_to(bob, "bob"):
            await say("two principals")
    await say("no call")
    assert (ada.heard, again.heard) == (["alone", "one principal"], ["one principal"])
    assert (bob.heard, unattributed.heard) == ([], ["two principals", "no call"])
