"""Tokens that the host issues: what they prove, for how long, and what outlives what."""

import errno
import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from typer.testing import CliRunner

from session_server.cli.program import app
from session_server.host.host import Host
from session_server.identity import signing_key as keys
from session_server.identity import tokens as module
from session_server.identity.credentials import LOCAL, OWNER, Identities, is_reserved
from session_server.identity.origins import Access
from session_server.identity.signing_key import FILE, SigningKey, signing_key, write_private
from session_server.identity.tokens import Tokens, new_id
from session_server.log.opening import open_log
from session_server.schemas.errors import (
    BadCredentialError,
    NoCredentialError,
    NotSavedError,
    RefusedError,
)
from session_server.schemas.http import IssuedToken, TokenKind
from session_server.schemas.limits import SECRET_CHARS
from session_server.schemas.principals import Author, Role
from session_server.settings import Settings, SettingsError, load_settings
from tests.host.harness import SESSION, Client, hosting, with_session
from tests.identity.credentialed_clients import everything_in
from tests.servers import sqlite_store

ANA = Author(id="ana")
GOOD_SECRET = "three blind mice, see how they run"[:SECRET_CHARS]


def token(**fields: Any) -> IssuedToken:
    token_id = new_id()
    return IssuedToken(
        **{
            "id": token_id,
            "kind": TokenKind.TOKEN,
            "principal_id": f"token:{token_id}",
            "role": Role.ANSWERER,
            "name": "Bo",
            "created_at": 1,
            "created_by": ANA,
            **fields,
        }
    )


async def test_a_token_proves_what_it_was_issued_for() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        issued = token(sessions=(SESSION,), expires_at=host.now() + 60_000, policy=True)
        bo = tokens.principal(await tokens.issue(issued))
        assert (bo.id, bo.name, bo.role) == (issued.principal_id, "Bo", Role.ANSWERER)
        assert (bo.sessions, bo.credential, bo.is_policy) == ((SESSION,), issued.id, True)
        assert bo.expires_at == issued.expires_at
        assert list(tokens.listed(TokenKind.TOKEN)) == [issued]
        assert list(tokens.listed(TokenKind.SHARE)) == []


def forged(text: str) -> list[str]:
    """Texts that are nearly right."""
    head, body, signature = text.split(".")
    claims = jwt.decode(text, options={"verify_signature": False})
    return [
        "",
        "x",
        "ü",
        text[:-4],
        f"{head}.{body}.",
        f"{head}.{body}.{signature[::-1]}",
        jwt.encode(claims, None, algorithm="none"),
        jwt.encode(claims, b"another key that is long enough.", algorithm="HS256"),
        jwt.encode({"jti": "unknown"}, b"another key that is long enough.", algorithm="HS256"),
        "x" * (module.CREDENTIAL_CHARS + 1),
    ]


async def test_what_is_forged_proves_nothing() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        for text in forged(await tokens.issue(token())):
            with pytest.raises(BadCredentialError) as refused:
                tokens.principal(text)
            assert not text or text not in str(refused.value)


async def test_a_signed_text_that_names_no_token_proves_nothing() -> None:
    async with hosting() as host:
        key = SigningKey()
        tokens = Tokens(host, key)
        for claims in ({}, {"jti": 5}, {"jti": "unknown"}, {"jti": None}):
            with pytest.raises(BadCredentialError):
                tokens.principal(jwt.encode(claims, key.made(), algorithm="HS256"))


async def test_an_expired_token_proves_nothing_and_makes_room_for_the_next() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        old, new = token(expires_at=host.now() - 1), token()
        text = await tokens.issue(old)
        with pytest.raises(BadCredentialError, match="expired"):
            tokens.principal(text)
        assert list(tokens.listed(TokenKind.TOKEN)) == []
        await tokens.issue(new)
        assert (tokens.find(old.id), tokens.find(new.id)) == (None, new)


async def test_a_revoked_token_proves_nothing_and_its_connections_end() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        issued, other = token(), token()
        text = await tokens.issue(issued)
        bo = tokens.principal(text)
        cy = tokens.principal(await tokens.issue(other))
        clients = [Client(host, bo), Client(host, bo), Client(host, cy)]
        assert await tokens.revoke(issued.id, ANA)
        assert [client.closed and client.closed[0] for client in clients] == [4500, 4500, None]
        with pytest.raises(BadCredentialError, match="revoked"):
            tokens.principal(text)
        assert not await tokens.revoke(issued.id, ANA)
        for client in clients:
            client.connection.closed()


async def test_a_connection_ends_when_its_token_expires() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        bo = tokens.principal(await tokens.issue(token(expires_at=host.now() + 100)))
        here, left = Client(host, bo), Client(host, bo)
        left.connection.closed()
        await here.until_closed()
        assert here.closed == (4500, "your token has expired")
        assert left.closed is None


async def test_tokens_and_their_key_survive_a_restart_and_no_text_is_stored(tmp_path: Path) -> None:
    store, path = sqlite_store(tmp_path), tmp_path / "data" / FILE
    async with hosting(await open_log(store)) as host:
        tokens = Tokens(host, SigningKey(path))
        with pytest.raises(BadCredentialError):
            tokens.principal("eyJ.x.y")
        assert not path.exists()  # nothing was signed yet
        text = await tokens.issue(token())
        gone = token()
        await tokens.issue(gone)
        await tokens.revoke(gone.id, ANA)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert text.rpartition(".")[2] not in everything_in(tmp_path)
    async with hosting(await open_log(store)) as host:
        tokens = Tokens(host, SigningKey(path))
        assert tokens.principal(text).name == "Bo"
        assert tokens.find(gone.id) is None
        with pytest.raises(BadCredentialError):
            Tokens(host, SigningKey()).principal(text)


async def test_an_unwritable_key_file_is_reported_and_nothing_is_issued(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with hosting() as host:
        tokens = Tokens(host, SigningKey(tmp_path / "file" / FILE))
        with pytest.raises(NotSavedError, match="signing key"):
            await tokens.issue(token())
        assert list(tokens.listed(TokenKind.TOKEN)) == []


async def test_the_number_of_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS_KEPT", 2)
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        await tokens.issue(token())
        await tokens.issue(token())
        with pytest.raises(RefusedError, match="revoke some"):
            await tokens.issue(token())


async def dispose(client: Client) -> None:
    assert await client.call("disposeSession", SESSION) is None


async def test_a_token_for_a_session_does_not_open_the_next_one_of_that_name() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        ana = await with_session(host)
        assert await ana.call("createSession", "ahp-session:/2", provider="people") is None
        only, both, all_of_them = (
            token(sessions=(SESSION,)),
            token(sessions=(SESSION, "ahp-session:/2")),
            token(),
        )
        texts = [await tokens.issue(each) for each in (only, both, all_of_them)]
        bo = Client(host, tokens.principal(texts[0]))
        await dispose(ana)
        assert bo.closed is not None
        assert await ana.call("createSession", SESSION, provider="people") is None
        with pytest.raises(BadCredentialError, match="revoked"):
            tokens.principal(texts[0])
        assert tokens.principal(texts[1]).sessions == ("ahp-session:/2",)
        assert tokens.principal(texts[2]).sessions is None
        bo.connection.closed()


async def test_what_a_crash_left_undone_is_done_at_the_start() -> None:
    async with hosting() as host:
        tokens = Tokens(host, SigningKey())
        text = await tokens.issue(token(sessions=("ahp-session:/gone",)))
        tokens.restarted()
        await tokens.issue(token())  # is written after what was to be done
        with pytest.raises(BadCredentialError):
            tokens.principal(text)


# Credentials of all kinds

CONNECTION_TOKEN = "a-token-of-sixteen-or-more"


def identities(host: Host, access: Access) -> Identities:
    return Identities(access, Tokens(host, SigningKey()))


async def test_without_a_connection_token_nobody_needs_a_credential_but_a_bad_one_is_bad() -> None:
    async with hosting() as host:
        found = identities(host, Access())
        assert found.principal(None) == LOCAL
        for bad in ("", "x", CONNECTION_TOKEN):
            with pytest.raises(BadCredentialError):
                found.principal(bad)


async def test_with_a_connection_token_everybody_needs_a_credential() -> None:
    async with hosting() as host:
        found = identities(host, Access(CONNECTION_TOKEN))
        assert found.principal(CONNECTION_TOKEN) == OWNER
        with pytest.raises(NoCredentialError):
            found.principal(None)
        for bad in (
            "",
            CONNECTION_TOKEN[:-1],
            CONNECTION_TOKEN + "x",
            CONNECTION_TOKEN.upper(),
            "ü",
        ):
            with pytest.raises(BadCredentialError):
                found.principal(bad)


@pytest.mark.parametrize(
    "name", ["host", "local", "owner", "agent:demo", "token:x", "share:x", "call:x"]
)
def test_names_that_the_host_gives_itself_are_reserved(name: str) -> None:
    assert is_reserved(name)
    assert not is_reserved(f"u-{name}")


# The key


def test_a_secret_of_ones_own_signs_instead_of_a_file(tmp_path: Path) -> None:
    settings = load_settings({"secret": GOOD_SECRET, "data_dir": tmp_path})
    key = signing_key(settings, is_kept=True)
    assert key.known() == key.made()
    assert len(key.made()) == 32
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("secret", [GOOD_SECRET[:-1], "s" * SECRET_CHARS])
def test_a_short_or_simple_secret_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(SettingsError) as refused:
        signing_key(load_settings({"secret": secret}), is_kept=True)
    assert str(SECRET_CHARS) in str(refused.value)
    assert secret[-4:] not in str(refused.value)


@pytest.mark.proves("design.access.key")
@pytest.mark.parametrize(
    "text",
    ["", "\n", "ab", "ab" * 31, "ab" * 33, "x" * 64, "ü", "0" * 64, "0123456789abcdef" * 4],
)
def test_a_key_file_that_is_cut_short_or_altered_ends_the_start(tmp_path: Path, text: str) -> None:
    """With an empty key anybody could sign tokens."""
    path = tmp_path / FILE
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SettingsError) as refused:
        signing_key(Settings(data_dir=tmp_path), is_kept=True)
    assert str(path) in str(refused.value)
    assert path.read_text() == text
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    if text != "ü":
        assert "becomes invalid" in str(refused.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_ends_the_start(tmp_path: Path, mode: int) -> None:
    SigningKey(tmp_path / FILE).made()
    (tmp_path / FILE).chmod(mode)
    with pytest.raises(SettingsError, match="chmod 600"):
        signing_key(Settings(data_dir=tmp_path), is_kept=True)


def test_a_key_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk between making the file and writing it left an empty key behind."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    key = SigningKey(tmp_path / FILE)
    with monkeypatch.context() as patched:
        patched.setattr(keys.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            key.made()
    assert list(tmp_path.iterdir()) == []
    assert key.known() is None  # and nothing is signed with a key that would not be there again
    assert key.made() == SigningKey(tmp_path / FILE).known()


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_file_system_without_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(keys.os, "link", refuse)
    if is_taken:
        (tmp_path / FILE).write_text("mine")
        with pytest.raises(PermissionError):
            write_private(tmp_path / FILE, "x")
        assert (tmp_path / FILE).read_text() == "mine"
    else:
        write_private(tmp_path / FILE, "x")
        assert (tmp_path / FILE).read_text() == "x\n"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


async def test_a_lost_key_is_reported_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, path = sqlite_store(tmp_path), tmp_path / FILE
    async with hosting(await open_log(store)) as host:
        tokens = Tokens(host, SigningKey(path))
        tokens.restarted()
        await tokens.issue(token())
        tokens.restarted()
        assert caplog.text == ""
    path.unlink()
    async with hosting(await open_log(store)) as host:
        Tokens(host, SigningKey(path)).restarted()
    assert "the 1 tokens and share links" in caplog.text


def test_a_log_that_goes_with_the_process_leaves_no_key(tmp_path: Path) -> None:
    key = signing_key(Settings(data_dir=tmp_path), is_kept=False)
    assert key.known() is None
    assert key.made() == key.known()
    assert list(tmp_path.iterdir()) == []
