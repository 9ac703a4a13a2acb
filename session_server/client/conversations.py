"""Sessions of AHP 0.9 and 1.x in the shapes that programs see, whichever version is spoken.

These versions show a session and each of its chats on a channel of its own. Mirrors keep them as
the JSON objects that hosts send, reduced by the standard reducers, so that what is new to us is
carried along. Here a session and one of its chats become one `SessionState`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from session_server.client.errors import NotUnderstood
from session_server.reducers.ahp1.client_chat_reducer import reduce_client_chat
from session_server.reducers.ahp1.client_session_reducer import (
    reduce_client_root,
    reduce_client_session,
)
from session_server.reducers.texts import outcome_note, subject
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
from session_server.schemas.ahp.turn_messages import Message, MessageOrigin, PendingMessage
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

MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading or reducing raises for a document of another shape."""

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
    except MISFITS as error:
        raise NotUnderstood(f"The state of {uri} is not AHP: {error!r}") from error


def after(state: Conversation, channel: Uri, action: Extra) -> Conversation:
    """The state after an action on the session's channel or on the chat's."""
    session, chat = state.session, state.chat
    try:
        if channel == state.summary.resource:
            session = reduce_client_session(session, action)
        elif chat is not None:
            chat = reduce_client_chat(chat, action)
    except MISFITS as error:
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
    active, steering = shown.get("activeTurn"), shown.get("steeringMessage")
    parts = () if active is None else active["responseParts"]
    requests = tuple(request_of(part["request"]) for part in parts if _is_open(part))
    is_same = before is not None and before.session is session
    return Conversation(
        summary=_summary(uri, session, shown),
        lifecycle=LIFECYCLES.get(session["lifecycle"], Lifecycle.READY),
        turns=_turns(shown.get("turns", ()), before),
        creation_error=read(session.get("creationError"), ErrorInfo | None),
        server_tools=_each(session.get("serverTools"), ToolDefinition) or None,
        active_client=next(iter(_each(session.get("activeClients"), ActiveClient)), None),
        active_turn=None if active is None else _active_turn(active, before),
        steering_message=None if steering is None else _pending(steering),
        queued_messages=tuple(_pending(m) for m in shown.get("queuedMessages", ()) if m) or None,
        input_requests=requests or None,
        config=read(session.get("config"), SessionConfigState | None),
        changesets=_each(session.get("changesets"), Changeset) or None,
        meta=session.get("_meta"),
        session=session,
        chat=chat,
        chats=before.chats if before and is_same else _each(session.get("chats"), ChatSummary),
    )


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


_SUMMARY_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "title": ("title", lambda title: title),
    "status": ("status", lambda status: status),
    "modifiedAt": ("modified_at", millis),
    "activity": ("activity", lambda activity: activity or None),
    "project": ("project", lambda project: read(project, ProjectInfo)),
    "workingDirectories": ("working_directory", lambda uris: next(iter(uris or ()), None)),
    "changes": ("changes", lambda changes: read(changes, ChangesSummary)),
    "_meta": ("meta", lambda meta: read(meta, SummaryMeta)),
}


def summary_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry of the list of sessions, or a change of one, has of a summary."""
    return {
        name: convert(document[key])
        for key, (name, convert) in _SUMMARY_FIELDS.items()
        if key in document
    }


def summary_of(document: Mapping[str, Any]) -> SessionSummary:
    """An entry of the list of sessions."""
    fields: dict[str, Any] = {"modified_at": 0, **summary_fields(document)}
    created = millis(document.get("createdAt"))
    return SessionSummary(
        resource=document["resource"], provider=document["provider"], created_at=created, **fields
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


def _pending(document: Extra) -> PendingMessage:
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
        questions=_each(document.get("questions"), Question) or None,
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
        # Customizations have another shape; they are in `root`.
        agents = ({k: v for k, v in a.items() if k != "customizations"} for a in root["agents"])
        return ShownRoot(
            agents=_each(agents, AgentInfo),
            active_sessions=root.get("activeSessions"),
            terminals=_each(root.get("terminals"), TerminalInfo) or None,
            config=read(root.get("config"), RootConfigState | None),
            root=root,
        )
    except (AttributeError, LookupError, TypeError) as error:
        raise NotUnderstood(f"The state of the host is not AHP: {error!r}") from error


def root_after(state: ShownRoot, action: Extra) -> ShownRoot:
    root = reduce_client_root(state.root, action)
    return state if root is state.root else shown_root(root)
