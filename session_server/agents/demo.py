"""The built-in agents: `demo` asks something in every turn, `people` never does."""

from session_server.agents.interface import TurnContext
from session_server.host.host import Host
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.rules.turn_rules import PASSIVE_PROVIDER
from session_server.reducers.texts import ending, name_of, value_words
from session_server.schemas.ahp.actions import TurnStarted
from session_server.schemas.ahp.commands import CreateSessionParams
from session_server.schemas.ahp.messages import USER, Message, MessageOrigin
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
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import Outcome

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
    """Behind sessions that programs make in order to ask; it has no turns of its own."""

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


def open_demo(host: Host) -> None:
    """A session to look at, with a question open: a new one if the one before was answered."""
    owner = Principal(id="local", role=Role.OWNER)
    if DEMO_SESSION in host.unreadable:
        return
    if DEMO_SESSION in host.sessions:
        record = host.record(DEMO_SESSION)
        if record is not None and record.public.active_turn is None:
            _start_turn(host, owner, f"again-{host.now()}")
        return
    host.create_session(
        owner,
        CreateSessionParams(channel=DEMO_SESSION, provider="demo"),
        title="A trip",
        done=lambda: _start_turn(host, owner, "first"),
        failed=lambda _: None,
    )


def _start_turn(host: Host, owner: Principal, turn_id: str) -> None:
    """Nothing happens if it is refused: somebody has that session for something else."""
    message = Message(text="Plan a trip for us", origin=MessageOrigin(kind=USER))
    host.dispatch(
        owner,
        host.sessions[DEMO_SESSION],
        TurnStarted(turn_id=turn_id, message=message),
        refused=lambda _: None,
        failed=lambda _: None,
    )


def summary(outcome: Outcome) -> str:
    lines = ["Here is what I have:", ""]
    for question in outcome.request.questions or ():
        answer = (outcome.answers or {}).get(question.id)
        if isinstance(answer, Submitted) and answer.value is not None:
            by = f" ({name_of(answer.meta.by)})" if answer.meta is not None else ""
            lines.append(f"- **{label(question)}**: {value_words(question, answer.value)}{by}")
    return "\n".join(lines)
