"""A session's name in an address stands for exactly one URI, whatever characters it has."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.texts import PREFIX, session_name, session_uri

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


def test_the_short_name_is_the_path() -> None:
    assert session_name("ahp-session:/deploy") == "deploy"
    assert session_name("ahp-session:/a/b") == "a%2Fb"
    assert session_name("copilot:/x") == "copilot%3A%2Fx"
    assert session_uri("copilot:/x") == "copilot:/x"
    assert session_uri("deploy") == "ahp-session:/deploy"
