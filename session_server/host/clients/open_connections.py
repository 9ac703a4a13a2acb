"""Open connections by principal: counted, and closed when its credential ends.

WebSockets and event streams are counted. A request that waits is not, but ends all the same.
"""

from functools import partial
from typing import Protocol

from session_server.host.connection.rate_limit import Allowances
from session_server.host.metrics import Counts
from session_server.host.timers import Timer, WallTimers
from session_server.schemas.errors import CloseCode, RateLimitError
from session_server.schemas.limits import CONNECTIONS_PER_PRINCIPAL
from session_server.schemas.principals import Principal

AUTHENTICATED = "session-server.authenticated"
"""Under this name the ASGI scope's `extensions` may hold a function to call once the credential of
a request was found valid: the server then keeps its connection before those of strangers."""

REVOKED = "your token was revoked"
EXPIRED = "your token has expired"


class Closable(Protocol):
    """`closed_with` is the code that it was ended with from here, if it was."""

    closed_with: int | None

    def close(self, code: int, reason: str) -> None: ...


class TooManyConnectionsError(RateLimitError):
    """One principal has too many connections; trying again helps once some are closed."""

    code = "tooManyConnections"


class Connections:
    def __init__(
        self,
        allowances: Allowances,
        per_principal: int = CONNECTIONS_PER_PRINCIPAL,
        counts: Counts | None = None,
        timers: WallTimers | None = None,
    ) -> None:
        """0 is without limit."""
        self.per_principal = per_principal
        self.number = 0
        self._allowances = allowances
        self._closes = (counts or Counts()).closes
        self._timers = WallTimers() if timers is None else timers
        self._of_token: dict[str, dict[Closable, Timer | None]] = {}

    def check(self, principal: Principal) -> None:
        """Before one more is opened: charges the rate limit, or raises `RateLimitError`."""
        allowance = self._allowances.of(principal.id)
        if self.per_principal and allowance.connections >= self.per_principal:
            raise TooManyConnectionsError(self._too_many, 1)
        allowance.check_connecting()

    @property
    def _too_many(self) -> str:
        return f"You have {self.per_principal} connections already; close some and try again."

    def opened(self, principal: Principal, connection: Closable) -> None:
        allowance = self._allowances.of(principal.id)
        allowance.connections += 1
        self.number += 1
        self.bind(principal, connection)
        if self.per_principal and allowance.connections > self.per_principal:
            connection.close(CloseCode.TOO_MANY_CONNECTIONS, self._too_many)

    def closed(self, principal: Principal, connection: Closable) -> None:
        if connection.closed_with is not None:
            self._closes[connection.closed_with] += 1
        self._allowances.of(principal.id).connections -= 1
        self.number -= 1
        self.release(principal, connection)

    def bind(self, principal: Principal, connection: Closable) -> None:
        """From now on it is closed when its credential expires or is revoked."""
        if principal.credential is not None:
            expire = partial(connection.close, CloseCode.NOT_ALLOWED, EXPIRED)
            ends = principal.expires_at
            timer = None if ends is None else self._timers.at(ends, expire)
            self._of_token.setdefault(principal.credential, {})[connection] = timer

    def release(self, principal: Principal, connection: Closable) -> None:
        if principal.credential is None:
            return
        siblings = self._of_token[principal.credential]
        timer = siblings.pop(connection)
        if timer is not None:
            timer.cancel()
        if not siblings:
            del self._of_token[principal.credential]

    def revoke(self, token_id: str) -> None:
        for connection in tuple(self._of_token.get(token_id, ())):
            connection.close(CloseCode.NOT_ALLOWED, REVOKED)
