"""A session as text: turns and open questions, for a terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from session_server.cli.answer_texts import answer_text, asker, heading, question_line
from session_server.cli.commands.sessions import asker_gone, clock, shown_state
from session_server.cli.session_names import short_name
from session_server.reducers.state.status import listed
from session_server.schemas import wire
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.ahp.tool_calls import (
    Cancelled,
    Completed,
    PendingConfirmation,
    PendingResultConfirmation,
    TextContent,
    ToolCall,
)
from session_server.schemas.ahp.turn_messages import USER
from session_server.schemas.ahp.turns import (
    ActiveTurn,
    MarkdownPart,
    ReasoningPart,
    ResponsePart,
    SystemNotificationPart,
    ToolCallPart,
    Turn,
)

RESULT_CHARS = 400
"""As much of a tool's result as is shown; `call` and the page show all of it."""


class Transcript:
    """Separates what is final, which is printed once, from what may still change.

    The latter is drawn again with every change.
    """

    def __init__(self, turns_shown: int) -> None:
        self._turns_shown = turns_shown
        self._printed: dict[str, int | None] | None = None
        """How many parts of each turn were printed; `None` if it needs nothing more."""

    def news(self, state: SessionState) -> Iterator[RenderableType]:
        turns: tuple[Turn | ActiveTurn, ...] = state.turns
        if state.active_turn is not None:
            turns = (*turns, state.active_turn)
        if self._printed is None:
            skipped = turns[: -self._turns_shown] if self._turns_shown else turns
            self._printed = dict.fromkeys(turn.id for turn in skipped)
            if skipped:
                yield Text(f"… {len(skipped)} earlier turns", style="dim")
        for turn in turns:
            if turn.id not in self._printed:
                yield message(turn)
            printed = self._printed.get(turn.id, 0)
            if printed is None:
                continue
            settled = settled_parts(turn, is_paused=bool(state.input_requests))
            for part in turn.response_parts[printed:settled]:
                yield part_text(part)
            self._printed[turn.id] = None if isinstance(turn, Turn) else settled
            if isinstance(turn, Turn) and turn.error is not None:
                yield Text(f"✗ {turn.error.message}", style="red")

    def unsettled(self, state: SessionState) -> Iterator[RenderableType]:
        turn = state.active_turn
        if turn is not None:
            settled = settled_parts(turn, is_paused=bool(state.input_requests))
            for part in turn.response_parts[settled:]:
                yield part_text(part)


def settled_parts(turn: Turn | ActiveTurn, *, is_paused: bool) -> int:
    """Parts before the first that may still change; while a question is open, no text grows."""
    parts = turn.response_parts
    if isinstance(turn, Turn):
        return len(parts)
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        if isinstance(part, ToolCallPart):
            if not isinstance(part.tool_call, Completed | Cancelled):
                return index
        elif is_last and not is_paused and isinstance(part, MarkdownPart | ReasoningPart):
            return index
    return len(parts)


def message(turn: Turn | ActiveTurn) -> RenderableType:
    if turn.message.origin.kind == USER:
        return Padding(Text(f"❯ {turn.message.text}", style="bold"), (1, 0, 0, 0))
    return Padding(Text(f"— {turn.message.text}", style="dim"), (1, 0, 0, 0))


def part_text(part: ResponsePart) -> RenderableType:
    match part:
        case MarkdownPart(content=content):
            return Markdown(content)
        case ReasoningPart(content=content):
            return Text(content, style="dim italic")
        case ToolCallPart(tool_call=call):
            return tool_call_text(call)
        case SystemNotificationPart(content=content):
            return Text(f"• {plain(content)}", style="dim")
        case _:
            return Text("• (something that this version cannot show)", style="dim")


def tool_call_text(call: ToolCall) -> Text:
    match call:
        case Completed(success=success):
            mark, style = ("✓", "green") if success else ("✗", "red")
            line = Text(f"{mark} {plain(call.past_tense_message)}", style=style)
            return line.append(result_text(call))
        case Cancelled():
            return Text(f"✗ {call.display_name} was cancelled", style="red")
        case PendingConfirmation() | PendingResultConfirmation():
            text = f"● {call.display_name} waits for a confirmation"
            return Text(f"{text}: {plain(call.invocation_message)}", style="yellow")
        case _:
            text = plain(call.invocation_message) if call.invocation_message else call.display_name
            return Text(f"◐ {text} …", style="cyan")


def result_text(call: Completed) -> Text:
    texts = (piece.text for piece in call.content or () if isinstance(piece, TextContent))
    text = "\n".join(texts).strip()
    cut = f"{text[:RESULT_CHARS]} …" if len(text) > RESULT_CHARS else text
    return Text("".join(f"\n  {line}" for line in cut.splitlines()), style="dim")


def plain(text: wire.Text) -> str:
    return text.markdown if isinstance(text, wire.Markdown) else text


def last_note(state: SessionState) -> str | None:
    """The latest thing the host noted in the latest turn, such as who declined what."""
    turn = state.active_turn or (state.turns[-1] if state.turns else None)
    parts = turn.response_parts if turn else ()
    notes = [part.content for part in parts if isinstance(part, SystemNotificationPart)]
    return plain(notes[-1]) if notes else None


def request_panel(request: InputRequest) -> Panel:
    """An open question with what has been answered so far, live."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for question in request.questions or ():
        answer = (request.answers or {}).get(question.id)
        grid.add_row(question_line(question), answer_text(question, answer))
    body: list[RenderableType] = []
    if request.url is not None:
        body.append(Text(request.url, style="underline"))
    if request.questions:
        body.append(grid)
    expires = None if request.meta is None else request.meta.expires_at
    if not body:
        body.append(Text("accept or decline", style="dim"))
    gone = asker_gone(request)
    if gone is not None:
        body.append(Text(gone, style="yellow"))
    notes = [asker(request), "" if expires is None else f"until {clock(expires)}"]
    return Panel(
        Group(*body),
        title=Text(heading(request), style="bold yellow"),
        title_align="left",
        subtitle=Text(" · ".join(note for note in notes if note), style="dim"),
        subtitle_align="right",
        border_style="yellow",
    )


def status_line(state: SessionState, connection: str) -> Text:
    summary = state.summary
    parts = [shown_state(listed(state)), Text(summary.title, style="bold")]
    if summary.activity:
        parts.append(Text(summary.activity, style="cyan"))
    if state.input_requests:
        how = f"answer with: session-server answer {short_name(summary.resource)}"
        parts.append(Text(how, style="dim"))
    parts.append(Text(connection, style="dim"))
    return Text("  ").join(parts)
