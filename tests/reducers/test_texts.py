"""Names and titles: without characters that hide or change what is seen, and in addresses."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.batches import batch_of
from session_server.reducers.texts import session_name, session_uri, visible_name
from session_server.schemas.ahp.actions import ActiveClientChanged, TitleChanged
from session_server.schemas.ahp.commands import SESSION_PREFIX
from session_server.schemas.ahp.session import ActiveClient
from session_server.schemas.principals import Stamp
from tests.sessions import session

STAMP = Stamp(at=1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ana", "Ana"),
        ("  Ana \n\t Bo  ", "Ana Bo"),
        ("Zoë Ĺ", "Zoë Ĺ"),
        ("\u202eanA", "anA"),  # right-to-left override
        ("\u2066A\u2069n\u200ea\u200f", "Ana"),
        ("A\u200bn\u2060a\ufeff\u00ad", "Ana"),
        ("A\x00n\x1b[31ma\x9b", "An[31ma"),
        ("A\u2028n\u2029a", "A n a"),
        ("A\u00a0\u3000na", "A na"),
        ("A\ue000\U000e0041na\U000f0000", "Ana"),
        ("A\u3164\u2800\u115fna", "Ana"),
        ("A\ud800na", "Ana"),
        ("A \u200b B", "A B"),
        ("\u200b\u2060\u3164", ""),
        ("\u200d", ""),
        ("A\u200dn\u200ca\u200d", "Ana"),  # joiners do nothing in Latin
        ("نمی\u200cخواهم", "نمی\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("👩\u200d💻 Ana", "👩\u200d💻 Ana"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("👩\u200d", "👩"),
        ("شيما", "شيما"),
        ("", ""),
    ],
)
def test_what_is_not_seen_is_left_out(text: str, shown: str) -> None:
    assert visible_name(text) == shown
    assert visible_name(shown) == shown


def test_titles_are_shown_as_they_are_seen() -> None:
    (action,) = batch_of(session(), TitleChanged(title="gnp\u202egpj.exe"), STAMP)
    assert action == TitleChanged(title="gnpgpj.exe")


@pytest.mark.parametrize(("name", "shown"), [("A\u202ena", "Ana"), (None, None)])
def test_the_active_client_has_a_name_that_can_be_seen(name: str | None, shown: str | None) -> None:
    client = ActiveClient(client_id="c", tools=(), display_name=name)
    (action,) = batch_of(session(), ActiveClientChanged(active_client=client), STAMP)
    assert isinstance(action, ActiveClientChanged)
    assert action.active_client.display_name == shown


def test_nobody_is_the_active_client_any_more() -> None:
    gone = ActiveClientChanged(active_client=None)
    assert batch_of(session(), gone, STAMP) == (gone,)


# Names of sessions in addresses


CHARACTERS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
URIS = st.one_of(
    CHARACTERS.map(SESSION_PREFIX.__add__),
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
