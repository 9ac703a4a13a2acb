"""The form on a terminal: keys in, lines out, drafts to the session while one types."""

import asyncio
import sys
import webbrowser
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from session_server.cli.form import drawing
from session_server.cli.form.fields import Field, Form
from session_server.cli.form.sharing import Ending, Sharing
from session_server.client import Client, Session
from session_server.reducers.texts import name_of
from session_server.schemas.ahp.commands import EditingPlace, Present
from session_server.schemas.ahp.questions import InputRequest, ResponseKind, Skipped, Submitted

OPTION_ROWS = 12


class Screen:
    def __init__(self, client: Client, session: Session, request: InputRequest) -> None:
        self.form = Form(request)
        self.client = client
        self.session = session
        self._is_loading = False
        self._in_review = Condition(lambda: self.form.is_review)
        self._in_choice = ~self._in_review & Condition(lambda: self._field.is_choice)
        self._in_text = ~self._in_review & Condition(lambda: self._field.accepts_text)
        self._sharing = Sharing(session, self.form, self._show_field, self._exit)
        self._buffer = Buffer(multiline=False, on_text_changed=lambda _: self._typed())
        self._choice = Window(
            FormattedTextControl(self._options, focusable=True, show_cursor=False),
            height=Dimension(max=OPTION_ROWS),
            dont_extend_height=True,
        )
        self._text = Window(BufferControl(self._buffer), height=1)
        self._app: Application[Ending] = Application(
            layout=Layout(self._layout(), focused_element=self._choice),
            key_bindings=self._keys(),
            style=Style.from_dict(drawing.STYLES),
            erase_when_done=True,
            refresh_interval=1.0,
            output=_output(),
        )
        self._show_field()

    async def run(self) -> Ending:
        self.session.on_presence(self._app.invalidate)
        following = asyncio.create_task(self._sharing.follow())
        _go_to_margin()
        try:
            return await self._app.run_async()
        finally:
            following.cancel()

    @property
    def _field(self) -> Field:
        """Where the person is; not in the review."""
        assert self.form.field is not None
        return self.form.field

    def _exit(self, ending: Ending) -> None:
        self._app.exit(result=ending)

    # What it looks like

    def _layout(self) -> HSplit:
        def lines(draw: Callable[[], drawing.Fragments]) -> Window:
            control = FormattedTextControl(draw)  # type: ignore[arg-type]
            return Window(control, dont_extend_height=True, wrap_lines=True)

        has_below = Condition(lambda: bool(self._below()))
        several = Condition(lambda: not self.form.is_short and bool(self.form.fields))
        prompt = Window(FormattedTextControl([("class:title", "› ")]), width=2, height=1)
        return HSplit(
            [
                lines(self._head),
                ConditionalContainer(lines(lambda: drawing.strip(self.form)), several),
                Window(height=1),
                ConditionalContainer(
                    lines(lambda: drawing.question(self._field)), ~self._in_review
                ),
                ConditionalContainer(self._choice, self._in_choice | self._in_review),
                ConditionalContainer(
                    VSplit([Window(width=4, height=1, char=" "), prompt, self._text]),
                    self._in_text,
                ),
                ConditionalContainer(lines(self._below), ~self._in_review & has_below),
                Window(height=1),
                lines(lambda: drawing.keys(self.form)),
            ]
        )

    def _head(self) -> drawing.Fragments:
        title = self.session.state.summary.title
        others = [name_of(each.by) for each in self._others]
        return drawing.head(self.form, title, str(self.client.status), others)

    @property
    def _others(self) -> list[Present]:
        return [each for each in self.session.present if each.client_id != self.client.client_id]

    def _options(self) -> Any:
        if self.form.is_review:
            return drawing.review(self.form, self.session.author)
        return drawing.options(self._field)

    def _below(self) -> drawing.Fragments:
        place = EditingPlace(request_id=self.form.request.id, question_id=self._field.question.id)
        writers = [name_of(each.by) for each in self._others if each.editing == place]
        return drawing.below(self._field, self.session.author, writers)

    def _show_field(self) -> None:
        """Updates the text field and the focus for the current question."""
        field = self.form.field
        text = "" if field is None else field.text
        if self._buffer.text != text:
            self._is_loading = True
            self._buffer.set_document(Document(text), bypass_readonly=True)
            self._is_loading = False
        accepts_text = field is not None and field.accepts_text
        self._app.layout.focus(self._text if accepts_text else self._choice)
        self._app.invalidate()

    # Keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        in_choice, in_review = self._in_choice, self._in_review
        in_row = in_choice & ~self._in_text

        def bind(*names: str, when: Any = True) -> Callable[[Callable[..., None]], None]:
            def add(work: Callable[..., None]) -> None:
                def pressed(event: KeyPressEvent) -> None:
                    if not self._sharing.is_over:
                        work(event)
                        self._show_field()

                for name in names:
                    keys.add(name, filter=when, eager=True)(pressed)

            return add

        bind("c-c")(lambda _: self._leave())
        bind("escape")(lambda _: self._step_out())
        bind("enter", when=~in_review)(lambda _: self._confirm())
        bind("tab", "c-n")(lambda _: self._go(1))
        bind("s-tab", "c-p")(lambda _: self._go(-1))
        bind("right", when=in_row)(lambda _: self._go(1))
        bind("left", when=in_row)(lambda _: self._go(-1))
        bind("down", when=in_choice)(lambda _: self._field.move(1))
        bind("up", when=in_choice)(lambda _: self._field.move(-1))
        bind("space", when=in_row)(lambda _: self._pick())
        bind("c-s", when=~in_review)(lambda _: self._skip())
        bind("c-t", when=~in_review)(lambda _: self._field.use_theirs())
        bind("c-k", when=~in_review)(lambda _: self._keep_mine())
        bind("<any>", when=in_row)(lambda event: self._letter(event.data))
        bind("backspace", when=in_row)(lambda _: self._field.find(self._field.search[:-1]))
        bind("right", when=in_review)(lambda _: self.form.turn_ending(1))
        bind("left", when=in_review)(lambda _: self.form.turn_ending(-1))
        bind("enter", when=in_review)(lambda _: self._end(self.form.ending))
        bind("<any>", when=in_review)(lambda event: self._review_key(event.data))
        return keys

    def _go(self, steps: int) -> None:
        self._check_left()
        self.form.go(steps)

    def _check_left(self) -> None:
        """Validates on leaving a field and shows the error; the text is kept."""
        field = self.form.field
        if field is None:
            return
        field.left()
        if not field.is_touched:
            return
        try:
            field.valid_value()
        except ValueError as error:
            field.error = str(error)

    def _pick(self) -> None:
        self._field.choose(self._field.here)
        self._sharing.changed(self._field)

    def _letter(self, key: str) -> None:
        field = self._field
        if key.isdigit() and 0 < int(key) <= len(field.rows):
            field.row = int(key) - 1
            field.choose(field.here)
            self._sharing.changed(field)
        elif field.is_searched and key.isprintable():
            field.find(field.search + key)

    def _typed(self) -> None:
        field = self.form.field
        if not self._is_loading and field is not None:
            field.write(self._buffer.text)
            self._sharing.changed(field)

    def _keep_mine(self) -> None:
        field = self._field
        if field.keep_mine():
            field.error = ""
            self._sharing.changed(field)

    def _review_key(self, key: str) -> None:
        for ending, (_, letter) in drawing.ENDINGS.items():
            if key == letter:
                self.form.ending = ending
                self._end(ending)
        if key.isdigit() and 0 < int(key) <= len(self.form.fields):
            self.form.go_to(int(key) - 1)
        address = drawing.openable_address(self.form.request)
        if key == "o" and address is not None:
            webbrowser.open(address)

    def _step_out(self) -> None:
        if self.form.is_review:
            self._leave()
        else:
            self._check_left()
            self.form.go_to(len(self.form.fields))

    # Answering

    def _confirm(self) -> None:
        """Enter: submits the answer and goes to the next question."""
        field = self._field
        if field.is_choice and not field.is_many and not field.accepts_text:
            field.choose(field.here)
        try:
            value = field.valid_value()
        except ValueError as error:
            field.error = str(error)
            return
        field.error = ""
        self._sharing.drop_draft()
        if self.form.is_short:
            field.is_touched = True
            self._end(ResponseKind.ACCEPT)
            return
        field.is_touched = False
        is_empty = field.shared is None or isinstance(field.shared, Skipped)
        if value is not None or not is_empty:
            self._sharing.dispatch(field, Skipped() if value is None else Submitted(value=value))
        self.form.go(1)

    def _skip(self) -> None:
        field = self._field
        if field.question.required:
            field.error = "This question is required, so it cannot be skipped."
            return
        self._sharing.drop_draft()
        field.is_touched = False
        self._sharing.dispatch(field, Skipped())
        self.form.go(1)

    def _end(self, response: ResponseKind) -> None:
        answers = None
        if response is ResponseKind.ACCEPT:
            try:
                answers = self.form.answers()
            except ValueError:
                return
        self._sharing.end(response, answers)

    def _leave(self) -> None:
        self._sharing.flush()
        self._sharing.over(Ending(is_left=True))


def _go_to_margin() -> None:
    """Keys pressed before the form is there are echoed, and would shift its first line."""
    sys.stdout.write("\r\x1b[K")
    sys.stdout.flush()


def _output() -> Output:
    """Without asking the terminal where the cursor is: over slow lines its answer comes late."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
