"""The key that signs tokens: from a setting, from a file that only its owner may read, or new."""

import hashlib
import os
import secrets
from pathlib import Path

from session_server.schemas.limits import SECRET_CHARS
from session_server.settings import Settings, SettingsError

FILE = "secret.key"
KEY_BYTES = 32
PRIVATE = 0o600


class SigningKey:
    """The file is made when the first token is: a host without tokens leaves none behind."""

    def __init__(self, path: Path | None = None, key: bytes | None = None) -> None:
        self._path = path
        self._key = key

    def known(self) -> bytes | None:
        """`None` as long as nothing was ever signed here."""
        if self._key is None and self._path is not None and self._path.is_file():
            self._key = bytes.fromhex(read_private(self._path))
        return self._key

    def made(self) -> bytes:
        known = self.known()
        if known is not None:
            return known
        self._key = secrets.token_bytes(KEY_BYTES)
        if self._path is not None:
            write_private(self._path, self._key.hex())
        return self._key


def signing_key(settings: Settings, *, is_kept: bool) -> SigningKey:
    """Tokens of a log that is gone with the process need no key that stays."""
    if settings.secret is not None:
        secret = settings.secret.get_secret_value()
        if len(secret) < SECRET_CHARS:
            raise SettingsError(f"The setting secret needs at least {SECRET_CHARS} characters.")
        return SigningKey(key=hashlib.sha256(b"session-server:" + secret.encode()).digest())
    return SigningKey(settings.data_dir / FILE if is_kept else None)


def read_private(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def write_private(path: Path, text: str) -> None:
    """Never over a file that is there, and never readable by others, not even for a moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{text}\n")
