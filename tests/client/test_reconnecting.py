"""When a client comes back, how soon, and when it gives up."""

import ssl

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.frames import Close
from websockets.http11 import Response

from session_server.backoff import Backoff
from session_server.client.connecting import FIRST_DELAY, LONGEST_DELAY, endpoint, final_error
from session_server.client.errors import ConnectionLost, GaveUp, NotUnderstood


def test_delays_double_up_to_a_limit_and_start_again_after_a_good_connection() -> None:
    backoff = Backoff(FIRST_DELAY, LONGEST_DELAY)
    delays = [backoff.pause() for _ in range(100)]
    assert delays[:4] == [FIRST_DELAY, FIRST_DELAY * 2, FIRST_DELAY * 4, FIRST_DELAY * 8]
    assert delays[10:] == [LONGEST_DELAY] * 90
    backoff.reset()
    assert backoff.pause() == FIRST_DELAY


def test_jitter_shortens_a_delay_by_up_to_a_half() -> None:
    assert Backoff(1.0, 8.0, jitter=lambda: 0.0).pause() == 1.0
    assert Backoff(1.0, 8.0, jitter=lambda: 1.0).pause() == 0.5


def closed(code: int, reason: str = "") -> ConnectionClosedError:
    return ConnectionClosedError(Close(code, reason), None)


def answered(status: int) -> InvalidStatus:
    return InvalidStatus(Response(status, "", Headers()))


@pytest.mark.parametrize(
    "error",
    [
        *map(closed, (1000, 1001, 1011, 1012, 4000, 4001, 4499)),
        *map(answered, (408, 429, 500, 502, 503)),
        ConnectionClosedError(None, None),
        ConnectionClosedError(None, Close(1011, "keepalive")),
        ConnectionRefusedError(),
        TimeoutError(),
        ConnectionLost("x"),
        NotUnderstood("x"),
    ],
    ids=repr,
)
def test_after_these_errors_it_comes_back(error: Exception) -> None:
    assert final_error(error) is None


@pytest.mark.parametrize("code", [1002, 1003, 1008, 1009, 3000, 4500, 4999])
def test_these_close_codes_mean_give_up(code: int) -> None:
    error = final_error(closed(code, "go away"))
    assert isinstance(error, GaveUp)
    assert error.close_code == code
    assert "go away" in str(error)
    assert not error.can_retry


def test_a_refusal_with_a_reason_is_final() -> None:
    refused = GaveUp("another version")
    assert final_error(refused) is refused


def test_what_we_closed_for_good_ourselves_is_not_tried_again() -> None:
    error = final_error(ConnectionClosedError(None, Close(1009, "")))
    assert isinstance(error, GaveUp)
    assert error.close_code == 1009


@pytest.mark.parametrize("status", [401, 403, 404, 426])
def test_these_answers_to_the_upgrade_mean_give_up(status: int) -> None:
    error = final_error(answered(status))
    assert isinstance(error, GaveUp)
    assert error.status == status
    assert str(status) in str(error)


def test_a_certificate_that_is_not_trusted_will_not_be_tomorrow() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "bad")
    untrusted.verify_message = "self-signed"
    error = final_error(untrusted)
    assert isinstance(error, GaveUp)
    assert "self-signed" in str(error)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:8737", "ws://127.0.0.1:8737/ahp"),
        ("http://127.0.0.1:8737/", "ws://127.0.0.1:8737/ahp"),
        ("https://host.example?tkn=x", "wss://host.example/ahp"),
        ("https://host.example/?a=1&tkn=x&b=2#/s/y", "wss://host.example/ahp?a=1&b=2"),
        ("https://host.example/sessions/?tkn=x", "wss://host.example/sessions/ahp"),
        ("http://host.example/sessions/ahp", "ws://host.example/sessions/ahp"),
        ("ws://[::1]:1/elsewhere", "ws://[::1]:1/elsewhere"),
        ("ws://127.0.0.1:8081?tkn=x", "ws://127.0.0.1:8081?tkn=x"),
    ],
)
def test_the_address_of_the_page_is_enough(url: str, address: str) -> None:
    assert endpoint(url) == address


@pytest.mark.parametrize("url", ["127.0.0.1:8737", "ftp://x", "http://", ""])
def test_an_invalid_address_is_reported(url: str) -> None:
    with pytest.raises(ValueError, match="is not the address of a host"):
        endpoint(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://u:s3cret@host/x?tkn=s3cret", "ftp://host/x"),
        ("host?tkn=s3cret", "host"),
    ],
)
def test_no_error_shows_a_token(url: str, shown: str) -> None:
    with pytest.raises(ValueError, match=shown) as error:
        endpoint(url)
    assert "s3cret" not in str(error.value)
