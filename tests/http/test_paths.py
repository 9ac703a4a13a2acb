"""A path is taken as it was sent."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from session_server.http.bodies import partly_decoded
from session_server.reducers.texts import PREFIX, session_name, session_uri

CHARACTERS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(CHARACTERS, CHARACTERS)
def test_a_slash_in_a_name_does_not_part_the_path(first: str, second: str) -> None:
    path = f"/v1/sessions/{session_name(PREFIX + first)}/requests/{session_name(PREFIX + second)}"
    parts = partly_decoded(path.encode()).split("/")
    assert len(parts) == 6
    assert session_uri(unquote(parts[3])) == PREFIX + first
    assert session_uri(unquote(parts[5])) == PREFIX + second
