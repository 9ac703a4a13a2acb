"""Names in addresses stand for exactly one URI, whatever characters it has."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from session_server.web.paths import PREFIX, partly_decoded, session_name, session_uri

CHARACTERS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
URIS = st.one_of(
    CHARACTERS.map(PREFIX.__add__),
    st.builds("{}:{}".format, st.from_regex(r"[a-z][a-z0-9+.-]{0,8}", fullmatch=True), CHARACTERS),
)


@given(URIS)
def test_every_session_has_a_name_that_leads_back_to_it(uri: str) -> None:
    name = session_name(uri)
    assert "/" not in name
    assert session_uri(unquote(name)) == uri


@given(CHARACTERS, CHARACTERS)
def test_a_slash_in_a_name_does_not_part_the_path(first: str, second: str) -> None:
    path = f"/v1/sessions/{session_name(PREFIX + first)}/requests/{session_name(PREFIX + second)}"
    parts = partly_decoded(path.encode()).split("/")
    assert len(parts) == 6
    assert session_uri(unquote(parts[3])) == PREFIX + first
    assert session_uri(unquote(parts[5])) == PREFIX + second


def test_the_short_name_is_the_path() -> None:
    assert session_name("ahp-session:/deploy") == "deploy"
    assert session_name("ahp-session:/a/b") == "a%2Fb"
    assert session_uri("copilot:/x") == "copilot:/x"
