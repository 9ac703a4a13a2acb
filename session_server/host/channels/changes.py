"""What changes a channel: an action of somebody's, or a plan of the host's own.

What is new goes through `Channel.submit`: judge, reduce, append, deliver; from outside the host by
`Host.submit`, which finds the channel as its principal may see it. A `ReadChange` is in the log
already.
"""

from collections.abc import Callable, Sequence
from typing import Any

from session_server.log import NewEntry
from session_server.reducers.batches import judged_batch
from session_server.reducers.rules.input_rules import provenance_of
from session_server.reducers.rules.judge import RECORDING, judge_root
from session_server.reducers.state.opening import is_recording
from session_server.schemas.ahp.actions import Action
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.session import RootState
from session_server.schemas.errors import InDoubtError, Refusal
from session_server.schemas.log_entries import Logged, LoggedAction
from session_server.schemas.principals import HOST, Author, Principal, Provenance, Stamp

Plan = Callable[[Any, Stamp], Sequence[LoggedAction] | Refusal]
"""What to write, given the record that it will follow; asked again if that record changes."""


class Change:
    """Something that wants to change a channel, until its outcome is known.

    `plan` is asked for the actions. In the end one of `done`, `refused` and `failed` is called;
    `doubted` comes before that if nobody knows for long whether the change is stored. `refused`
    may follow `done` for what was put off and then could not happen any more.

    `principal` is None for the host itself. `is_exempt`: the host's own bookkeeping, which a full
    session takes too. Of all actions that a change brings, only the one of `origin_type` has its
    `origin`. The other attributes are set when the change is judged.
    """

    __slots__ = (
        "actions",
        "after",
        "before",
        "by",
        "entries",
        "is_exempt",
        "logged",
        "origin",
        "origin_type",
        "principal",
        "refusal",
        "stamp",
        "via",
    )

    before: Any
    after: Any
    stamp: Stamp
    actions: Sequence[LoggedAction]
    logged: Sequence[Logged]
    entries: Sequence[NewEntry]
    refusal: Refusal | None

    def __init__(
        self,
        principal: Principal | None,
        by: Author | None,
        via: Provenance = Provenance.PERSON,
        origin: ActionOrigin | None = None,
        origin_type: type | None = None,
        *,
        is_exempt: bool = False,
    ) -> None:
        self.principal = principal
        self.by = by
        self.via = via
        self.origin = origin
        self.origin_type = origin_type
        self.is_exempt = is_exempt

    def plan(self, record: Any, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:
        raise NotImplementedError

    def set_refusal(self, record: Any, refusal: Refusal) -> None:
        """It was refused, and changes nothing."""
        self.before = self.after = record
        self.actions = self.logged = self.entries = ()
        self.refusal = refusal

    def forget(self) -> None:
        """All is done. Who keeps the change to tell its sender more does not keep old records."""
        self.before = self.after = None
        self.actions = self.logged = self.entries = ()

    def done(self) -> None:
        """It is durable, and its subscribers have it."""

    def refused(self, refusal: Refusal) -> None:
        """It is not allowed."""

    def failed(self, reason: str) -> None:
        """It could not be stored."""

    def doubted(self, reason: str) -> None:
        """It is not known yet whether it is stored."""


class ActionChange(Change):
    """An action of somebody's, judged by the rules."""

    __slots__ = ("_action",)

    def __init__(
        self,
        principal: Principal,
        action: Action,
        origin: ActionOrigin | None = None,
        by: Author | None = None,
    ) -> None:
        # One call less than with `super`, for every action of every client.
        self.principal = principal
        self.by = by or principal.author
        self.via = provenance_of(principal, action)
        self.origin = origin
        self.origin_type = type(action)
        self.is_exempt = False
        self._action: Any = action

    def plan(self, record: Any, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:
        assert self.principal is not None
        action = self._action
        if type(record) is RootState:
            return judge_root(self.principal, record, action) or (action,)
        return judged_batch(self.principal, record, action, stamp, self.origin)


def _nothing(*_: object) -> None:
    pass


class PlannedChange(Change):
    """What the host makes of a record, for somebody or by itself; a recording takes nothing."""

    __slots__ = ("_done", "_doubted", "_failed", "_plan", "_refused")

    def __init__(  # noqa: PLR0913
        self,
        plan: Plan,
        by: Author | None = HOST,
        via: Provenance = Provenance.PERSON,
        origin: ActionOrigin | None = None,
        origin_type: type | None = None,
        *,
        is_exempt: bool = False,
        done: Callable[[], None] = _nothing,
        refused: Callable[[Refusal], None] = _nothing,
        failed: Callable[[str], None] = _nothing,
        doubted: Callable[[str], None] = _nothing,
    ) -> None:
        super().__init__(None, by, via, origin, origin_type, is_exempt=is_exempt)
        self._plan = plan
        self._done = done
        self._refused = refused
        self._failed = failed
        self._doubted = doubted

    def plan(self, record: Any, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:
        return RECORDING if is_recording(record) else self._plan(record, stamp)

    def done(self) -> None:
        self._done()

    def refused(self, refusal: Refusal) -> None:
        self._refused(refusal)

    def failed(self, reason: str) -> None:
        self._failed(reason)

    def doubted(self, reason: str) -> None:
        self._doubted(reason)


class ReadChange(Change):
    """What the log has from elsewhere: another node, or a recording."""

    __slots__ = ()

    def __init__(self, before: Any, logged: Logged, after: Any) -> None:
        super().__init__(None, logged.stamp.by, logged.stamp.via, logged.origin)
        self.before, self.after = before, after
        self.actions, self.logged, self.stamp = (logged.action,), (logged,), logged.stamp
        self.entries, self.refusal = (), None


def in_doubt(reason: str) -> str:
    return InDoubtError.text.format(reason)
