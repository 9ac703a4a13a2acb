"""A parked MCP call, answered together from a laptop and a phone: the core alone, step by step.

No server and no socket: every line below is a pure function of the one above it.
"""

from rich.console import Console

from session_server.reducers.batches import batch_of, host_turn
from session_server.reducers.calls.input_required import recognize_input_required
from session_server.reducers.calls.rounds import next_params, open_round
from session_server.reducers.effects import SendCall, effects_after_restart
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    InputCompleted,
    SessionAction,
    TurnStarted,
)
from session_server.schemas.ahp.questions import (
    Draft,
    IntegerQuestion,
    NumberValue,
    Question,
    ResponseKind,
    SelectedValue,
    Submitted,
    TextValue,
)
from session_server.schemas.ahp.session import Lifecycle, SessionState, SessionSummary, Status
from session_server.schemas.codec import decode_session_record, encode
from session_server.schemas.mcp import InputRequired
from session_server.schemas.principals import HOST, Principal, Role, Stamp
from session_server.schemas.record import Call, CallSent, CallStarted, RecordAction, SessionRecord

ANA = Principal(id="ana", name="Ana", role=Role.OWNER, client_id="laptop")
BO = Principal(id="bo", name="Bo", role=Role.ANSWERER, client_id="phone")

# What an MCP server answers to `tools/call deploy` when it needs to know more.
ASKING = {
    "resultType": "input_required",
    "requestState": "v1.opaque-and-sealed",
    "inputRequests": {
        "where": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Where should it run?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "region": {"type": "string", "enum": ["eu-north", "us-east"]},
                        "replicas": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
                    },
                    "required": ["region"],
                },
            },
        }
    },
}

console = Console(highlight=False, width=100)


class Desk:
    """The record of one session and a clock that is moved by hand."""

    def __init__(self) -> None:
        summary = SessionSummary(
            resource="ahp-session:/demo",
            provider="people",
            title="Deploy",
            status=Status.IDLE,
            created_at=0,
            modified_at=0,
        )
        self.at = 0
        self.record = SessionRecord(
            public=SessionState(summary=summary, lifecycle=Lifecycle.READY, turns=())
        )

    def apply(self, *batch: RecordAction) -> None:
        for action in batch:
            self.record = reduce_record(self.record, action, self.at)

    def dispatch(self, principal: Principal, action: SessionAction) -> None:
        """Rules, then the batch, then the reducer: what a host does with a client's action."""
        self.at += 1
        refusal = judge(principal, self.record, action)
        if refusal is not None:
            console.print(f"  [red]refused[/] ({refusal.code}) {refusal.message}")
            return
        self.apply(*batch_of(self.record, action, Stamp(at=self.at, by=principal.author)))
        status = Status(self.record.public.summary.status)
        console.print(f"  [green]accepted[/], status {status.name or int(status)}")

    @property
    def call(self) -> Call:
        return self.record.private.calls["c1"]


def main() -> None:
    desk = Desk()
    params = {"name": "deploy", "arguments": {"service": "shop"}}
    (turn,) = host_turn(desk.record.public, "c1", "Calling cloud/deploy")
    assert isinstance(turn, TurnStarted)
    call = Call(
        id="c1",
        server="cloud",
        method="tools/call",
        params=params,
        turn_id=turn.turn_id,
        started_at=0,
    )
    desk.apply(turn, CallStarted(call=call), CallSent(call_id="c1", leg=0))

    console.rule("[bold]cloud/deploy needs to know more: the call is parked")
    required = recognize_input_required(ASKING)
    assert isinstance(required, InputRequired)
    desk.apply(*open_round(desk.record, "c1", 0, required, Stamp(at=0, by=HOST)))
    (request,) = desk.record.public.input_requests or ()
    for question in request.questions or ():
        console.print(f"  {request.message} [bold]{question.id}[/]{hint(question)}")

    console.rule("[bold]Bo drafts on the phone, and Ana's laptop shows it")
    draft = Draft(value=NumberValue(value=3))
    desk.dispatch(
        BO, InputAnswerChanged(request_id=request.id, question_id="replicas", answer=draft)
    )
    (request,) = desk.record.public.input_requests or ()
    console.print(f"  {encode(request.answers).decode()}")

    console.rule("[bold]What does not fit is refused, with a reason")
    wrong = Submitted(value=TextValue(value="three"))
    desk.dispatch(
        BO, InputAnswerChanged(request_id=request.id, question_id="replicas", answer=wrong)
    )
    desk.dispatch(ANA, InputCompleted(request_id=request.id, response=ResponseKind.ACCEPT))

    console.rule("[bold]The process dies; the record is all there is")
    desk.record = decode_session_record(encode(desk.record))

    console.rule("[bold]Bo submits, Ana accepts, and Bo's second tap comes too late")
    submitted = Submitted(value=NumberValue(value=3))
    desk.dispatch(
        BO, InputAnswerChanged(request_id=request.id, question_id="replicas", answer=submitted)
    )
    region = {"region": Submitted(value=SelectedValue(value="eu-north"))}
    accept = InputCompleted(request_id=request.id, response=ResponseKind.ACCEPT, answers=region)
    desk.dispatch(ANA, accept)
    desk.dispatch(BO, InputCompleted(request_id=request.id, response=ResponseKind.DECLINE))

    console.rule("[bold]The answers finish the blocked call: one retry, and exactly this")
    for effect in effects_after_restart(desk.record):
        if isinstance(effect, SendCall):
            console.print(f"  {effect}")
            console.print_json(encode(next_params(desk.call)).decode())


def hint(question: Question) -> str:
    bounds = ""
    if isinstance(question, IntegerQuestion):
        bounds = f", a whole number from {question.min} to {question.max}"
    return bounds + (", required" if question.required else "")


main()
