"""Rules of a session's properties: title, configuration, queue, clients, customizations."""

from collections.abc import Callable, Mapping
from typing import Any

from session_server.reducers.rules.roles import NOT_A_USERS, check_length, refused
from session_server.reducers.rules.turn_rules import PASSIVE_PROVIDER
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.customizations import identity_of
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.session import (
    ConfigPropertySchema,
    RootConfigState,
    SessionConfigPropertySchema,
    SessionConfigState,
)
from session_server.schemas.ahp.turn_messages import USER
from session_server.schemas.codec import encode
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import (
    ACTIVE_CLIENTS_PER_SESSION,
    ACTIVITY_CHARS,
    DRAFT_BYTES,
    ID_CHARS,
    QUEUED_BYTES,
    QUEUED_MESSAGES,
    SELECTION_BYTES,
    TITLE_CHARS,
)
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import (
    ClientJoined,
    ClientLeft,
    MessageDrafted,
    SessionRecord,
)

_FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


Config = RootConfigState | SessionConfigState


def check_config(
    config: Config | None, changes: Mapping[str, Any], *, replace: bool
) -> Refusal | None:
    """Named settings must exist, be writable and have a valid value; so must dropped ones."""
    shapes = {} if config is None else config.schema.properties
    for name, value in changes.items():
        shape = shapes.get(name)
        if shape is None:
            return _config_refusal(f"There is no setting {name!r}.")
        if _is_fixed(shape):
            return _config_refusal(f"The setting “{shape.title}” cannot be changed.")
        if not _fits(shape, value):
            return _config_refusal(f"The setting “{shape.title}” does not accept this value.")
    return _check_dropped(config, changes) if replace and config is not None else None


def _check_dropped(config: Config, changes: Mapping[str, Any]) -> Refusal | None:
    needed = config.schema.required or ()
    for name in config.values.keys() - changes.keys():
        shape = config.schema.properties.get(name)
        if name in needed or (shape is not None and _is_fixed(shape)):
            return _config_refusal(f"The setting {name!r} cannot be left out.")
    return None


def _is_fixed(shape: ConfigPropertySchema) -> bool:
    """Read-only, or a session's that was meant to be chosen at its creation."""
    is_chosen_once = isinstance(shape, SessionConfigPropertySchema) and not shape.session_mutable
    return is_chosen_once or bool(shape.read_only)


def _fits(shape: ConfigPropertySchema, value: Any) -> bool:
    """Checks types recursively, and fixed sets of strings."""
    if not _FITS[shape.type](value):
        return False
    if shape.type == "array" and shape.items is not None:
        return all(_fits(shape.items, item) for item in value)
    if shape.type == "object":
        known = shape.properties or {}
        return all(name in value for name in shape.required or ()) and all(
            _fits(known[name], item) for name, item in value.items() if name in known
        )
    # A dynamic enumeration only lists suggestions.
    is_dynamic = bool(getattr(shape, "enum_dynamic", None))
    return shape.enum is None or value in shape.enum or is_dynamic


def _config_refusal(message: str) -> Refusal:
    return refused(RefusalCode.NOT_CONFIGURABLE, message)


def title_changed(
    principal: Principal, record: SessionRecord, action: actions.TitleChanged
) -> Refusal | None:
    return check_length("A title", len(action.title), TITLE_CHARS)


def pending_message_set(
    principal: Principal, record: SessionRecord, action: actions.PendingMessageSet
) -> Refusal | None:
    if principal.role is not Role.AGENT and action.message.origin.kind != USER:
        return NOT_A_USERS
    if record.public.summary.provider == PASSIVE_PROVIDER:
        return refused(RefusalCode.PASSIVE_SESSION, "No agent listens in this session.")
    if len(action.id) > ID_CHARS:
        return check_length("An id", len(action.id), ID_CHARS)
    queue = record.public.queued_messages or ()
    is_queued = action.kind is actions.PendingKind.QUEUED
    others = [m.message for m in queue if is_queued and m.id != action.id]
    is_new = is_queued and len(others) == len(queue)
    if is_new and len(queue) >= QUEUED_MESSAGES:
        return refused(RefusalCode.LIMIT, f"At most {QUEUED_MESSAGES} messages can wait.")
    if len(encode([*others, action.message])) > QUEUED_BYTES:
        message = f"Messages that wait may have at most {QUEUED_BYTES} bytes together."
        return refused(RefusalCode.LIMIT, message)
    return None


def pending_message_removed(
    principal: Principal, record: SessionRecord, action: actions.PendingMessageRemoved
) -> Refusal | None:
    state = record.public
    if action.kind is actions.PendingKind.STEERING:
        waiting = {state.steering_message.id} if state.steering_message is not None else set()
    else:
        waiting = {message.id for message in state.queued_messages or ()}
    if action.id in waiting:
        return None
    return refused(RefusalCode.NO_MESSAGE, "That message no longer waits.")


def activity_changed(
    principal: Principal, record: SessionRecord, action: actions.ActivityChanged
) -> Refusal | None:
    return check_length("An activity", len(action.activity or ""), ACTIVITY_CHARS)


def selection_changed(
    principal: Principal, record: SessionRecord, action: actions.ModelChanged | actions.AgentChanged
) -> Refusal | None:
    chosen = action.model if isinstance(action, actions.ModelChanged) else action.agent
    return check_selection("model" if isinstance(action, actions.ModelChanged) else "agent", chosen)


def check_selection(name: str, chosen: object) -> Refusal | None:
    """The summary of a session is sent to everyone who watches the list of sessions."""
    return check_length(f"The {name} of a session", len(encode(chosen)), SELECTION_BYTES, "bytes")


def config_changed(
    principal: Principal, record: SessionRecord, action: actions.ConfigChanged
) -> Refusal | None:
    return check_config(record.public.config, action.config, replace=bool(action.replace))


def active_client_changed(
    principal: Principal, record: SessionRecord, action: actions.ActiveClientChanged
) -> Refusal | None:
    """A client can claim the role while it is free, and can release only its own."""
    current = record.public.active_client
    if current is not None and current.client_id != principal.client_id:
        who = current.display_name or current.client_id
        return refused(RefusalCode.NOT_YOURS, f"{who} is the active client of this session.")
    wanted = action.active_client
    if wanted is not None and wanted.client_id != principal.client_id:
        return refused(RefusalCode.NOT_YOURS, "A client can only make itself the active one.")
    return None


def active_client_tools_changed(
    principal: Principal, record: SessionRecord, action: actions.ActiveClientToolsChanged
) -> Refusal | None:
    current = record.public.active_client
    if current is not None and current.client_id == principal.client_id:
        return None
    return refused(RefusalCode.NOT_YOURS, "Only the active client can change its tools.")


def client_joined(
    principal: Principal, record: SessionRecord, action: ClientJoined
) -> Refusal | None:
    if action.client.client_id != principal.client_id:
        return refused(RefusalCode.NOT_YOURS, "A client can only make itself an active one.")
    others = [c for c in chat_of(record).clients if c.client_id != principal.client_id]
    if len(others) < ACTIVE_CLIENTS_PER_SESSION:
        return None
    message = f"At most {ACTIVE_CLIENTS_PER_SESSION} clients can be active in a session."
    return refused(RefusalCode.LIMIT, message)


def client_left(principal: Principal, record: SessionRecord, action: ClientLeft) -> Refusal | None:
    if action.client_id == principal.client_id:
        return None
    return refused(RefusalCode.NOT_YOURS, "A client can only release its own role.")


def message_drafted(
    principal: Principal, record: SessionRecord, action: MessageDrafted
) -> Refusal | None:
    if action.draft is not None and action.draft.origin.kind != USER:
        return NOT_A_USERS
    return check_length("A draft", len(encode(action.draft)), DRAFT_BYTES, "bytes")


def customization_toggled(
    principal: Principal, record: SessionRecord, action: actions.CustomizationToggled
) -> Refusal | None:
    entries = record.public.customizations or ()
    if any(identity_of(entry) == action.id for entry in entries):
        return None
    return refused(RefusalCode.NO_CUSTOMIZATION, "No customization has this id.")
