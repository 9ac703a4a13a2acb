"""How sessions and chats are named on a connection.

A session has one URI in this host. A connection sees it in one spelling everywhere: as it is, or,
for clients that read the scheme of a session's URI as its provider, as `<provider>:/<id>`. Its
only chat is named after it.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, unquote

from session_server.schemas.ahp.commands import SESSION_PREFIX
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.log_entries import Spelling
from session_server.schemas.wire import Uri

DEFAULT_CHAT_PREFIX = "ahp-chat://default/"
CHAT_PREFIX = "ahp-chat:/"


def spelled_uri(summary: SessionSummary, spelling: Spelling) -> Uri:
    if spelling is Spelling.PLAIN:
        return summary.resource
    return provider_uri(summary.resource, summary.provider)


def provider_uri(resource: Uri, provider: str) -> Uri:
    """With the provider as the scheme; a URI of another scheme becomes the path.

    Escaped like VS Code does, since it compares URIs as texts.
    """
    scheme = f"{provider}:/"
    own = next((p for p in (scheme, SESSION_PREFIX) if resource.startswith(p)), "")
    return scheme + quote(resource[len(own) :], safe="/")


def chat_uri(session: Uri) -> Uri:
    """The chat of the session that is named so."""
    return DEFAULT_CHAT_PREFIX + urlsafe_b64encode(session.encode()).decode().rstrip("=")


class Named(NamedTuple):
    """What a URI names: a session by a spelling of its URI, or that session's chat."""

    session: Uri
    is_chat: bool


def named(uri: Uri) -> Named:
    """Any URI that is not a chat's counts as a session's."""
    if uri.startswith(DEFAULT_CHAT_PREFIX):
        return Named(_decoded(uri[len(DEFAULT_CHAT_PREFIX) :]), is_chat=True)
    if uri.startswith(CHAT_PREFIX) and not uri.startswith("ahp-chat://"):
        return Named(SESSION_PREFIX + uri[len(CHAT_PREFIX) :], is_chat=True)
    return Named(uri, is_chat=False)


def _decoded(text: str) -> Uri:
    """Empty if the text cannot be decoded: no session has an empty URI."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return ""


def resolved(session: Uri, exists: Callable[[Uri], bool]) -> Uri:
    """The session that is meant: of that very URI, or of the one it is a spelling of.

    If there is none, the URI that a new session of this name gets.
    """
    scheme, _, path = session.partition(":/")
    if exists(session) or not path or scheme.startswith("ahp-"):
        return session
    name = unquote(path)
    known = (f"{scheme}:/{name}", name)
    return next((uri for uri in known if exists(uri)), SESSION_PREFIX + name)
