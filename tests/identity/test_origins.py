"""Which pages may come, and by which name a host on loopback may be called."""

import pytest

from session_server.identity.origins import (
    Access,
    access_of,
    check_direct,
    check_host,
    check_origin,
)
from session_server.schemas.errors import ForeignOriginError, ProxiedError
from session_server.settings import Settings

HERE = "127.0.0.1:8737"
LOOPBACK = Access()


def is_let_in(access: Access, **headers: str) -> bool:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        check_host(access, named)
        check_origin(access, named)
    except ForeignOriginError:
        return False
    return True


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8737", HERE),
        ("http://localhost:8737", "localhost:8737"),
        ("http://[::1]:8737", "[::1]:8737"),
        ("https://localhost", "localhost"),
        ("http://LOCALHOST:8737", "localhost:8737"),
    ],
)
def test_its_own_page_is_always_let_in(origin: str, host: str) -> None:
    assert is_let_in(LOOPBACK, host=host, origin=origin)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1:9999",
        "http://127.0.0.1.evil.example:8737",
        "http://evil.example:8737",
        "http://127.0.0.1:8737@evil.example",
        "null",
        "file://",
        "vscode-webview://abc",
        "",
        "http://",
        "http://127.0.0.1:port",
        "http://[::1",
    ],
)
def test_a_page_from_elsewhere_is_turned_away(origin: str) -> None:
    assert not is_let_in(LOOPBACK, host=HERE, origin=origin)


def test_programs_say_no_origin_and_are_let_in() -> None:
    assert is_let_in(LOOPBACK, host=HERE)


def test_a_page_that_the_operator_allows_is_let_in() -> None:
    access = access_of(Settings(allowed_origins=("https://My.App/",)))
    assert is_let_in(access, host=HERE, origin="https://my.app")
    assert not is_let_in(access, host=HERE, origin="http://my.app")
    assert is_let_in(access_of(Settings(allowed_origins=("*",))), host=HERE, origin="null")


@pytest.mark.parametrize(
    "host", ["evil.example:8737", "192.168.1.7:8737", "", "127.0.0.1.evil", "[x"]
)
def test_a_name_that_was_made_to_point_here_does_not_help(host: str) -> None:
    """A foreign page is of the same origin as the host if its name points to it: DNS rebinding."""
    assert not is_let_in(LOOPBACK, host=host, origin=f"http://{host}")
    assert not is_let_in(LOOPBACK, host=host)


def test_names_that_the_operator_gives_are_known() -> None:
    access = access_of(Settings(allowed_hosts=("Proxy.Example",), public_url="https://p.example/x"))
    assert is_let_in(access, host="proxy.example")
    assert is_let_in(access, host="p.example", origin="https://p.example")
    assert is_let_in(access, host=HERE, origin="https://p.example")
    assert is_let_in(access_of(Settings(allowed_hosts=("*",))), host="anything.example")


def test_elsewhere_than_on_loopback_any_name_will_do() -> None:
    access = access_of(Settings(), "a-token-of-the-host", is_loopback=False)
    assert is_let_in(access, host="box.lan:8737", origin="http://box.lan:8737")
    assert not is_let_in(access, host="box.lan:8737", origin="http://evil.example")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_here_but_not_load_from_here(site: str) -> None:
    assert is_let_in(LOOPBACK, host=HERE, sec_fetch_site=site, sec_fetch_mode="navigate")
    assert not is_let_in(LOOPBACK, host=HERE, sec_fetch_site=site, sec_fetch_mode="no-cors")
    framed = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}
    assert not is_let_in(LOOPBACK, host=HERE, sec_fetch_site=site, **framed)
    assert is_let_in(LOOPBACK, host=HERE, sec_fetch_site="same-origin", sec_fetch_mode="cors")
    assert is_let_in(LOOPBACK, host=HERE, sec_fetch_site="none", sec_fetch_mode="navigate")


PROXY_MARKS = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "Via",
    "CF-Connecting-IP",
    "x-envoy-external-address",
    "X_Forwarded_For",
    "CF-Ray",
    "Fly-Client-IP",
    "ngrok-auth-user-email",
    "Tailscale-User-Login",
    "X-Amzn-Trace-Id",
    "True-Client-IP",
)


@pytest.mark.parametrize("mark", PROXY_MARKS)
def test_what_a_proxy_has_marked_needs_a_token_or_an_order(mark: str) -> None:
    """Any other would be an owner: the proxy is on this machine, and may use a loopback name."""
    names = {"host": 1, mark.lower(): 1}
    with pytest.raises(ProxiedError, match="--connection-token generate"):
        check_direct(LOOPBACK, names)
    check_direct(access_of(Settings(), "a-token-of-the-host"), names)
    check_direct(access_of(Settings(without_connection_token=True)), names)
    check_direct(LOOPBACK, {"host": 1, "user-agent": 1, "x-own": 1})
