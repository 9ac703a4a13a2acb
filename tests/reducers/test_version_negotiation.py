"""Which version is chosen, and how sessions and chats are named for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.ahp1.uris import (
    chat_uri,
    named,
    provider_uri,
    resolved,
    spelled_uri,
)
from session_server.reducers.version_negotiation import V0_3, Family, Version, negotiated
from session_server.schemas.errors import CloseCode, CommandError, ErrorCode
from session_server.schemas.log_entries import Spelling
from tests.sessions import session


@pytest.mark.proves("ahp.ahp1.negotiation")
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["1.0.0"], Version("1.0.0", Family.V1, has_chat_marks=True)),
        (["0.9.0", "1.7.0", "1.2.9"], Version("1.7.0", Family.V1, has_chat_marks=True)),
        (["1.2.0", "1.10.0"], Version("1.10.0", Family.V1, has_chat_marks=True)),
        (["0.3.0", "0.9.4", "0.10.0"], Version("0.9.4", Family.V1, has_chat_marks=False)),
        (["0.3.0", "2.0.0", "0.8.9"], V0_3),
    ],
)
def test_the_highest_version_in_a_supported_range_is_chosen(
    offered: list[str], chosen: Version
) -> None:
    assert negotiated(offered) == chosen
    assert negotiated(offered[::-1]) == chosen


@pytest.mark.proves("ahp.ahp1.negotiation")
@pytest.mark.parametrize("offered", [["2.0.0", "0.3.1", "0.2.9", "0.10.0"], []])
def test_without_a_common_version_the_answer_lists_ours(offered: list[str]) -> None:
    with pytest.raises(CommandError, match=r"1\.0\.0, 0\.9\.0, 0\.3\.0") as raised:
        negotiated(offered)
    assert raised.value.rpc_code is ErrorCode.UNSUPPORTED_PROTOCOL_VERSION
    assert raised.value.data.supported_versions == ("1.0.0", "0.9.0", "0.3.0")
    assert raised.value.closing is CloseCode.UNSUPPORTED_VERSION


@pytest.mark.proves("ahp.ahp1.negotiation")
@pytest.mark.parametrize(
    "text", ["1.0", "1.0.0-beta", "01.0.0", "1.0.0\n", "v1.0.0", "", "1.0.0.0", "١.0.0"]
)
def test_a_malformed_version_is_refused_even_next_to_a_valid_one(text: str) -> None:
    with pytest.raises(CommandError, match="is not a version") as raised:
        negotiated(["1.0.0", text])
    assert raised.value.rpc_code is ErrorCode.INVALID_PARAMS


@pytest.mark.proves("ahp.ahp1.uris")
def test_a_session_has_one_name_per_spelling() -> None:
    summary = session().public.summary
    assert spelled_uri(summary, Spelling.PLAIN) == "ahp-session:/1"
    assert spelled_uri(summary, Spelling.PROVIDER) == "demo:/1"
    assert provider_uri("demo:/1", "demo") == "demo:/1"
    assert provider_uri("other:/a/b", "demo") == "demo:/other%3A/a/b"
    assert provider_uri("ahp-session:/12:00 (a)", "demo") == "demo:/12%3A00%20%28a%29"


@pytest.mark.proves("ahp.ahp1.uris")
@given(
    st.sampled_from(("ahp-session:/", "demo:/", "other:/", "other:")),
    st.text(st.characters(codec="utf-8"), min_size=1),
)
def test_a_session_is_found_by_what_it_is_called(scheme: str, path: str) -> None:
    resource = scheme + path
    shown = provider_uri(resource, "demo")
    assert shown.isascii()
    assert resolved(shown, {resource}.__contains__) == resource


@pytest.mark.proves("ahp.ahp1.uris")
def test_a_chat_is_named_after_the_session_as_clients_do_it() -> None:
    uri = chat_uri("demo:/00000000-0000-4000-8000-0000000000a1")
    encoded = "ZGVtbzovMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMGEx"
    assert uri == f"ahp-chat://default/{encoded}"
    assert named(uri) == ("demo:/00000000-0000-4000-8000-0000000000a1", True)
    for name in ("a:/", "a:/b", "a:/bc", "a:/bcd", "a:/ü?~"):
        assert named(chat_uri(name)) == (name, True)


@pytest.mark.proves("ahp.ahp1.uris")
@pytest.mark.parametrize(
    ("uri", "session_name", "is_chat"),
    [
        ("ahp-chat:/7", "ahp-session:/7", True),
        ("ahp-session:/7", "ahp-session:/7", False),
        ("demo:/7", "demo:/7", False),
        ("ahp-chat://default/!", "", True),
        ("ahp-chat://default/_w", "", True),
        ("ahp-chat://second/x", "ahp-chat://second/x", False),
    ],
)
def test_a_uri_names_a_session_or_its_chat(uri: str, session_name: str, is_chat: bool) -> None:
    assert named(uri) == (session_name, is_chat)


@pytest.mark.proves("ahp.ahp1.uris")
@pytest.mark.parametrize(
    ("uri", "known", "found"),
    [
        ("ahp-session:/1", {"ahp-session:/1"}, "ahp-session:/1"),
        ("demo:/1", {"ahp-session:/1"}, "ahp-session:/1"),
        ("demo:/1", {"demo:/1", "ahp-session:/1"}, "demo:/1"),
        ("demo:/other%3A%2Fa", {"other:/a"}, "other:/a"),
        ("demo:/other%3A/a", {"other:/a"}, "other:/a"),
        ("demo:/a%3Ab", {"demo:/a:b"}, "demo:/a:b"),
        ("demo:/a%20b", set[str](), "ahp-session:/a b"),
        ("demo:/new", set[str](), "ahp-session:/new"),
        ("ahp-session:/new", set[str](), "ahp-session:/new"),
        ("ahp-chat://second/x", set[str](), "ahp-chat://second/x"),
        ("nonsense", set[str](), "nonsense"),
    ],
)
def test_every_spelling_leads_to_the_session(uri: str, known: set[str], found: str) -> None:
    assert resolved(uri, known.__contains__) == found
