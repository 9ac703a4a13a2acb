"""Bodies of the HTTP API, issued tokens included, and problems."""

from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from session_server.schemas.ahp.commands import ForkSource
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    Draft,
    InputRequest,
    LeaseSeconds,
    OnExpiry,
    Question,
    ResponseKind,
    Reviewed,
    Source,
    Value,
)
from session_server.schemas.ahp.session import AgentSelection, ModelSelection, SessionSummary
from session_server.schemas.limits import (
    ANSWER_CHARS,
    DEADLINE_SECONDS,
    ID_CHARS,
    NAME_CHARS,
    SESSIONS_PER_TOKEN,
    SHARE_LIFETIME_LIMIT_SECONDS,
    SHARE_LIFETIME_SECONDS,
    TITLE_CHARS,
    TOKEN_LIFETIME_LIMIT_SECONDS,
)
from session_server.schemas.mcp import CallMethod, Content
from session_server.schemas.principals import Author, Role
from session_server.schemas.record import CallError, Outcome
from session_server.schemas.wire import Count, Extra, Millis, Uri, Wire

Sessions: TypeAlias = Annotated[tuple[Uri, ...], Meta(min_length=1, max_length=SESSIONS_PER_TOKEN)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]


class TokenKind(StrEnum):
    TOKEN = "token"  # noqa: S105
    SHARE = "share"


class IssuedToken(Wire, frozen=True, kw_only=True):
    """`sessions` limits it to these; without them it opens all. Without `expires_at` it stays.

    `policy`: it is used by a program, not by a person.
    """

    id: str
    kind: TokenKind
    principal_id: str
    role: Role
    created_at: Millis
    created_by: Author
    name: str | None = None
    policy: bool = False
    sessions: tuple[Uri, ...] | None = None
    expires_at: Millis | None = None


class TokenWanted(Wire, frozen=True, kw_only=True):
    """`expires_in` is in seconds; without it the token stays until it is revoked.

    `id` is the principal, for someone who has another token already; by default a new one.
    """

    name: Name
    role: Role = Role.ANSWERER
    policy: bool = False
    sessions: Sessions | None = None
    expires_in: Annotated[int, Meta(ge=1, le=TOKEN_LIFETIME_LIMIT_SECONDS)] | None = None
    id: Annotated[str, Meta(min_length=1, max_length=ID_CHARS)] | None = None


class TokenGiven(Wire, frozen=True, kw_only=True):
    """`url` is a link that opens the page with it; `warning`: why it may not work elsewhere."""

    token: str
    issued: IssuedToken
    url: str
    warning: str | None = None


class TokenList(Wire, frozen=True, kw_only=True):
    items: tuple[IssuedToken, ...]


class ShareWanted(Wire, frozen=True, kw_only=True):
    """All of it may be left out: a link for answering, for a day. Agents get tokens instead."""

    role: Role = Role.ANSWERER
    name: Name | None = None
    expires_in: Annotated[int, Meta(ge=1, le=SHARE_LIFETIME_LIMIT_SECONDS)] = SHARE_LIFETIME_SECONDS


class ShareGiven(Wire, frozen=True, kw_only=True):
    """`qr` is the link as an SVG picture; `warning` says why the link may not work elsewhere."""

    id: str
    url: str
    token: str
    role: Role
    expires_at: Millis
    qr: str
    warning: str | None = None


class NewSession(Wire, frozen=True, kw_only=True):
    """All of it may be left out: then the host picks the URI, and the session only asks."""

    resource: Annotated[str, msgspec.Meta(max_length=ID_CHARS)] | None = None
    provider: str = "people"
    title: Annotated[str, msgspec.Meta(max_length=TITLE_CHARS)] | None = None
    model: ModelSelection | None = None
    agent: AgentSelection | None = None
    working_directory: Uri | None = None
    fork: ForkSource | None = None


class NewRequest(Wire, frozen=True, kw_only=True):
    """What to ask: AHP `questions`, or an MCP `requestedSchema`, or neither with a `url`.

    The deadline is a time in milliseconds (`expiresAt`) or a number of seconds from now
    (`expiresIn`); `onExpiry` says what it brings, and without one it cancels. With a `lease` you
    promise to poll the request with `wait`: people see it when you have not for this many seconds.
    """

    message: str | None = None
    url: Uri | None = None
    questions: tuple[Question, ...] | None = None
    requested_schema: Extra | None = None
    expires_at: Millis | None = None
    expires_in: Annotated[float, msgspec.Meta(gt=0, le=DEADLINE_SECONDS)] | None = None
    on_expiry: OnExpiry | None = None
    lease: LeaseSeconds | None = None


class Completion(Wire, frozen=True, kw_only=True):
    """`answers` as AHP writes them; or `content`, plain values by question, all of them submitted.

    Questions that are named in neither keep the answers that they have. With `reviewed`, an
    acceptance that would send anything else than this is refused with 409 `reviewChanged`.
    """

    response: ResponseKind = ResponseKind.ACCEPT
    answers: dict[str, Answer] | None = None
    content: Extra | None = None
    reviewed: Reviewed | None = None


class NewTurn(Wire, frozen=True, kw_only=True):
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=ANSWER_CHARS)]


class UnreadableSession(Wire, frozen=True, kw_only=True):
    """A session whose stored data is damaged. It is not served, and its data is kept."""

    session: Uri
    reason: str


class SessionList(Wire, frozen=True, kw_only=True):
    items: tuple[SessionSummary, ...]
    unreadable: tuple[UnreadableSession, ...] = ()


class ReviewItem(Wire, frozen=True, kw_only=True):
    """What is sent for one question if its request is accepted now.

    `meta` says who submitted or skipped it. `draft` is a draft, which is not sent.
    """

    question_id: str
    source: Source
    value: Value | None = None
    meta: AnswerMeta | None = msgspec.field(default=None, name="_meta")
    draft: Draft | None = None


class RequestStateBase(Wire, frozen=True, kw_only=True, tag_field="state"):
    id: str
    session: Uri


class OpenRequest(RequestStateBase, frozen=True, kw_only=True, tag="open"):
    """It waits; `request.answers` holds what people have written so far.

    `review` is what accepting it would send now, question by question, and `reviewed` the same as
    plain values: send it along with the completion, and nothing else can be sent.
    """

    request: InputRequest
    review: tuple[ReviewItem, ...] = ()
    reviewed: Reviewed | None = None


class EndedRequest(RequestStateBase, frozen=True, kw_only=True, tag="ended"):
    """`content` only with `accept`: the answers as plain values, defaults filled in, as in MCP."""

    outcome: Outcome
    content: Content | None = None


RequestState: TypeAlias = OpenRequest | EndedRequest


class RequestList(Wire, frozen=True, kw_only=True):
    items: tuple[RequestState, ...]


class NewCall(Wire, frozen=True, kw_only=True):
    """A `tool` of a configured MCP server with its `arguments`; or a `method` with its `params`.

    With a `lease` you promise to poll the call with `wait`: where it asks people something, they
    see it when you have not polled for this many seconds.
    """

    server: str
    tool: str | None = None
    arguments: Extra | None = None
    method: CallMethod = "tools/call"
    params: Extra | None = None
    lease: LeaseSeconds | None = None


class CallState(StrEnum):
    """`waiting`: people are asked. `uncertain`: the owner is, whether it may run again."""

    SENDING = "sending"
    RUNNING = "running"
    WAITING = "waiting"
    UNCERTAIN = "uncertain"
    FINISHED = "finished"
    FAILED = "failed"
    ABANDONED = "abandoned"


class CallView(Wire, frozen=True, kw_only=True):
    """Never its arguments, never the server's state. `result` is the server's own, whole.

    `requests` are the questions that are open for it; `reason` is why it was abandoned.
    """

    id: str
    session: Uri
    server: str
    method: CallMethod
    target: str
    state: CallState
    round: Count
    started_at: Millis
    turn_id: str
    ended_at: Millis | None = None
    by: Author | None = None
    requests: tuple[str, ...] = ()
    result: Extra | None = None
    error: CallError | None = None
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class CallList(Wire, frozen=True, kw_only=True):
    items: tuple[CallView, ...]


class StartedTurn(Wire, frozen=True, kw_only=True):
    session: Uri
    turn_id: str


class StreamEnd(Wire, frozen=True, kw_only=True):
    """Why a stream of events ends; the codes are those of WebSocket connections."""

    code: int
    reason: str


class Problem(Wire, frozen=True, kw_only=True):
    """RFC 9457. `code` is stable; `detail` is for people and may change.

    `path` says where in the body, `requestId` and `questionId` what it is about.
    """

    type: str
    title: str
    status: int
    code: str
    detail: str
    path: str | None = None
    request_id: str | None = None
    question_id: str | None = None
