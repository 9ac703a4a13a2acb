"""Which addresses want a token, where it comes from, and what is said if there is none."""

import base64
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from session_server.app import create_app
from session_server.identity import exposure
from session_server.identity.exposure import binding_of, is_loopback_address
from session_server.identity.signing_key import is_guessable
from session_server.schemas.limits import (
    CONNECTION_TOKEN_CHARS,
    SECRET_UNPREDICTABLE_CHARS,
    SECRET_VARIETY,
)
from session_server.settings import Settings, SettingsError, load_settings

TOKEN = "a-token-of-sixteen-or-more"


def bound(**given: Any) -> exposure.Binding:
    return binding_of(load_settings(given))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    found = bound(host=host)
    assert found.access.connection_token is None
    assert found.access.hosts == frozenset()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])
def test_any_other_address_needs_a_token_and_the_error_says_how(host: str) -> None:
    with pytest.raises(SettingsError) as refused:
        bound(host=host)
    for flag in ("--connection-token ", "--connection-token-file", "--without-connection-token"):
        assert flag in str(refused.value)


def test_an_operator_may_do_without() -> None:
    found = bound(host="0.0.0.0", without_connection_token=True)
    assert found.access.connection_token is None
    assert found.access.is_open


EXPOSED = [
    {"public_url": "https://ask.example.com"},
    {"public_url": "http://192.168.7.7:8737/team"},
    {"allowed_hosts": ("ask.example.com",)},
    {"allowed_hosts": ("localhost", "*")},
    {"allowed_origins": ("*",)},
    {"allowed_origins": ("https://my.app", "null")},
]


@pytest.mark.parametrize("given", EXPOSED)
def test_settings_that_let_others_reach_loopback_need_a_token(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as refused:
        bound(**given)
    setting = next(iter(given))
    assert setting in str(refused.value)
    for flag in ("--connection-token ", "--connection-token-file", "--without-connection-token"):
        assert flag in str(refused.value)
    assert bound(**given, connection_token=TOKEN).access.connection_token == TOKEN
    assert bound(**given, without_connection_token=True).access.is_open


@pytest.mark.parametrize(
    "given",
    [
        {"public_url": "http://127.0.0.1:9000"},
        {"public_url": "http://[::1]:9000"},
        {"allowed_hosts": ("LOCALHOST", "app.localhost", "127.0.0.1")},
        {"allowed_origins": ("https://my.app", "http://localhost:5173")},
    ],
)
def test_settings_that_stay_on_this_machine_need_no_token(given: dict[str, Any]) -> None:
    assert not bound(**given).access.is_open


@pytest.mark.parametrize("given", EXPOSED)
def test_an_embedded_application_is_refused_the_same_settings(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="connection token is needed"):
        create_app("memory:", {}, settings=Settings(**given))


def test_an_embedded_application_needs_a_token_that_somebody_knows() -> None:
    with pytest.raises(SettingsError, match="generate"):
        create_app("memory:", {}, settings=load_settings({"connection_token": "generate"}))


def test_an_embedded_application_wants_the_token_of_its_settings() -> None:
    app = create_app("memory:", {}, settings=load_settings({"connection_token": TOKEN}))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/v1/sessions").status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/v1/sessions", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_that_is_given_is_the_one(host: str) -> None:
    found = bound(host=host, connection_token=TOKEN)
    assert found.access.connection_token == TOKEN
    assert found.token is None  # and is not told


def test_a_generated_token_is_new_each_time_and_printed() -> None:
    first, second = bound(connection_token="generate"), bound(connection_token="generate")
    assert first.token == first.access.connection_token
    assert first.token != second.token
    assert len(first.token or "") >= CONNECTION_TOKEN_CHARS


def test_a_token_file_is_made_for_its_owner_alone_and_then_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    old = os.umask(0)
    try:
        first = bound(host="0.0.0.0", connection_token_file=path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (first.file, first.token) == (path, None)
    second = bound(host="0.0.0.0", connection_token_file=path)
    assert (
        second.access.connection_token == first.access.connection_token == path.read_text().strip()
    )
    assert second.file is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_token_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    bound(connection_token_file=path)
    path.chmod(mode)
    with pytest.raises(SettingsError, match="chmod 600") as refused:
        bound(connection_token_file=path)
    assert path.read_text().strip() not in str(refused.value)
    path.chmod(0o400)
    assert bound(connection_token_file=path).access.connection_token == path.read_text().strip()


def test_a_token_file_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    bound(connection_token_file=path)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    if path.stat().st_uid == 0:  # root owns the machine anyway
        assert bound(connection_token_file=path).access.connection_token is not None
        os.chown(path, 12_345, -1)
    with pytest.raises(SettingsError, match="another user"):
        bound(connection_token_file=path)


@pytest.mark.parametrize(
    "token",
    [
        "a" * CONNECTION_TOKEN_CHARS,
        "ab" * CONNECTION_TOKEN_CHARS,
        "passwordpassword",
        "0123456789abcdef",
        "abcdefghijklmnopqrstuvwxyz",
        "aaaaaaaabbbbbbbbccccccccdddd",
        "qwertyuiopasdfgh",
        "Qwertzuiopasdfghjkl",
        "1qaz2wsx3edc4rfv",
        "zaq12wsxcde34rfv",
        "password12345678",
        "abcd1234abcd1234x",
        "deadbeefdeadbeefdeadbeef0",
    ],
)
def test_a_token_that_is_a_simple_pattern_is_refused_with_advice(token: str) -> None:
    with pytest.raises(SettingsError, match="--connection-token generate") as refused:
        bound(connection_token=token)
    assert token not in str(refused.value)


def test_a_token_with_too_few_different_characters_is_refused() -> None:
    letters = "xrzmkpxzrkmpxk"
    assert len(set(letters)) == SECRET_VARIETY
    assert not is_guessable(letters)
    assert is_guessable(letters.replace("p", "x"))


def test_a_token_with_too_few_unexpected_characters_is_refused() -> None:
    different = "akdxhtbf"
    token = different + "f" * 20  # the first repetition cannot be expected
    assert len(different) + 1 == SECRET_UNPREDICTABLE_CHARS
    assert not is_guessable(token)
    assert is_guessable(token[1:])


@pytest.mark.parametrize(
    "form", [bytes.hex, lambda data: base64.urlsafe_b64encode(data).decode().rstrip("=")]
)
@given(seed=st.integers(0, 2**64), size=st.integers(16, 64))
def test_random_tokens_are_never_called_simple(
    form: Callable[[bytes], str], seed: int, size: int
) -> None:
    assert not is_guessable(form(random.Random(seed).randbytes(size)))


def test_an_unusable_token_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        bound(connection_token_file=tmp_path)


@pytest.mark.parametrize(
    "token", ["short", "x" * (CONNECTION_TOKEN_CHARS - 1), "with spaces " * 3, "ü" * 20]
)
def test_a_token_that_could_be_guessed_or_breaks_a_url_is_refused_without_showing_it(
    token: str,
) -> None:
    with pytest.raises(SettingsError) as refused:
        bound(connection_token=token)
    assert str(CONNECTION_TOKEN_CHARS) in str(refused.value)
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        {"connection_token": TOKEN, "without_connection_token": True},
        {"connection_token": TOKEN, "connection_token_file": Path("x")},
        {"connection_token_file": Path("x"), "without_connection_token": True},
    ],
)
def test_what_contradicts_itself_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="exclude each other"):
        bound(**given)


def test_a_name_is_loopback_only_if_all_of_its_addresses_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known(name: str, *_: object, **__: object) -> list[Any]:
        addresses = {"here": ["127.0.0.1", "::1"], "both": ["127.0.0.1", "192.0.2.1"]}
        return [(0, 0, 0, "", (address, 0)) for address in addresses[name]]

    monkeypatch.setattr(exposure.socket, "getaddrinfo", known)
    assert is_loopback_address("here")
    assert not is_loopback_address("both")


def test_an_invalid_address_is_reported_at_the_start() -> None:
    with pytest.raises(SettingsError, match="no address"):
        is_loopback_address("no.such.name.invalid")


def test_the_defaults_are_for_this_machine_alone() -> None:
    assert is_loopback_address(Settings().host)
