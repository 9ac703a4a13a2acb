"""Wrong tokens are counted, logged and throttled; a right one always passes."""

import logging

import httpx2
import pytest

from session_server.identity.failed_credentials import FailedCredentials, TooManyFailuresError
from session_server.schemas.errors import BadCredentialError, CredentialFailure
from session_server.schemas.limits import (
    FAILED_CREDENTIAL_ADDRESSES,
    FAILED_CREDENTIAL_LOG_LINES,
    FAILED_CREDENTIAL_WINDOW_SECONDS,
    FAILED_CREDENTIALS_PER_ADDRESS,
)
from tests.host.manual_clock import Hands
from tests.http.sessions import numbers
from tests.identity.credentialed_clients import TOKEN, WITH_TOKEN, api, bearer, connected, dialled
from tests.servers import serving

HERE = "198.51.100.7"
WRONG = BadCredentialError("wrong")


def is_throttled(failures: FailedCredentials, address: str | None = HERE) -> bool:
    return isinstance(failures.failed(WRONG, address), TooManyFailuresError)


def used_up(failures: FailedCredentials, address: str | None = HERE) -> None:
    for _ in range(FAILED_CREDENTIALS_PER_ADDRESS):
        assert failures.failed(WRONG, address) is WRONG


@pytest.mark.proves("design.access.guessing")
async def test_guessing_is_throttled_logged_and_counted_and_a_right_token_passes() -> None:
    with serving("memory:", *WITH_TOKEN) as server:
        wrong = [f"canary-guess-{number}" for number in range(FAILED_CREDENTIALS_PER_ADDRESS + 5)]
        with httpx2.Client(base_url=server.url) as guesser:
            answers = [guesser.get("/v1/sessions", headers=bearer(token)) for token in wrong]
        statuses = [answer.status_code for answer in answers]
        assert statuses == [401] * FAILED_CREDENTIALS_PER_ADDRESS + [429] * 5
        assert answers[-1].json()["code"] == "tooManyFailures"
        wait = int(answers[-1].headers["retry-after"])
        assert 1 <= wait <= FAILED_CREDENTIAL_WINDOW_SECONDS
        assert await dialled(server, "wrong") == 429
        client = await connected(server, TOKEN)
        await client.close()
        with api(server) as owner:
            counted = numbers(owner)
        name = "failed_credentials_total{reason=%s}"
        assert counted[name % "unknown"] == FAILED_CREDENTIALS_PER_ADDRESS
        assert counted[name % "throttled"] == 6
        server.wait_for(f"{FAILED_CREDENTIALS_PER_ADDRESS} wrong tokens from 127.0.0.1")
        assert httpx2.get(f"{server.url}/v1/sessions").status_code == 401  # none is not a wrong one
    written = "".join(server.output)
    assert written.count("127.0.0.1 within") == 1
    assert not any(token in written for token in wrong)


def test_each_address_has_its_own_count() -> None:
    failures = FailedCredentials(Hands())
    used_up(failures)
    assert is_throttled(failures)
    assert not is_throttled(failures, "198.51.100.8")


def test_an_ipv6_network_counts_as_one_address() -> None:
    failures = FailedCredentials(Hands())
    used_up(failures, "2001:db8::1")
    assert is_throttled(failures, "2001:db8::ffff:2")
    assert not is_throttled(failures, "2001:db8:0:1::1")
    used_up(failures, "::ffff:198.51.100.9")
    assert is_throttled(failures, "198.51.100.9")


def test_what_is_not_an_address_counts_as_one_and_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = FailedCredentials(Hands())
    used_up(failures, None)
    assert is_throttled(failures, "made\nup")
    assert "made" not in caplog.text


def test_after_the_window_an_address_begins_anew() -> None:
    clock = Hands()
    failures = FailedCredentials(clock)
    used_up(failures)
    clock.now += FAILED_CREDENTIAL_WINDOW_SECONDS - 1
    refusal = failures.failed(WRONG, HERE)
    assert isinstance(refusal, TooManyFailuresError)
    assert refusal.retry_after == 1
    clock.now += 1
    used_up(failures)


def test_expired_and_revoked_tokens_are_counted_and_never_throttled() -> None:
    failures = FailedCredentials(Hands())
    for failure in (CredentialFailure.EXPIRED, CredentialFailure.REVOKED):
        error = BadCredentialError("old", failure)
        for _ in range(2 * FAILED_CREDENTIALS_PER_ADDRESS):
            assert failures.failed(error, HERE) is error
        assert failures.counts[failure] == 2 * FAILED_CREDENTIALS_PER_ADDRESS
    used_up(failures)


def test_addresses_and_log_lines_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hands()
    failures = FailedCredentials(clock)
    with caplog.at_level(logging.WARNING):
        for number in range(FAILED_CREDENTIAL_ADDRESSES + 10):
            failures.failed(WRONG, f"10.0.{number // 256}.{number % 256}")
        assert len(failures._windows) == FAILED_CREDENTIAL_ADDRESSES
        assert "10.0.0.9" not in failures._windows  # the oldest went
        assert len(caplog.records) == FAILED_CREDENTIAL_LOG_LINES
        assert "left out" in caplog.records[-1].getMessage()
        clock.now += FAILED_CREDENTIAL_WINDOW_SECONDS
        failures.failed(WRONG, HERE)
    assert len(caplog.records) == FAILED_CREDENTIAL_LOG_LINES + 1
