"""Log lines without credentials, whoever writes them: the last thing before they are seen."""

import logging
import re

HIDDEN = "•••"

_ISSUED = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_IN_QUERY = re.compile(r"(?i)\b(tkn=)[^&#\s\"'\\]+")
_IN_HEADER = re.compile(r"(?i)\b(bearer(?:\s+|\.))[^\s\"',\\]+")

_IN_JSON = re.compile(r'("token"\s*:\s*")[^"]+')


def redacted(text: str, known: tuple[str, ...] = ()) -> str:
    """Without what looks like a credential, and without those that are known, wherever they are."""
    for secret in known:
        text = text.replace(secret, HIDDEN)
    text = _ISSUED.sub(HIDDEN, text)
    text = _IN_QUERY.sub(rf"\1{HIDDEN}", text)
    text = _IN_JSON.sub(rf"\1{HIDDEN}", text)
    return _IN_HEADER.sub(rf"\1{HIDDEN}", text)


class RedactingFormatter(logging.Formatter):
    """Messages, arguments and tracebacks alike."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s")
        self._known = known

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record), self._known)
