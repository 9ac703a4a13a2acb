"""The built-in agents, and what `serve --demo` opens.

`demo` asks something in every turn, `people` never does. The demo sessions are a trip that the
agent `demo` asks about, and a call of the example server's deploy tool, blocked on its questions.
"""

import contextlib
import sys
from pathlib import Path

from session_server.agents.interface import TurnContext
from session_server.calls.service import Calls
from session_server.host.async_api import Completion
from session_server.host.channels.changes import ActionChange
from session_server.host.host import Host
from session_server.mcp_client.config import ServerConfig
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.rules.turn_rules import PASSIVE_PROVIDER
from session_server.reducers.texts import ending, name_of, value_text
from session_server.schemas.ahp.actions import TurnStarted
from session_server.schemas.ahp.commands import CreateSessionParams
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    Option,
    Question,
    ResponseKind,
    SingleSelectQuestion,
    Submitted,
    TextQuestion,
)
from session_server.schemas.ahp.session import AgentInfo
from session_server.schemas.ahp.turn_messages import USER, Message, MessageOrigin
from session_server.schemas.errors import CommandError, NotSavedError, RefusedError
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import Outcome
from session_server.schemas.wire import Uri

TRIP: tuple[Question, ...] = (
    TextQuestion(
        id="name", title="Name", message="What should we call the trip?", required=True, max=60
    ),
    SingleSelectQuestion(
        id="city",
        title="City",
        message="Where to?",
        required=True,
        allow_freeform_input=True,
        options=(
            Option(id="oslo", label="Oslo", description="Fjords and museums", recommended=True),
            Option(id="lisbon", label="Lisbon", description="Hills and the sea"),
            Option(id="kyoto", label="Kyoto", description="Temples and gardens"),
        ),
    ),
    IntegerQuestion(
        id="people", title="People", message="How many are coming?", min=1, max=12, default_value=2
    ),
    NumberQuestion(id="budget", title="Budget", message="Budget per day, in euros?", min=0),
    MultiSelectQuestion(
        id="interests",
        title="Interests",
        message="What do you like? Up to three.",
        max=3,
        options=tuple(
            Option(id=word.lower(), label=word)
            for word in ("Food", "Music", "Hiking", "Museums", "Sailing")
        ),
    ),
    BooleanQuestion(
        id="refundable", title="Refundable", message="Only refundable bookings?", default_value=True
    ),
)


class DemoAgent:
    """Asks about a trip, in every kind of question. Say "link" to be shown a URL as well."""

    info = AgentInfo(
        provider="demo",
        display_name="Demo",
        description="Asks a few questions in each turn and repeats the answers.",
        models=(),
    )
    resumes = True

    async def run(self, turn: TurnContext) -> None:
        await turn.say("Let me ask a few things first.", key="hello")
        outcome = await turn.ask(*TRIP, key="trip", message="Planning your trip")
        if outcome.response is not ResponseKind.ACCEPT:
            await turn.say(f"No trip, then. {ending(outcome)}", key="answer")
            return
        if "link" in turn.message.text.lower():
            linked = await turn.ask(
                key="link", message="Have a look at this map.", url="https://www.openstreetmap.org/"
            )
            await turn.say(ending(linked), key="linked")
        await turn.say(summary(outcome), key="answer")


class PeopleAgent:
    """For sessions that programs make in order to ask; it never runs turns."""

    info = AgentInfo(
        provider=PASSIVE_PROVIDER,
        display_name="People",
        description="Collects answers from people. There is no agent to chat with.",
        models=(),
    )
    resumes = True

    async def run(self, turn: TurnContext) -> None:
        """Only the host opens turns here, and it closes them itself."""


DEMO_SESSION = "ahp-session:/demo"
DEPLOY_SESSION = "ahp-session:/deploy"
OWNER = Principal(id="local", role=Role.OWNER)


async def open_demo(host: Host) -> None:
    """Both sessions exist afterwards; in that of the trip, a turn that asks has begun.

    A trip that was answered is asked about again. Ignored if refused: the session is used for
    something else.
    """
    if not await _exists(host, DEMO_SESSION, "demo", "A trip"):
        return
    await host.loaded.loaded(DEMO_SESSION)
    record = host.record(DEMO_SESSION)
    if record is not None and record.public.active_turn is None:
        message = Message(text="Plan a trip for us", origin=MessageOrigin(kind=USER))
        turn_id = f"trip-{host.now()}" if record.public.turns else "first"
        started = TurnStarted(turn_id=turn_id, message=message)
        host.submit(DEMO_SESSION, ActionChange(OWNER, started))
    await _exists(host, DEPLOY_SESSION, PASSIVE_PROVIDER, "A deployment")


async def _exists(host: Host, uri: Uri, provider: str, title: str) -> bool:
    """Whether the session exists; creates it if it does not."""
    if uri in host.unreadable:
        return False
    if uri in host.sessions:
        return True
    made = Completion()
    params = CreateSessionParams(channel=uri, provider=provider)
    try:
        host.lifecycle.create(OWNER, params, title=title, done=made.succeed, failed=made.fail)
        await made.future
    except (CommandError, NotSavedError):
        return False
    return True


def summary(outcome: Outcome) -> str:
    lines = ["Here is what I have:", ""]
    for question in outcome.request.questions or ():
        answer = (outcome.answers or {}).get(question.id)
        if isinstance(answer, Submitted) and answer.value is not None:
            by = f" ({name_of(answer.meta.by)})" if answer.meta is not None else ""
            lines.append(f"- **{label(question)}**: {value_text(question, answer.value)}{by}")
    return "\n".join(lines)


DEPLOY_SERVER = "ops"
PROGRAM = Path(__file__).with_name("deploy_server.py")
"""Started by its path, like any MCP server: it imports nothing of this package."""

KEY = "only for the demo: sealed with what everybody knows"
ARGUMENTS = {"service": "web", "version": "1.4.2", "token": "not-a-real-token"}


def demo_servers() -> dict[str, ServerConfig]:
    config = ServerConfig(
        command=sys.executable,
        args=("-P", str(PROGRAM)),
        env={"DEPLOY_SERVER_KEY": KEY},
        private_arguments=("token",),
    )
    return {DEPLOY_SERVER: config}


async def call_deploy(host: Host, calls: Calls) -> None:
    """A call in the session of the deployment, if the one before has ended."""
    await host.loaded.loaded(DEPLOY_SESSION)
    record = host.record(DEPLOY_SESSION)
    if record is None or any(call.is_open for call in record.private.calls.values()):
        return
    params = {"name": "deploy", "arguments": ARGUMENTS}
    key = f"demo-{host.now()}"
    with contextlib.suppress(CommandError, NotSavedError, RefusedError):
        await calls.start(OWNER, DEPLOY_SESSION, DEPLOY_SERVER, "tools/call", params, key=key)
