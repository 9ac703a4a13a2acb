"""Sessions of AHP 0.9 and 1.x in the shapes that programs see, whichever version is spoken.

These versions show a session and each of its chats on a channel of its own. Mirrors keep them as
the JSON objects that hosts send, reduced by the standard reducers, so that what is new to us is
carried along. Here a session and one of its chats become one `SessionState`.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from session_server.client.errors import NotUnderstood
from session_server.reducers.ahp1.chat_mirror import reduce_chat
from session_server.reducers.ahp1.session_mirror import reduce_root_mirror, reduce_session_mirror
from session_server.reducers.texts import outcome_note, subject
from session_server.schemas.ahp.messages import Message, MessageOrigin, PendingMessage
from session_server.schemas.ahp.questions import InputRequest, Question, ResponseKind
from session_server.schemas.ahp.session import (
    ACTIVITY_BITS,
    ActiveClient,
    AgentInfo,
    Changeset,
    ChangesSummary,
    Lifecycle,
    ProjectInfo,
    RootConfigState,
    RootState,
    SessionConfigState,
    SessionState,
    SessionSummary,
    SummaryMeta,
    TerminalInfo,
)
from session_server.schemas.ahp.tool_calls import ToolDefinition
from session_server.schemas.ahp.turns import (
    ActiveTurn,
    ResponsePart,
    SystemNotificationPart,
    Turn,
    TurnState,
    UnknownPart,
    UsageInfo,
)
from session_server.schemas.ahp1.state import ChatSummary
from session_server.schemas.principals import Provenance
from session_server.schemas.record import Outcome
from session_server.schemas.wire import ErrorInfo, Extra, Millis, Uri, decode_variant

T = TypeVar("T")

LIFECYCLES = {"failed": Lifecycle.CREATION_FAILED, "creating": Lifecycle.CREATING}


class Conversation(SessionState, frozen=True, kw_only=True):
    """A session with the chat that is followed; before there is one, without.

    `session` and `chat` are the objects of the host itself, with all that is in them.
    """

    session: Extra
    chat: Extra | None = None
    chats: tuple[ChatSummary, ...] = ()


class ShownRoot(RootState, frozen=True, kw_only=True):
    """`root` is the object of the host itself."""

    root: Extra


def conversation(
    uri: Uri, session: Extra, chat: Extra | None, before: Conversation | None = None
) -> Conversation:
    """`before` is an earlier state, of which unchanged objects are reused."""
    try:
        return _conversation(uri, session, chat, before)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise NotUnderstood(f"The state of {uri} is not AHP: {error!r}") from error


def after(state: Conversation, channel: Uri, action: Extra) -> Conversation:
    """The state after an action on the session's channel or on the chat's."""
    session, chat = state.session, state.chat
    try:
        if channel == state.summary.resource:
            session = reduce_session_mirror(session, action)
        elif chat is not None:
            chat = reduce_chat(chat, action)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise NotUnderstood(f"An action on {channel} is not AHP: {error!r}") from error
    if session is state.session and chat is state.chat:
        return state
    return conversation(state.summary.resource, session, chat, state)


def read(document: Any, shape: Any) -> Any:
    """In that shape, or `None`. Other hosts use `_meta` for their own things: it is left out."""
    try:
        return msgspec.convert(document, shape, dec_hook=decode_variant)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_bare(document), shape, dec_hook=decode_variant)
    except msgspec.ValidationError:
        return None


def _bare(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _bare(value) for key, value in document.items() if key != "_meta"}
    return [_bare(value) for value in document] if isinstance(document, list) else document


def _each(documents: Iterable[Any] | None, shape: Any) -> tuple[Any, ...]:
    found = (read(document, shape) for document in documents or ())
    return tuple(one for one in found if one is not None)


def millis(moment: Any) -> Millis:
    """0 if the host does not send it."""
    try:
        found = datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        return 0
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return max(0, int(aware.timestamp() * 1000))


# Sessions


def _conversation(
    uri: Uri, session: Extra, chat: Extra | None, before: Conversation | None
) -> Conversation:
    shown = chat or {}
    active = shown.get("activeTurn")
    parts = () if active is None else active["responseParts"]
    requests = tuple(request_of(part["request"]) for part in parts if _is_open(part))
    is_same = before is not None and before.session is session
    return Conversation(
        summary=_summary(uri, session, shown),
        lifecycle=LIFECYCLES.get(session["lifecycle"], Lifecycle.READY),
        turns=_turns(shown.get("turns", ()), before),
        creation_error=read(session.get("creationError"), ErrorInfo | None),
        server_tools=_some(_each(session.get("serverTools"), ToolDefinition)),
        active_client=next(iter(_each(session.get("activeClients"), ActiveClient)), None),
        active_turn=None if active is None else _active_turn(active, before),
        steering_message=_pending(shown.get("steeringMessage")),
        queued_messages=_some(
            tuple(m for queued in shown.get("queuedMessages", ()) if (m := _pending(queued)))
        ),
        input_requests=requests or None,
        config=read(session.get("config"), SessionConfigState | None),
        changesets=_some(_each(session.get("changesets"), Changeset)),
        meta=session.get("_meta"),
        session=session,
        chat=chat,
        chats=before.chats if before and is_same else _each(session.get("chats"), ChatSummary),
    )


def _some(items: tuple[T, ...]) -> tuple[T, ...] | None:
    return items or None


def _summary(uri: Uri, session: Extra, chat: Extra) -> SessionSummary:
    """What the chat does, with the marks of the session."""
    status: int = session["status"]
    if chat:
        status = status & ~ACTIVITY_BITS | chat["status"] & ACTIVITY_BITS
    return SessionSummary(
        resource=uri,
        provider=session["provider"],
        title=session["title"],
        status=status,
        created_at=0,
        modified_at=millis(chat.get("modifiedAt")),
        activity=session.get("activity"),
        project=read(session.get("project"), ProjectInfo | None),
        working_directory=next(iter(session.get("workingDirectories", ())), None),
    )


def summary_of(document: Mapping[str, Any]) -> SessionSummary:
    """An entry of the list of sessions."""
    return SessionSummary(
        resource=document["resource"],
        provider=document["provider"],
        title=document["title"],
        status=document["status"],
        created_at=millis(document.get("createdAt")),
        modified_at=millis(document.get("modifiedAt")),
        activity=document.get("activity") or None,
        project=read(document.get("project"), ProjectInfo | None),
        working_directory=next(iter(document.get("workingDirectories") or ()), None),
        changes=read(document.get("changes"), ChangesSummary | None),
        meta=read(document.get("_meta"), SummaryMeta | None),
    )


# Turns


def _turns(documents: Any, before: Conversation | None) -> tuple[Turn, ...]:
    """Turns that have ended do not change, so each is read once."""
    known = () if before is None or before.chat is None else before.chat["turns"]
    if before is not None and documents is known:
        return before.turns
    read_before = {} if before is None else dict(zip(map(id, known), before.turns, strict=True))
    return tuple(read_before.get(id(document)) or _turn(document) for document in documents)


def _turn(document: Extra) -> Turn:
    parts = document["responseParts"]
    failures = [part for part in parts if part["kind"] == "error"]
    return Turn(
        id=document["id"],
        message=_message(document["message"]),
        response_parts=_parts(parts, {}),
        state=TurnState(document["state"]),
        usage=read(document.get("usage"), UsageInfo | None),
        error=read(failures[-1]["error"], ErrorInfo) if failures else None,
    )


def _active_turn(document: Extra, before: Conversation | None) -> ActiveTurn:
    known: dict[int, ResponsePart] = {}
    if before is not None and before.chat is not None and before.active_turn is not None:
        shown = _shown_parts(before.chat["activeTurn"]["responseParts"])
        known = dict(zip(map(id, shown), before.active_turn.response_parts, strict=True))
    return ActiveTurn(
        id=document["id"],
        message=_message(document["message"]),
        response_parts=_parts(document["responseParts"], known),
        usage=read(document.get("usage"), UsageInfo | None),
    )


def _message(document: Extra) -> Message:
    found: Message | None = read(document, Message)
    return found or Message(text=document["text"], origin=MessageOrigin(kind="unknown"))


def _pending(document: Extra | None) -> PendingMessage | None:
    if document is None:
        return None
    return PendingMessage(id=document["id"], message=_message(document["message"]))


def _shown_parts(documents: list[Extra]) -> list[Extra]:
    """Without open questions and errors, which 0.3.0 keeps outside of the parts."""
    return [
        document
        for document in documents
        if document["kind"] != "error"
        and not (document["kind"] == "inputRequest" and _is_apart(document, documents))
    ]


def _parts(documents: list[Extra], known: Mapping[int, ResponsePart]) -> tuple[ResponsePart, ...]:
    """Those that are known already are not read again."""
    return tuple(known.get(id(document)) or _part(document) for document in _shown_parts(documents))


def _part(document: Extra) -> ResponsePart:
    if document["kind"] == "inputRequest":
        return SystemNotificationPart(content=_note(document))
    found: ResponsePart | None = read(document, ResponsePart)
    return found or UnknownPart(document)


# Questions


def _is_open(part: Extra) -> bool:
    return part["kind"] == "inputRequest" and "response" not in part


def request_of(document: Extra) -> InputRequest:
    """Without the questions of kinds that are new to us: it can still be declined."""
    found: InputRequest | None = read(document, InputRequest)
    if found is not None:
        return found
    return InputRequest(
        id=document["id"],
        message=document.get("message"),
        url=document.get("url"),
        questions=_some(_each(document.get("questions"), Question)),
    )


def _is_apart(part: Extra, parts: list[Extra]) -> bool:
    """While it is open; and where no answer tells who ended it, our host adds a note that does."""
    if not isinstance(part.get("response"), str):
        return True
    if part["response"] == ResponseKind.ACCEPT:
        return False
    quoted = f"“{subject(request_of(part['request']))}”"
    return any(
        other["kind"] == "systemNotification" and quoted in str(other["content"]) for other in parts
    )


def _note(part: Extra) -> str:
    """How the question ended, and who answered it, if that is known."""
    request = request_of(part["request"])
    marks = [answer.meta for answer in (request.answers or {}).values() if answer.meta is not None]
    last = max(marks, key=lambda mark: mark.at or 0, default=None)
    return outcome_note(
        Outcome(
            request=request,
            response=ResponseKind(part["response"]),
            via=(None if last is None else last.via) or Provenance.PERSON,
            at=0,
            answers=request.answers,
            by=None if last is None else last.by,
        )
    )


# The root


def shown_root(root: Extra) -> ShownRoot:
    try:
        return ShownRoot(
            agents=_each((_plain_agent(agent) for agent in root["agents"]), AgentInfo),
            active_sessions=root.get("activeSessions"),
            terminals=_some(_each(root.get("terminals"), TerminalInfo)),
            config=read(root.get("config"), RootConfigState | None),
            root=root,
        )
    except (AttributeError, LookupError, TypeError) as error:
        raise NotUnderstood(f"The state of the host is not AHP: {error!r}") from error


def _plain_agent(agent: Extra) -> Extra:
    """Customizations have another shape; they are in `root`."""
    return {key: value for key, value in agent.items() if key != "customizations"}


def root_after(state: ShownRoot, action: Extra) -> ShownRoot:
    root = reduce_root_mirror(state.root, action)
    return state if root is state.root else shown_root(root)
