"""The key that signs tokens: from a setting, from a file that only its owner may read, or new."""

import hashlib
import os
import secrets
import stat
from itertools import pairwise
from pathlib import Path

from session_server.schemas.limits import SECRET_CHARS, SECRET_UNPREDICTABLE_CHARS, SECRET_VARIETY
from session_server.settings import Settings, SettingsError

FILE = "secret.key"
KEY_BYTES = 32
PRIVATE = 0o600
OTHERS = 0o077
"""Permissions that a file with a secret must not grant to others."""

KEYS_IN_A_ROW = (
    *("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm"),
    *("1qaz", "2wsx", "3edc", "4rfv", "5tgb", "6yhn", "7ujm", "8ik", "9ol", "0p"),
    *("qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn"),
)
ADJACENT_KEYS = frozenset(
    step for row in KEYS_IN_A_ROW for keys in (row, row[::-1]) for step in pairwise(keys)
)

BROKEN_KEY = (
    "{path} is not a signing key: it should hold {digits} hexadecimal digits, and has {found}"
    " characters. Put it back from a backup. If you delete it, a new key is made, and every token"
    " and share link that was issued so far becomes invalid."
)

GUESSABLE_KEY = (
    "{path} holds a simple pattern, so that anybody could sign tokens. Delete it: a new key is"
    " made, and every token and share link that was issued so far becomes invalid."
)


NO_SHARED_KEY = (
    "Nodes that share a store need the same key: set secret (SESSION_SERVER_SECRET) to the same"
    " text on all of them, or copy the secret.key of one to {path}."
)


class SigningKey:
    """The file is made when the first token is: a host without tokens leaves none behind."""

    def __init__(self, path: Path | None = None, key: bytes | None = None) -> None:
        self._path = path
        self._key = key
        if path is not None and path.exists():
            self._key = _read_key(path)

    def known(self) -> bytes | None:
        """`None` as long as nothing was ever signed here."""
        return self._key

    def made(self) -> bytes:
        if self._key is None:
            key = secrets.token_bytes(KEY_BYTES)
            if self._path is not None:
                write_private(self._path, key.hex())
            self._key = key
        return self._key


def _read_key(path: Path) -> bytes:
    """Checked at the start: a key that is cut short would sign tokens that can be forged."""
    text = read_private(path)
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        found = BROKEN_KEY.format(path=path, digits=2 * KEY_BYTES, found=len(text))
        raise SettingsError(found)
    if is_guessable(text):
        raise SettingsError(GUESSABLE_KEY.format(path=path))
    return key


def signing_key(settings: Settings, *, is_kept: bool) -> SigningKey:
    """A key in memory if the log is too: its tokens end with the process."""
    if settings.secret is not None:
        secret = settings.secret.get_secret_value()
        if len(secret) < SECRET_CHARS or is_guessable(secret):
            raise SettingsError(
                f"The setting secret needs at least {SECRET_CHARS} characters that are not a simple"
                " pattern."
            )
        return SigningKey(key=hashlib.sha256(b"session-server:" + secret.encode()).digest())
    path = settings.data_dir / FILE
    if settings.shared and not path.exists():
        raise SettingsError(NO_SHARED_KEY.format(path=path))
    return SigningKey(path if is_kept else None)


def is_guessable(secret: str) -> bool:
    """Too few different characters, or too few that do not follow from those before them.

    Finds what people type to pass a check of the length: repetitions, `abcd…`, `1234…`,
    keys side by side. Words are not looked up, and random texts of 16 bytes always pass.
    """
    return (
        len(set(secret)) < SECRET_VARIETY
        or _unpredictable_chars(secret) < SECRET_UNPREDICTABLE_CHARS
    )


def _unpredictable_chars(secret: str) -> int:
    """Characters that do not continue a sequence, a row of keys or a repetition."""
    number, was_expected = 1, False
    seen: set[tuple[str, str]] = set()
    for step in pairwise(secret.lower()):
        is_near = abs(ord(step[0]) - ord(step[1])) <= 1
        is_expected = is_near or step in ADJACENT_KEYS or step in seen
        if not (is_expected and was_expected):
            number += 1
        was_expected = is_expected
        seen.add(step)
    return number


def read_private(path: Path) -> str:
    """What is in a file that only its owner may read; otherwise a `SettingsError`."""
    try:
        with path.open(encoding="ascii") as file:
            _check_private(path, os.fstat(file.fileno()))
            return file.read().strip()
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.") from None


def _check_private(path: Path, status: os.stat_result) -> None:
    if os.name != "posix":
        return
    if status.st_mode & ~stat.S_IFMT(status.st_mode) & OTHERS:
        raise SettingsError(
            f"{path} holds a secret, and other users of this machine may read or change it (mode"
            f" {stat.S_IMODE(status.st_mode):o}). Run `chmod 600 {path}` and start again; if others"
            " may have read it, delete it instead: a new one is made, and the old one and all that"
            " it signed opens nothing any more."
        )
    if status.st_uid not in (0, os.geteuid()):
        raise SettingsError(
            f"{path} holds a secret and belongs to another user of this machine. Make it your own"
            " with `chown`, or use another file."
        )


def write_private(path: Path, text: str) -> None:
    """Never replaces a file, never readable by others, written completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)
        except FileExistsError:
            raise
        except OSError:  # not every file system has links
            if path.exists():
                raise
            new.rename(path)
    finally:
        new.unlink(missing_ok=True)
