"""What a session does, in one word and one colour, and how long ago something was."""

import time
from enum import StrEnum

from rich.text import Text

from session_server.schemas.questions import InputRequest
from session_server.schemas.session import ACTIVITY_BITS, SessionSummary, Status


class State(StrEnum):
    """What `--until` takes."""

    INPUT_NEEDED = "input-needed"
    IN_PROGRESS = "in-progress"
    IDLE = "idle"
    ERROR = "error"


_STYLES = {
    State.INPUT_NEEDED: ("●", "bold yellow", "needs input"),
    State.IN_PROGRESS: ("◐", "cyan", "working"),
    State.IDLE: ("○", "dim", "idle"),
    State.ERROR: ("✗", "bold red", "failed"),
}
LEFT = ("◌", "yellow", "not waiting")
LEFT_NAME = "asker-gone"


def state_of(summary: SessionSummary) -> State:
    match summary.status & ACTIVITY_BITS:
        case Status.INPUT_NEEDED:
            return State.INPUT_NEEDED
        case Status.IN_PROGRESS:
            return State.IN_PROGRESS
        case Status.ERROR:
            return State.ERROR
        case _:
            return State.IDLE


def is_left(summary: SessionSummary) -> bool:
    """Whether nobody waits for the answers that are open in it; they can still be given."""
    return summary.meta is not None and summary.meta.askers_gone is True


def is_hidden(summary: SessionSummary) -> bool:
    """An archived session with open questions stays in sight: somebody may wait for the answers."""
    is_archived = bool(summary.status & Status.IS_ARCHIVED)
    return is_archived and state_of(summary) is not State.INPUT_NEEDED


def shown_state(summary: SessionSummary) -> Text:
    mark, style, words = LEFT if is_left(summary) else _STYLES[state_of(summary)]
    return Text(f"{mark} {words}", style=style)


def ago(at: int) -> str:
    seconds = max(0, int(time.time() - at / 1000))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "now" if seconds < 10 else f"{seconds} s ago"


def clock(at: int) -> str:
    return time.strftime("%H:%M", time.localtime(at / 1000))


def when(at: int) -> str:
    """A moment that may be on another day."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


def asker_gone(request: InputRequest) -> str | None:
    """That nobody waits for the answer to this, if so."""
    since = None if request.meta is None else request.meta.asker_gone_since
    if since is None:
        return None
    what = f"The program that asked is no longer waiting (since {when(since)})."
    return f"{what} Your answer will be kept for it."
