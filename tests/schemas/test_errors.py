"""One tree of errors, each with a stable code and whether trying again helps."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import session_server
from session_server.schemas import errors
from session_server.schemas.errors import (
    AccessError,
    BadCredentialError,
    CloseCode,
    CommandError,
    CredentialFailure,
    ErrorCode,
    InDoubtError,
    NotSavedError,
    RateLimitError,
    Refusal,
    RefusalCode,
    RefusedError,
    SessionServerError,
    UnauthorizedError,
    UnknownCallError,
    UnknownServerError,
    UnreadableSessionError,
    UnreadableTokensError,
)


def exceptions() -> Iterator[type[Exception]]:
    """All that the package defines, private ones included."""
    for found in pkgutil.walk_packages(session_server.__path__, "session_server."):
        if found.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(found.name)).values():
            is_exception = isinstance(value, type) and issubclass(value, Exception)
            if is_exception and value.__module__ == found.name:
                yield value


def test_every_exception_is_in_the_tree() -> None:
    found = set(exceptions())
    assert len(found) > 40
    assert {kind for kind in found if not issubclass(kind, SessionServerError)} == set()


def test_the_tree_is_drawn_in_the_docstring() -> None:
    own = {kind.__name__ for kind in exceptions() if kind.__module__ == errors.__name__}
    drawn = {
        line.partition("── ")[2].split()[0]
        for line in (errors.__doc__ or "").splitlines()
        if "── " in line
    }
    assert drawn | {"SessionServerError"} == own


def test_a_command_error_has_the_name_of_its_code() -> None:
    taken = CommandError(
        ErrorCode.SESSION_EXISTS, "taken", {"by": "Bo"}, closing=CloseCode.NOT_ALLOWED
    )
    assert (taken.code, taken.data, taken.closing) == ("sessionExists", {"by": "Bo"}, 4500)
    assert not taken.can_retry
    assert CommandError(ErrorCode.CONFLICT, "busy").can_retry
    assert errors.no_session("ahp-session:/x").rpc_code == ErrorCode.SESSION_NOT_FOUND
    assert errors.not_permitted("no").code == "permissionDenied"
    assert errors.rpc_code_name(-1) == "unknownError"


def test_damage_is_a_code_of_its_own() -> None:
    damaged = UnreadableSessionError("ahp-session:/x", "bad checksum")
    assert (damaged.code, damaged.rpc_code) == ("sessionUnreadable", ErrorCode.SESSION_NOT_FOUND)
    assert "bad checksum" in str(damaged)
    assert "doctor --remove" in str(UnreadableTokensError("bad checksum"))


def test_a_refusal_keeps_its_code() -> None:
    refused = RefusedError(Refusal(code=RefusalCode.TOO_LONG, message="too long"))
    assert (refused.code, str(refused)) == ("tooLong", "too long")


def test_what_may_have_been_saved_is_not_repeated_blindly() -> None:
    assert NotSavedError("The disk is full.").can_retry
    assert str(NotSavedError("The disk is full.")).endswith("try again. The disk is full.")
    assert not InDoubtError("The disk is slow.").can_retry
    assert "Check before you repeat it. The disk" in str(InDoubtError("The disk is slow."))


def test_errors_carry_what_a_program_needs() -> None:
    assert RateLimitError("wait", 1.2).retry_after == 2
    assert BadCredentialError("old", CredentialFailure.EXPIRED).failure == "expired"
    assert UnauthorizedError("credentials", 401, ("read",)).scopes == ("read",)
    assert str(UnknownServerError("zoo", ())).endswith("None are configured.")
    assert str(UnknownServerError("zoo", ("a", "b"))).endswith("Configured are: a, b.")
    assert UnknownCallError("c1").call_id == "c1"


@pytest.mark.parametrize("kind", [AccessError, *AccessError.__subclasses__()])
def test_no_access_is_not_changed_by_trying_again(kind: type[AccessError]) -> None:
    assert not kind("no").can_retry
