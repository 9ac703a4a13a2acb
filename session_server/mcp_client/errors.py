"""What can go wrong before a call is under way, in words that say what to do next.

ConfigError             the configuration of servers cannot be used
CallsError              a call cannot be started or found
├── UnknownServerError  no server of that name is configured
└── UnknownCallError    there is no such call, or no longer
UnreachableError        the server cannot be reached now; nothing was done with what was sent to it
└── UnauthorizedError   because it wants credentials, or others
"""


class ConfigError(Exception):
    """Never shows a value of the configuration, which may be a secret."""


class CallsError(Exception):
    """`code` is stable."""

    code = "invalidCall"


class UnknownServerError(CallsError):
    code = "unknownServer"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        choice = f"Configured are: {', '.join(known)}." if known else "None are configured."
        super().__init__(f"There is no MCP server {name!r}. {choice}")
        self.name = name


class UnknownCallError(CallsError):
    code = "unknownCall"

    def __init__(self, call_id: str) -> None:
        super().__init__(f"There is no call {call_id!r}, or it ended too long ago.")
        self.call_id = call_id


class UnreachableError(Exception):
    """Trying again later may help."""


class UnauthorizedError(UnreachableError):
    """`status` is that of HTTP; `scopes` are what the server says it wants."""

    def __init__(self, words: str, status: int, scopes: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.status = status
        self.scopes = scopes
