"""What a session is called in an address, and back: HTTP, the page and the command line agree."""

import re
from urllib.parse import quote

from ..schemas.wire import Uri

PREFIX = "ahp-session:/"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def session_uri(name: str) -> Uri:
    """The URI that a session's name in an address stands for."""
    return name if _SCHEME.match(name) else f"{PREFIX}{name}"


def session_name(uri: Uri) -> str:
    """The shortest name of a session that can stand in an address."""
    path = uri.removeprefix(PREFIX)
    is_plain = path != uri and path and not _SCHEME.match(path)
    return quote(path if is_plain else uri, safe="")
